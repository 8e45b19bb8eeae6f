// A mask of any number of hidden runs a column, as layers of two each that are disjoint: it is rasterised as any other.

class LayeredMask {
  constructor(layers) {
    Object.assign(this, { layers, sq: layers[0].sq, sk: layers[0].sk });
  }

  counter(rows, height) {
    return new LayeredCounter(
      this.layers.map((layer) => layer.counter(rows, height)),
      height,
    );
  }

  visible(q, k) {
    return this.layers.every((layer) => layer.visible(q, k));
  }
}

// The runs of a column are disjoint, so what their layers hide adds up.
class LayeredCounter {
  constructor(counters, height) {
    this.counters = counters;
    this.whole = new Int32Array(height + 1);
    this.touched = new Int32Array(height + 1);
  }

  count(from, to) {
    this.whole.fill(0);
    this.touched.fill(0);
    for (const counter of this.counters) {
      counter.count(from, to);
      for (let y = 0; y < this.whole.length; y++) {
        this.whole[y] += counter.whole[y];
        this.touched[y] += counter.touched[y];
      }
    }
  }
}

// A mask that fits keeps its vectors, and with them the kinds of its tiles.
const joinedMask = (layers) => (layers.length === 1 ? layers[0] : new LayeredMask(layers));
