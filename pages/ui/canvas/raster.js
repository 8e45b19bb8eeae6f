// From vectors to pixels. A pixel covers a block of rows x columns; its state is NONE, SOME or ALL of those cells
// visible, counted exactly, so a line one token thin still leaves its mark when a pixel holds a thousand tokens.

const NONE = 0, SOME = 1, ALL = 2;

// First and past-the-last token of every pixel along one axis.
function pixelEdges(start, span, pixels, length) {
  const first = new Int32Array(pixels), end = new Int32Array(pixels), step = span / pixels;
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

// States of a view, column after column: states[x * height + y].
function rasterise(mask, view, width, height) {
  const cols = pixelEdges(view.c, view.w, width, mask.sk), rows = pixelEdges(view.r, view.h, height, mask.sq);
  const states = new Uint8Array(width * height), whole = new Int32Array(height + 1), touched = new Int32Array(height + 1);
  const { a1, b1, a2, b2, sq } = mask;
  const before = new RowLookup(rows, height);
  const add = (a, b, weight) => {
    const fa = before.at(a), fb = before.at(b);
    // A pixel ends by row v if it begins before v and does not reach past it.
    const ga = fa > 0 && rows.end[fa - 1] > a ? fa - 1 : fa, gb = fb > 0 && rows.end[fb - 1] > b ? fb - 1 : fb;
    if (fa < gb) { whole[fa] += weight; whole[gb] -= weight; }
    if (ga < fb) { touched[ga] += weight; touched[fb] -= weight; }
  };
  for (let x = 0; x < width; x++) {
    const base = x * height;
    if (x && cols.first[x] === cols.first[x - 1] && cols.end[x] === cols.end[x - 1]) {
      states.copyWithin(base, base - height, base);
      continue;
    }
    whole.fill(0); touched.fill(0);
    // Columns of equal runs are counted together: documents repeat one run for thousands of columns.
    addEqual(a1, b1, cols.first[x], cols.end[x], sq, add);
    addEqual(a2, b2, cols.first[x], cols.end[x], sq, add);
    const columns = cols.end[x] - cols.first[x];
    for (let y = 0, w = 0, t = 0; y < height; y++) {
      w += whole[y]; t += touched[y];
      states[base + y] = w === columns ? NONE : t === 0 ? ALL : SOME;
    }
  }
  return { states, cols, rows, width, height };
}

function addEqual(starts, ends, from, to, sq, add) {
  let k = from;
  while (k < to) {
    const a = starts[k], b = ends[k];
    let next = k + 1;
    while (next < to && starts[next] === a && ends[next] === b) next++;
    if (a < sq) add(a, b, next - k);
    k = next;
  }
}

class RowLookup {
  constructor(rows, height) {
    Object.assign(this, { rows, height, a: -1, ya: 0, b: -1, yb: 0 });
  }

  at(v) {
    if (v === this.a) return this.ya;
    if (v === this.b) return this.yb;
    this.b = this.a; this.yb = this.ya;
    this.a = v;
    return (this.ya = pixelsBefore(v, this.rows, this.height));
  }
}

// Colours of the matrix side: the tile of the pixel's middle says the kind, the state says the share that is visible.
// Smaller than three pixels, tiles are left out and the states alone are drawn.
function paintMatrix(image, raster, mask, palette, withTiles) {
  const { states, cols, rows, width, height } = raster, out = new Uint32Array(image.data.buffer);
  const middle = (edges, i) => (edges.first[i] + edges.end[i] - 1) >> 1;
  const tileRow = Int32Array.from({ length: height }, (_, y) => Math.floor(middle(rows, y) / mask.blockM));
  const { empty, partial, partialDark, waste, wasteDark, full } = palette.packed;
  const pitch = palette.hatchPitch, dark = Math.max(1, Math.round(pitch * 0.3));
  for (let x = 0; x < width; x++) {
    const kinds = withTiles ? mask.kindsOfBlock(Math.floor(middle(cols, x) / mask.blockN)) : null;
    for (let y = 0, s = x * height, p = x; y < height; y++, s++, p += width) {
      const state = states[s], kind = kinds ? kinds[tileRow[y]] : state;
      const hatched = (x + y) % pitch < dark;
      if (state === NONE) out[p] = kind === PARTIAL ? (hatched ? wasteDark : waste) : empty;
      else if (state === ALL && kind === FULL) out[p] = full;
      else out[p] = hatched ? partialDark : partial;
    }
  }
}

// Colours of the vector side: hidden, visible, and a shade between where a pixel holds both.
function paintArea(image, raster, palette) {
  const { states, width, height } = raster, out = new Uint32Array(image.data.buffer);
  const shades = [palette.packed.empty, palette.packed.mixed, palette.packed.ground];
  for (let x = 0; x < width; x++)
    for (let y = 0, s = x * height, p = x; y < height; y++, s++, p += width) out[p] = shades[states[s]];
}
