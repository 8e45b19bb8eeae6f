// From vectors to pixels. A pixel covers a block of rows x columns; its state is NONE, SOME or ALL of those cells
// visible, counted exactly, so a line one token thin still leaves its mark when a pixel holds a thousand tokens.

const NONE = 0,
  SOME = 1,
  ALL = 2;

// First and past-the-last token of every pixel along one axis.
function pixelEdges(start, span, pixels, length) {
  const first = new Int32Array(pixels),
    end = new Int32Array(pixels),
    step = span / pixels;
  for (let i = 0; i < pixels; i++) {
    first[i] = Math.min(length - 1, Math.max(0, Math.floor(start + i * step + 1e-9)));
    end[i] = Math.min(length, Math.max(first[i] + 1, Math.floor(start + (i + 1) * step + 1e-9)));
  }
  return { first, end, step, start };
}

// How many pixels begin before row v. Pixels ascend, so an estimate is put right by a step or two.
function pixelsBefore(v, edges, pixels) {
  let y = Math.ceil((v - edges.start) / edges.step);
  y = y < 0 ? 0 : y > pixels ? pixels : y;
  while (y > 0 && edges.first[y - 1] >= v) y--;
  while (y < pixels && edges.first[y] < v) y++;
  return y;
}

// Where row v lies among the pixels: `begun` of them begin before it, `over` of them end by it. The same holds for every
// other row strictly between `low` and `high`.
function placeOf(v, rows, pixels, out) {
  const begun = pixelsBefore(v, rows, pixels);
  out.begun = out.over = begun;
  out.low = out.high = v;
  if (begun === 0) {
    out.low = -1;
    out.high = rows.first[0] + 1;
  } else if (rows.end[begun - 1] > v) {
    out.over = begun - 1;
    out.low = rows.first[begun - 1];
    out.high = rows.end[begun - 1];
  } else if (begun === pixels) {
    out.low = rows.end[pixels - 1] - 1;
    out.high = Infinity;
  }
}

// States of a view, column after column: states[x * height + y].
function rasterise(mask, view, width, height) {
  const cols = pixelEdges(view.c, view.w, width, mask.sk),
    rows = pixelEdges(view.r, view.h, height, mask.sq);
  const states = new Uint8Array(width * height);
  const counter = new RunCounter(rows, height, mask.sq);
  for (let x = 0; x < width; x++) {
    const base = x * height,
      from = cols.first[x],
      to = cols.end[x];
    if (x && from === cols.first[x - 1] && to === cols.end[x - 1]) {
      states.copyWithin(base, base - height, base);
      continue;
    }
    counter.clear();
    counter.add(mask.a1, mask.b1, from, to);
    counter.add(mask.a2, mask.b2, from, to);
    const { whole, touched } = counter;
    for (let y = 0, w = 0, t = 0; y < height; y++) {
      w += whole[y];
      t += touched[y];
      states[base + y] = w === to - from ? NONE : t === 0 ? ALL : SOME;
    }
  }
  return { states, cols, rows, width, height };
}

// How many columns hide each pixel row wholly, and how many touch it, as differences. Neighbouring columns whose runs
// fall on the same pixels are counted in one go, which is nearly all of them when a pixel holds many columns.
class RunCounter {
  constructor(rows, height, sq) {
    Object.assign(this, { rows, height, sq, whole: new Int32Array(height + 1), touched: new Int32Array(height + 1) });
    this.start = { begun: 0, over: 0, low: 0, high: 0 };
    this.end = { begun: 0, over: 0, low: 0, high: 0 };
  }

  clear() {
    this.whole.fill(0);
    this.touched.fill(0);
  }

  add(starts, ends, from, to) {
    const { rows, height, sq, start, end } = this;
    let weight = 0,
      sv = -1,
      sLow = 0,
      sHigh = 0,
      ev = -1,
      eLow = 0,
      eHigh = 0;
    for (let k = from; k < to; k++) {
      const s = starts[k],
        e = ends[k];
      if (s >= sq) continue;
      const sameStart = s === sv || (s > sLow && s < sHigh),
        sameEnd = e === ev || (e > eLow && e < eHigh);
      if (!sameStart || !sameEnd) {
        this.flush(weight);
        weight = 0;
        if (!sameStart) {
          placeOf(s, rows, height, start);
          sv = s;
          sLow = start.low;
          sHigh = start.high;
        }
        if (!sameEnd) {
          placeOf(e, rows, height, end);
          ev = e;
          eLow = end.low;
          eHigh = end.high;
        }
      }
      weight++;
    }
    this.flush(weight);
  }

  flush(weight) {
    if (!weight) return;
    const { whole, touched, start, end } = this;
    if (start.begun < end.over) {
      whole[start.begun] += weight;
      whole[end.over] -= weight;
    }
    if (start.over < end.begun) {
      touched[start.over] += weight;
      touched[end.begun] -= weight;
    }
  }
}

// Colours of the matrix side: the tile of the pixel's middle says the kind, the state says the share that is visible.
// Smaller than three pixels, tiles are left out and the states alone are drawn.
function paintMatrix(image, raster, mask, palette, withTiles) {
  const { states, cols, rows, width, height } = raster,
    out = new Uint32Array(image.data.buffer);
  const middle = (edges, i) => (edges.first[i] + edges.end[i] - 1) >> 1;
  const tileRow = Int32Array.from({ length: height }, (_, y) => Math.floor(middle(rows, y) / mask.blockM));
  const { empty, partial, partialDark, thin, waste, wasteDark, full } = palette.packed;
  const pitch = palette.hatchPitch,
    dark = Math.max(1, Math.round(pitch * 0.3));
  for (let x = 0; x < width; x++) {
    const kinds = withTiles ? mask.kindsOfBlock(Math.floor(middle(cols, x) / mask.blockN)) : null;
    for (let y = 0, s = x * height, p = x; y < height; y++, s++, p += width) {
      const state = states[s],
        kind = kinds ? kinds[tileRow[y]] : state;
      const hatched = (x + y) % pitch < dark;
      if (state === NONE) out[p] = kind === PARTIAL ? (hatched ? wasteDark : waste) : empty;
      else if (state === ALL && kind === FULL) out[p] = full;
      else out[p] = !withTiles ? thin : hatched ? partialDark : partial;
    }
  }
}

// Colours of the vector side: hidden, visible, and a shade between where a pixel holds both.
function paintArea(image, raster, palette) {
  const { states, width, height } = raster,
    out = new Uint32Array(image.data.buffer);
  const shades = [palette.packed.empty, palette.packed.mixed, palette.packed.ground];
  for (let x = 0; x < width; x++)
    for (let y = 0, s = x * height, p = x; y < height; y++, s++, p += width) out[p] = shades[states[s]];
}
