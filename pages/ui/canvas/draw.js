// What lies over the pixels: tile lines, cell borders and numbers, the vectors as boundaries, the selection.

const VECTOR_STYLE = {
  lts: {
    dash: [],
    color: "lower",
    label: "LTS: hidden from this row down",
    paired: "LTS: hidden from here",
    below: true,
  },
  lte: { dash: [7, 3], color: "lower", label: "LTE: hidden up to here", below: false },
  uts: { dash: [2, 3], color: "upper", label: "UTS: hidden from here", below: true },
  ute: { dash: [9, 3, 2, 3], color: "upper", label: "UTE: hidden above this row", below: false },
  diagonal: { dash: [5, 4], color: "upper", label: "causal diagonal", below: false },
};

const COLOR_NAMES = ["ground", "text", "dim", "line", "empty", "partial", "full", "lower", "upper", "select"];

// The palette lives in CSS custom properties; a probe element resolves them for the theme of the moment.
function readPalette(probe, scale) {
  const palette = { packed: {}, scale, hatchPitch: Math.max(5, Math.round(5 * scale)) },
    rgb = {};
  for (const name of COLOR_NAMES) {
    probe.style.color = `var(--fm-${name})`;
    palette[name] = getComputedStyle(probe).color;
    rgb[name] = palette[name]
      .match(/[\d.]+/g)
      .slice(0, 3)
      .map(Number);
    palette.packed[name] = pack(rgb[name]);
  }
  const mix = (a, b, t) => pack(rgb[a].map((v, i) => Math.round(v + (rgb[b][i] - v) * t)));
  const darker = (a, t) => a.map((v) => Math.round(v * (1 - t)));
  palette.dark = luminance(rgb.ground) < 0.5;
  palette.packed.partialDark = pack(darker(rgb.partial, 0.34));
  palette.packed.waste = mix("empty", "partial", 0.3);
  palette.packed.wasteDark = mix("empty", "partial", 0.55);
  palette.packed.thin = palette.dark ? mix("partial", "text", 0.35) : palette.packed.partialDark;
  palette.thin = unpack(palette.packed.thin);
  palette.packed.mixed = mix("ground", "empty", 0.5);
  return palette;
}

const pack = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
const unpack = (color) => `rgb(${color & 255}, ${(color >> 8) & 255}, ${(color >> 16) & 255})`;
const luminance = ([r, g, b]) => (0.299 * r + 0.587 * g + 0.114 * b) / 255;

// Positions in device pixels of a view {c, w, r, h} (first column, columns shown, first row, rows shown).
function scaleOf(view, width, height) {
  return {
    x: (k) => ((k - view.c) / view.w) * width,
    y: (q) => ((q - view.r) / view.h) * height,
    cellX: width / view.w,
    cellY: height / view.h,
  };
}

