// The steps of one loop, and what stands in the registers after each.

const OF_ONE_TILE = ["s", "p", "dp", "ds", "m_new", "alpha"];

class Replay {
  constructor(data) {
    this.data = data;
    this.steps = data.steps.map(([line, tile, wrote]) => ({ line, tile, wrote }));
    this.byColumn = data.pass === "dkdv";
    this.decisions = this.steps.filter((s) => s.line === "decide").map((s) => s.wrote.decision);
    this.order = this.steps.filter((s) => s.line === "scores").map((s) => s.tile);
    this.mask = maskOf(data);
    this.own = this.byColumn ? this.range(0, data.line).keys : this.range(data.line, 0).rows;
  }

  get length() {
    return this.steps.length;
  }

  // Rows and keys of tile (i, j), each [first, end].
  range(i, j) {
    const { r0, r1, c0, c1 } = this.mask.tileRange(i, j);
    return { rows: [r0, r1], keys: [c0, c1] };
  }

  // (row tile, column tile) of a tile of this loop.
  at(tile) {
    return this.byColumn ? [tile, this.data.line] : [this.data.line, tile];
  }

  // Where a first visit begins: the decisions made, the first tile loaded.
  get begin() {
    const first = this.steps.findIndex((s) => s.line === "hide" || s.line === "max" || s.line === "exp");
    return first < 0 ? this.length - 1 : first;
  }

  // The first step of a tile that is computed, the decision on one that is not.
  entry(tile) {
    const computed = this.steps.findIndex((s) => s.line === "scores" && s.tile === tile);
    return computed < 0 ? this.steps.findIndex((s) => s.line === "decide" && s.tile === tile) : computed;
  }

  // The next step from n on that executes a line of the code, around the end.
  nextOf(line, n) {
    for (let d = 1; d <= this.length; d++) {
      const m = (n + d) % this.length;
      if (LINE_OF(this.steps[m]) === line) return m;
    }
    return n;
  }

  // Smallest and largest value that a name ever has in this loop.
  limits(name) {
    this.kept ??= {};
    if (!this.kept[name]) {
      const all = this.steps
        .flatMap((s) => s.wrote[name] ?? [])
        .flat()
        .filter((x) => x !== null);
      this.kept[name] = name === "p" ? [0, Math.max(...all, 1e-9)] : [Math.min(...all), Math.max(...all)];
    }
    return this.kept[name];
  }

  // Everything after step n.
  state(n) {
    const values = {},
      visited = [];
    let decided = 0;
    for (let m = 0; m <= n; m++) {
      const { line, tile, wrote } = this.steps[m];
      if (line === "decide") {
        decided++;
        continue;
      }
      if (line === "scores") {
        for (const name of OF_ONE_TILE) delete values[name];
        visited.push(tile);
      }
      Object.assign(values, wrote);
    }
    const step = this.steps[n];
    return { n, step, tile: step.tile, values, visited, decided, changed: new Set(Object.keys(step.wrote)) };
  }
}

function maskOf(data) {
  const names = Object.keys(data.vectors);
  const vectors = names.map((name) => Int32Array.from(data.vectors[name]));
  const mask = new MaskVectors({ head: { ...data, names, rule: "exact" }, vectors });
  // The kernels' own decisions in place of the exact rule's.
  for (let j = 0; j < mask.tilesN; j++)
    mask.kindCache.set(
      j,
      Uint8Array.from(data.kinds, (row) => row[j]),
    );
  return mask;
}
