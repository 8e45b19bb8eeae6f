// The mask as the page receives it: a short JSON head and the int32 vectors that carry information. Nothing here is
// ever N x N; every answer about cells, columns and tiles is read from the four vectors.

const EMPTY = 0,
  PARTIAL = 1,
  FULL = 2;
const KIND_NAMES = ["empty", "partial", "full"];

class MaskVectors {
  constructor({ head, vectors }) {
    const { seqlen_q: sq, seqlen_k: sk } = head;
    Object.assign(this, { head, sq, sk, causal: head.causal, offset: sk - sq, names: head.names });
    head.names.forEach((name, i) => (this[name] = vectors[i]));
    this.lte ??= levelLine(sk, sq);
    this.uts ??= levelLine(sk, 0);
    this.ute ??= diagonalRows(sq, sk);
    this.setTiles(head.block_m, head.block_n, head.rule);
    this.joinRuns();
    this.pyramids = {};
  }

  setTiles(blockM, blockN, rule) {
    Object.assign(this, { blockM, blockN, rule });
    this.tilesM = Math.ceil(this.sq / blockM);
    this.tilesN = Math.ceil(this.sk / blockN);
    this.tileKey = `${blockM}x${blockN} ${rule}`;
    this.kindCache = new Map();
    this.rowKinds = null;
  }

  // Disjoint hidden runs [a1, b1) and [a2, b2) of every column in rising order, an empty one as (Sq, Sq).
  joinRuns() {
    const { sq, sk, lts, lte, uts, ute } = this;
    const a1 = new Int32Array(sk),
      b1 = new Int32Array(sk),
      a2 = new Int32Array(sk),
      b2 = new Int32Array(sk);
    let hidden = 0; // at most 2^40, so exact
    for (let k = 0; k < sk; k++) {
      const lower = lts[k] < lte[k],
        upper = uts[k] < ute[k];
      const first = upper && (!lower || uts[k] <= lts[k]);
      let p = first ? uts[k] : lower ? lts[k] : sq,
        q = first ? ute[k] : lower ? lte[k] : sq,
        r = first ? (lower ? lts[k] : sq) : upper ? uts[k] : sq,
        s = first ? (lower ? lte[k] : sq) : upper ? ute[k] : sq;
      if (r < sq && r <= q) {
        if (s > q) q = s;
        r = s = sq;
      }
      a1[k] = p;
      b1[k] = q;
      a2[k] = r;
      b2[k] = s;
      hidden += q - p + s - r;
    }
    Object.assign(this, { a1, b1, a2, b2, visiblePairs: sq * sk - hidden });
  }

  // What counts the columns of a pixel; see `rasterise`.
  counter(rows, height) {
    return new GroupCounter((this.levels ??= new RunLevels(this)), rows, height);
  }

  hides(q, k) {
    const by = [];
    if (q >= this.lts[k] && q < this.lte[k]) by.push("lower");
    if (q >= this.uts[k] && q < this.ute[k]) by.push("upper");
    return by;
  }

  visible(q, k) {
    return this.hides(q, k).length === 0;
  }

  visibleRuns(k) {
    const edges = [0, this.a1[k], this.b1[k], this.a2[k], this.b2[k], this.sq],
      runs = [];
    for (let i = 0; i < 6; i += 2) if (edges[i] < edges[i + 1]) runs.push([edges[i], edges[i + 1]]);
    return runs;
  }

  // Minimum and maximum of one vector over the columns [from, to).
  range(name, from, to) {
    const values = this[name],
      { corners } = values;
    const levels = (this.pyramids[name] ??= buildPyramid(corners ? corners.numbers : values));
    if (!corners) return extremes(levels, from, to);
    // Straight between its corners: both ends and the corners inside say all of it.
    const { columns } = corners,
      [low, high] = extremes(levels, firstFrom(columns, from), firstFrom(columns, to));
    const a = values[from],
      b = values[to - 1];
    return [Math.min(a, b, low), Math.max(a, b, high)];
  }

  tileRange(i, j) {
    const { blockM, blockN, sq, sk } = this;
    return { r0: i * blockM, r1: Math.min((i + 1) * blockM, sq), c0: j * blockN, c1: Math.min((j + 1) * blockN, sk) };
  }

  // The cell in the middle of a tile.
  middleOf(i, j) {
    const { r0, r1, c0, c1 } = this.tileRange(i, j);
    return { q: (r0 + r1 - 1) >> 1, k: (c0 + c1 - 1) >> 1 };
  }

