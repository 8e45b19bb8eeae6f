// Words inside the pictures, placed where they can be read.

function haloText(ctx, palette, text, x, y, color, halo = palette.ground) {
  ctx.lineJoin = "round";
  ctx.lineWidth = 3.5 * palette.scale;
  ctx.strokeStyle = halo;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = color;
  ctx.fillText(text, x, y);
}

// Where a label can stand: inside the picture, on no other one, across no line.
class Room {
  constructor(lines, taken, { width, height }, scale) {
    Object.assign(this, { lines, taken: [...taken], width, height, gap: 3 * scale, labels: [] });
  }

  free(box) {
    const [x0, y0, x1, y1] = box;
    if (x0 < 0 || y0 < 0 || x1 > this.width || y1 > this.height) return false;
    if (this.taken.some((other) => overlaps(other, box))) return false;
    for (const { top, bottom } of this.lines)
      for (let x = Math.ceil(x0), end = Math.min(this.width, x1); x < end; x++)
        if (top[x] - this.gap < y1 && bottom[x] + this.gap > y0) return false;
    return true;
  }

  take(text, box, around = box) {
    this.taken.push(around);
    this.labels.push([text, ...box]);
  }
}

// The label goes beside a level stretch of the line, or beside an inclined one, where most of it lies on hidden area: in
// full where there is room, else its first words, else not at all (the legend below the picture has it too).
function labelVector(ctx, mask, line, raster, palette, room) {
  const look = VECTOR_STYLE[line.style],
    { scale } = palette,
    { at } = line,
    { width } = room;
  const full = look.paired && mask.names.includes("lte") ? look.paired : look.label;
  ctx.font = `600 ${11.5 * scale}px ${palette.font}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const stretches = [];
  for (let x = 0, start = 0; x <= width; x++)
    if (x === width || Math.abs(at[x] - at[start]) >= 2) {
      stretches.push([start, x]);
      start = x;
    }
  stretches.sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
  const level = stretches.filter(([from, to]) => to - from >= 24 * scale).slice(0, 8),
    inclined = [0.68, 0.3, 0.5, 0.85].map((share) => Math.round(share * (width - 1))).map((x) => [x, x]);
  for (const text of new Set([full, full.split(":")[0]])) {
    const best = bestPlace(text, ctx.measureText(text).width);
    if (!best) continue;
    room.take(text, best.box);
    haloText(ctx, palette, text, best.x, best.cy, palette[look.color], palette.empty);
    return;
  }

  function bestPlace(text, w) {
    const h = 15 * scale,
      pad = 8 * scale;
    let best = null;
    for (const [order, [from, to]] of [...level, ...inclined].entries())
      for (const below of [look.below, !look.below]) {
        const xs = from === to ? [below ? from - w - pad : from + pad] : [from + pad, to - w - pad, (from + to - w) / 2];
        for (const wanted of xs) {
          const x = Math.min(Math.max(pad, wanted), width - w - pad),
            cy = at[from] + (below ? 1 : -1) * (from === to ? 8 : 12) * scale,
            box = [x - 2, cy - h / 2, x + w + 2, cy + h / 2];
          const score = hiddenShare(raster, box) - 0.03 * order - (below === look.below ? 0 : 0.2);
          if ((!best || score > best.score) && room.free(box)) best = { score, x, cy, box };
        }
      }
    return best;
  }
}

function hiddenShare({ states, width, height }, [x0, y0, x1, y1]) {
  let hidden = 0;
  for (let i = 0; i < 12; i++)
    for (let j = 0; j < 3; j++) {
      const x = Math.round(x0 + ((x1 - x0) * i) / 11),
        y = Math.round(y0 + ((y1 - y0) * j) / 2);
      if (x >= 0 && x < width && y >= 0 && y < height && states[x * height + y] === NONE) hidden++;
    }
  return hidden / 36;
}

const overlaps = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// "hidden" and "visible" in the middle of their largest squares, found on a coarse grid.
function labelAreas(ctx, raster, palette, room) {
  const { width, height, states } = raster,
    n = 28,
    side = new Uint8Array(n * n);
  ctx.font = `${11 * palette.scale}px ${palette.font}`;
  ctx.textAlign = "center";
  for (const [state, text, color] of [
    [ALL, "visible", palette.text],
    [NONE, "hidden", palette.dim],
    [NONE, "hidden", palette.dim],
  ]) {
    side.fill(0);
    const half = ctx.measureText(text).width / 2 + 4;
    let best = 0,
      place = null;
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        const x = Math.floor(((j + 0.5) / n) * width),
          y = Math.floor(((i + 0.5) / n) * height);
        if (states[x * height + y] !== state) continue;
        const grow = i && j ? Math.min(side[(i - 1) * n + j], side[i * n + j - 1], side[(i - 1) * n + j - 1]) : 0;
        side[i * n + j] = grow + 1;
        const cx = ((j + 0.5 - grow / 2) / n) * width,
          cy = ((i + 0.5 - grow / 2) / n) * height;
        const box = [cx - half, cy - 9 * palette.scale, cx + half, cy + 9 * palette.scale];
        if (grow + 1 > best && grow + 1 >= 4 && room.free(box)) {
          best = grow + 1;
          place = [cx, cy, box, grow];
        }
      }
    if (!place) continue;
    const [cx, cy, box, grow] = place,
      reach = (grow / 2 / n) * width;
    room.take(text, box, [
      Math.min(box[0], cx - reach),
      Math.min(box[1], cy - reach),
      Math.max(box[2], cx + reach),
      Math.max(box[3], cy + reach),
    ]);
    ctx.fillStyle = color;
    ctx.textBaseline = "middle";
    ctx.fillText(text, cx, cy);
  }
}