function drawTileGrid(ctx, mask, view, palette) {
  const { width, height } = ctx.canvas,
    s = scaleOf(view, width, height);
  if (Math.min(s.cellX * mask.blockN, s.cellY * mask.blockM) < 6 * palette.scale) return;
  ctx.strokeStyle = palette.ground;
  ctx.globalAlpha = 0.4;
  ctx.lineWidth = Math.max(1, palette.scale * 0.75);
  ctx.beginPath();
  for (let k = Math.ceil(view.c / mask.blockN) * mask.blockN; k < view.c + view.w; k += mask.blockN) {
    ctx.moveTo(Math.round(s.x(k)), 0);
    ctx.lineTo(Math.round(s.x(k)), height);
  }
  for (let q = Math.ceil(view.r / mask.blockM) * mask.blockM; q < view.r + view.h; q += mask.blockM) {
    ctx.moveTo(0, Math.round(s.y(q)));
    ctx.lineTo(width, Math.round(s.y(q)));
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}

// Cells of 14 CSS pixels and more get borders, and as much of their row and column numbers as fits. Returns the areas
// of the numbers, [x0, y0, x1, y1] each.
function drawCells(ctx, mask, view, palette) {
  const { width, height } = ctx.canvas,
    s = scaleOf(view, width, height),
    cell = Math.min(s.cellX, s.cellY);
  if (cell < 14 * palette.scale) return [];
  const lastK = Math.min(mask.sk, Math.ceil(view.c + view.w)),
    lastQ = Math.min(mask.sq, Math.ceil(view.r + view.h));
  ctx.strokeStyle = palette.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let k = Math.ceil(view.c); k < lastK; k++) line(ctx, s.x(k), 0, s.x(k), height);
  for (let q = Math.ceil(view.r); q < lastQ; q++) line(ctx, 0, s.y(q), width, s.y(q));
  ctx.stroke();
  ctx.font = `${10.5 * palette.scale}px ui-monospace, Menlo, Consolas, monospace`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "center";
  const digits = String(Math.max(mask.sk, mask.sq) - 1).length;
  const every = Math.max(1, Math.ceil(((digits + 1) * 6.6 * palette.scale) / s.cellX));
  const everyRow = Math.max(1, Math.ceil((15 * palette.scale) / s.cellY));
  for (let k = Math.ceil(view.c / every) * every; k < lastK; k += every)
    haloText(
      ctx,
      palette,
      String(k),
      Math.max(s.x(k + 0.5), digits * 4 * palette.scale),
      8 * palette.scale,
      palette.text,
    );
  ctx.textAlign = "left";
  for (let q = Math.ceil(view.r / everyRow) * everyRow; q < lastQ; q += everyRow)
    if (s.y(q + 0.5) > 18 * palette.scale || lastQ === 1)
      haloText(ctx, palette, String(q), 4 * palette.scale, s.y(q + 0.5), palette.text);
  return [
    [0, 0, width, 16 * palette.scale],
    [0, 0, (6 + digits * 7) * palette.scale, height],
  ];
}

function line(ctx, x0, y0, x1, y1) {
  ctx.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  ctx.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
}

// The vectors over the area they outline, every step of them: a pixel that holds many columns gets a stroke from
// their minimum to their maximum. `taken`: areas without labels. Returns the labels, [text, x0, y0, x1, y1] each.
function drawVectors(ctx, mask, view, raster, palette, taken) {
  const lines = strokeVectors(ctx, mask, view, raster, palette),
    room = new Room(lines, taken, ctx.canvas, palette.scale);
  for (const line of lines) labelVector(ctx, mask, line, raster, palette, room);
  labelAreas(ctx, raster, palette, room);
  return room.labels;
}

// The lines alone. Returns of each its style, and for every pixel across its highest and lowest pixel, and where it ends.
function strokeVectors(ctx, mask, view, raster, palette) {
  const { width, height } = ctx.canvas,
    s = scaleOf(view, width, height);
  const edge = palette.scale;
  // A line on the border of the picture is kept whole; one outside the view is not drawn as if it were on the border.
  const y = (v) => {
    const at = Math.min(height + 60, Math.max(-60, s.y(v)));
    return at > -edge && at < edge ? edge : at > height - edge && at < height + edge ? height - edge : at;
  };
  const lines = mask.names.map((name) => [name, name]);
  if (mask.causal) lines.push(["diagonal", "ute"]);
  return lines.map(([style, name]) => {
    const { dash, color } = VECTOR_STYLE[style],
      values = mask[name],
      [top, bottom, at] = [0, 0, 0].map(() => new Float32Array(width));
    ctx.strokeStyle = palette[color];
    ctx.lineWidth = 1.75 * palette.scale;
    ctx.setLineDash(dash.map((d) => d * palette.scale));
    const path = new StraightPath(ctx);
    let restless = 0,
      before = y(values[raster.cols.first[0]]);
    for (let x = 0; x < width; x++) {
      const from = raster.cols.first[x],
        to = raster.cols.end[x],
        a = values[from],
        b = values[to - 1];
      at[x] = y(a);
      top[x] = Math.min(before, at[x]);
      bottom[x] = Math.max(before, at[x]);
      before = at[x];
      if (x && raster.cols.first[x - 1] === from) {
        path.to(x + 1, y(a));
        continue;
      }
      path.to(x, y(a));
      if (to - from > 2) {
        const [low, high] = mask.range(name, from, to);
        if (low < Math.min(a, b) || high > Math.max(a, b)) {
          path.to(x + 0.5, y(low));
          path.to(x + 0.5, y(high));
          top[x] = Math.min(top[x], y(low));
          bottom[x] = Math.max(bottom[x], y(high));
          restless += y(high) - y(low) > 8;
        }
      }
      path.to(x + 1, y(b));
      before = y(b);
      top[x] = Math.min(top[x], before);
      bottom[x] = Math.max(bottom[x], before);
    }
    path.end();
    ctx.globalAlpha = restless > width / 4 ? 0.3 : 1; // where every pixel holds a swarm of numbers, let the area show
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    return { style, at, top, bottom };
  });
}

