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

// States of a view, column after column: states[x * height + y]. `states` may be the array of an earlier frame.
function rasterise(mask, view, width, height, states = new Uint8Array(width * height)) {
  const cols = pixelEdges(view.c, view.w, width, mask.sk),
    rows = pixelEdges(view.r, view.h, height, mask.sq);
  const counter = mask.counter(rows, height),
    { whole, touched } = counter;
  for (let x = 0; x < width; x++) {
    const base = x * height,
      from = cols.first[x],
      to = cols.end[x];
    if (x && from === cols.first[x - 1] && to === cols.end[x - 1]) {
      states.copyWithin(base, base - height, base);
      continue;
    }
    counter.count(from, to);
    for (let y = 0, w = 0, t = 0; y < height; y++) {
      w += whole[y];
      t += touched[y];
      states[base + y] = w === to - from ? NONE : t === 0 ? ALL : SOME;
    }
  }
  return { states, cols, rows, width, height };
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