  // Kinds of all the tiles of one column block by the rule that is on.
  kindsOfBlock(j) {
    let kinds = this.kindCache.get(j);
    if (kinds) return kinds;
    kinds = this.rule === "paper" ? this.paperKinds(j) : this.exactKinds(j, this.blockM, this.blockN);
    if (this.kindCache.size > 4096) this.kindCache.clear();
    this.kindCache.set(j, kinds);
    return kinds;
  }

  // The same exactly on the pairs that exist, for tiles of any size: a column hides a row block wholly if one of its
  // joined runs contains it, and touches it if a run overlaps it.
  exactKinds(j, blockM, blockN) {
    const { sq, sk } = this,
      tilesM = Math.ceil(sq / blockM);
    const c0 = j * blockN,
      c1 = Math.min(c0 + blockN, sk);
    const whole = new Int32Array(tilesM + 1),
      touched = new Int32Array(tilesM + 1);
    const add = (a, b) => {
      if (a >= b) return;
      const first = Math.ceil(a / blockM),
        end = b === sq ? tilesM : Math.floor(b / blockM);
      if (first < end) {
        whole[first]++;
        whole[end]--;
      }
      touched[Math.floor(a / blockM)]++;
      touched[Math.min(tilesM, Math.ceil(b / blockM))]--;
    };
    for (let k = c0; k < c1; k++) {
      add(this.a1[k], this.b1[k]);
      add(this.a2[k], this.b2[k]);
    }
    const kinds = new Uint8Array(tilesM);
    for (let i = 0, w = 0, t = 0; i < tilesM; i++) {
      w += whole[i];
      t += touched[i];
      kinds[i] = w === c1 - c0 ? EMPTY : t === 0 ? FULL : PARTIAL;
    }
    return kinds;
  }

  // Equation 4 of the paper: the minimum and maximum of each interval alone decide.
  paperKinds(j) {
    const { c0, c1 } = this.tileRange(0, j),
      ranges = this.intervalRanges(c0, c1);
    return Uint8Array.from({ length: this.tilesM }, (_, i) => {
      const { r0, r1 } = this.tileRange(i, j);
      return paperKind(ranges, r0, r1);
    });
  }

  // Kinds of all the tiles of one row block, in one pass over the columns.
  kindsOfRow(i) {
    if (this.rowKinds?.i === i) return this.rowKinds.kinds;
    const kinds = new Uint8Array(this.tilesN),
      { a1, b1, a2, b2 } = this;
    for (let j = 0; j < this.tilesN; j++) {
      const { r0, r1, c0, c1 } = this.tileRange(i, j);
      if (this.rule === "paper") {
        kinds[j] = paperKind(this.intervalRanges(c0, c1), r0, r1);
        continue;
      }
      let whole = 0,
        touched = 0;
      for (let k = c0; k < c1; k++) {
        if ((a1[k] <= r0 && b1[k] >= r1) || (a2[k] <= r0 && b2[k] >= r1)) whole++;
        else if ((a1[k] < r1 && b1[k] > r0) || (a2[k] < r1 && b2[k] > r0)) touched++;
      }
      kinds[j] = whole === c1 - c0 ? EMPTY : whole + touched ? PARTIAL : FULL;
    }
    this.rowKinds = { i, kinds };
    return kinds;
  }

  // What one query sees: how many keys, and the first few runs of them.
  rowSees(q) {
    if (this.rowSeen?.q === q) return this.rowSeen;
    const runs = [];
    let count = 0,
      start = -1;
    for (let k = 0; k <= this.sk; k++) {
      const seen =
        k < this.sk && !((q >= this.a1[k] && q < this.b1[k]) || (q >= this.a2[k] && q < this.b2[k]));
      count += seen;
      if (seen && start < 0) start = k;
      if (!seen && start >= 0) {
        if (runs.length < 4) runs.push([start, k]);
        start = -1;
      }
    }
    return (this.rowSeen = { q, count, runs });
  }

  intervalRanges(c0, c1) {
    return [
      ["lts", "lte"],
      ["uts", "ute"],
    ].map(([start, end]) => {
      const [minStart, maxStart] = this.range(start, c0, c1),
        [minEnd, maxEnd] = this.range(end, c0, c1);
      return { minStart, maxStart, minEnd, maxEnd };
    });
  }

  kind(i, j) {
    return this.kindsOfBlock(j)[i];
  }
}

const covers = (run, r0, r1) => run.maxStart <= r0 && run.minEnd >= r1;
const misses = (run, r0, r1) => run.minStart >= r1 || run.maxEnd <= r0;

function paperKind(runs, r0, r1) {
  if (runs.some((run) => covers(run, r0, r1))) return EMPTY;
  return runs.every((run) => misses(run, r0, r1)) ? FULL : PARTIAL;
}