// A path without the points that lie on the way: a dashed line of a thousand of them takes a software renderer longer
// than everything else in the picture.
class StraightPath {
  constructor(ctx) {
    this.ctx = ctx;
    this.kept = this.last = null;
    ctx.beginPath();
  }

  to(x, y) {
    const { ctx, kept, last } = this;
    if (!kept) {
      ctx.moveTo(x, y);
      this.kept = [x, y];
    } else if (last) {
      const across = (last[0] - kept[0]) * (y - kept[1]) - (last[1] - kept[1]) * (x - kept[0]);
      const onward = (last[0] - kept[0]) * (x - last[0]) + (last[1] - kept[1]) * (y - last[1]);
      const length = Math.hypot(x - kept[0], y - kept[1]);
      if (onward < 0 || length > 96 || Math.abs(across) > 0.15 * length) {
        ctx.lineTo(...last);
        this.kept = last;
      }
    }
    this.last = [x, y];
  }

  end() {
    if (this.last) this.ctx.lineTo(...this.last);
  }
}

// Selected column, row and tile; on the vector side dots where the vectors cross the column.
function drawSelection(ctx, mask, view, palette, spot, { strong, dots }) {
  const { width, height } = ctx.canvas,
    s = scaleOf(view, width, height);
  const tile = mask.tileRange(Math.floor(spot.q / mask.blockM), Math.floor(spot.k / mask.blockN));
  ctx.strokeStyle = palette.select;
  ctx.globalAlpha = strong ? 1 : 0.55;
  ctx.lineWidth = (strong ? 1.4 : 1) * palette.scale;
  ctx.setLineDash([5 * palette.scale, 4 * palette.scale]);
  ctx.beginPath();
  const x = s.x(spot.k + 0.5),
    y = s.y(spot.q + 0.5);
  line(ctx, x, 0, x, height);
  ctx.stroke();
  ctx.globalAlpha = 0.5;
  ctx.beginPath();
  line(ctx, 0, y, width, y);
  ctx.stroke();
  ctx.globalAlpha = strong ? 1 : 0.55;
  ctx.setLineDash([]);
  if (strong) ctx.lineWidth = 2 * palette.scale;
  const w = Math.max(4 * palette.scale, s.x(tile.c1) - s.x(tile.c0)),
    h = Math.max(4 * palette.scale, s.y(tile.r1) - s.y(tile.r0));
  ctx.strokeRect(s.x(tile.c0), s.y(tile.r0), w, h);
  if (s.cellX >= 6 * palette.scale && s.cellY >= 6 * palette.scale)
    ctx.strokeRect(s.x(spot.k), s.y(spot.q), s.cellX, s.cellY);
  if (dots) {
    ctx.fillStyle = palette.select;
    for (const name of mask.names) {
      ctx.beginPath();
      ctx.arc(x, s.y(mask[name][spot.k]), 3.6 * palette.scale, 0, 7);
      ctx.fill();
    }
  }
  ctx.globalAlpha = 1;
}
