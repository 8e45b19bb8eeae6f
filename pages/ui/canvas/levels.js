// Columns in groups of 8, 64, 512, …: the smallest and largest ends of their hidden runs. Made once a mask, so that a
// picture of a million tokens looks at a few thousand groups a frame and still counts what every single column hides.

const GROUP = 8;

class RunLevels {
  constructor(mask) {
    const { a1, b1, a2, b2, sq } = mask;
    this.mask = mask;
    this.levels = [null]; // level 0 is the columns themselves
    let below = [
      { low: a1, high: a1, lowEnd: b1, highEnd: b1 },
      { low: a2, high: a2, lowEnd: b2, highEnd: b2 },
    ];
    while (below[0].low.length >= 2 * GROUP) {
      below = below.map((run, n) => groupRuns(run, sq, this.levels.length === 1 ? null : this.levels.at(-1)[n].gaps));
      this.levels.push(below);
    }
  }

  // Largest level whose group at `from` ends by `to`.
  levelAt(from, to) {
    let level = 0,
      size = GROUP;
    while (level + 1 < this.levels.length && from % size === 0 && from + size <= to) {
      level++;
      size *= GROUP;
    }
    return level;
  }
}

// One level from the one below: run ends over every column that has the run; `gaps` marks groups where some have not.
function groupRuns(run, sq, gapsBelow) {
  const n = Math.floor(run.low.length / GROUP),
    out = { gaps: new Uint8Array(n) };
  for (const name of ["low", "high", "lowEnd", "highEnd"]) out[name] = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    let low = sq,
      high = -1,
      lowEnd = sq + 1,
      highEnd = -1,
      gaps = 0;
    for (let k = i * GROUP; k < (i + 1) * GROUP; k++) {
      if (gapsBelow) gaps |= gapsBelow[k];
      if (run.low[k] >= sq) {
        gaps = 1;
        continue;
      }
      if (run.low[k] < low) low = run.low[k];
      if (run.high[k] > high) high = run.high[k];
      if (run.lowEnd[k] < lowEnd) lowEnd = run.lowEnd[k];
      if (run.highEnd[k] > highEnd) highEnd = run.highEnd[k];
    }
    out.low[i] = low;
    out.high[i] = high;
    out.lowEnd[i] = lowEnd;
    out.highEnd[i] = highEnd;
    out.gaps[i] = gaps;
  }
  return out;
}

// Counts the columns [from, to) of one pixel. A group is taken as a whole if that changes no pixel: between the ends of
// its runs no row of pixels fits in which one column would be hidden by its first run and another by its second, or
// which would lie in a gap that the smallest and the largest end bridge. Otherwise its eight parts are looked at.
class GroupCounter {
  constructor(levels, rows, height) {
    Object.assign(this, { levels, rows, height, sq: levels.mask.sq });
    this.whole = new Int32Array(height + 1);
    this.touched = new Int32Array(height + 1);
  }

  count(from, to) {
    this.whole.fill(0);
    this.touched.fill(0);
    const { a1, b1, a2, b2 } = this.levels.mask;
    while (from < to) {
      const level = this.levels.levelAt(from, to);
      if (level === 0) {
        let end = from + 1; // neighbours with the same runs count as one
        while (end < to && a1[end] === a1[from] && b1[end] === b1[from] && a2[end] === a2[from] && b2[end] === b2[from])
          end++;
        if (end - from >= GROUP) end -= end % GROUP;
        this.columns(from, end - from);
        from = end;
      } else {
        this.group(level, from / GROUP ** level);
        from += GROUP ** level;
      }
    }
  }

  columns(k, weight) {
    const { a1, b1, a2, b2 } = this.levels.mask;
    this.add(a1[k], b1[k], weight);
    this.add(a2[k], b2[k], weight);
  }

  add(a, b, weight) {
    if (a >= this.sq) return;
    this.addWhole(this.begun(a), this.over(b), weight);
    this.addTouched(this.over(a), this.begun(b));
  }

  addWhole(first, end, weight) {
    if (first >= end) return;
    this.whole[first] += weight;
    this.whole[end] -= weight;
  }

  addTouched(first, end) {
    if (first >= end) return;
    this.touched[first]++;
    this.touched[end]--;
  }

  group(level, i) {
    const [one, two] = this.levels.levels[level];
    if (!this.plain(one, i) || !this.plain(two, i) || !this.apart(one, two, i)) {
      for (let part = i * GROUP; part < (i + 1) * GROUP; part++)
        if (level === 1) this.columns(part, 1);
        else this.group(level - 1, part);
      return;
    }
    for (const run of [one, two]) {
      if (run.high[i] < 0) continue;
      if (!run.gaps[i]) this.addWhole(this.begun(run.high[i]), this.over(run.lowEnd[i]), GROUP ** level);
      this.addTouched(this.over(run.low[i]), this.begun(run.highEnd[i]));
    }
  }

  plain(run, i) {
    return run.high[i] <= run.lowEnd[i] || this.begun(run.lowEnd[i]) >= this.over(run.high[i]);
  }

  apart(one, two, i) {
    return two.high[i] < 0 || one.highEnd[i] <= two.low[i] || this.begun(two.low[i]) >= this.over(one.highEnd[i]);
  }

  // How many rows of pixels begin before row v, and how many have ended by it.
  begun(v) {
    const { first, start, step } = this.rows,
      pixels = this.height;
    if (v <= first[0]) return 0;
    if (v > first[pixels - 1]) return pixels;
    let y = Math.ceil((v - start) / step);
    y = y < 1 ? 1 : y > pixels ? pixels : y;
    while (first[y - 1] >= v) y--;
    while (y < pixels && first[y] < v) y++;
    return y;
  }

  over(v) {
    const y = this.begun(v);
    return y > 0 && this.rows.end[y - 1] > v ? y - 1 : y;
  }
}
