// Words inside the pictures, placed where they can be read.

function haloText(ctx, palette, text, x, y, color, halo = palette.ground) {
  ctx.lineJoin = "round";
  ctx.lineWidth = 3.5 * palette.scale;
  ctx.strokeStyle = halo;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = color;
  ctx.fillText(text, x, y);
}

// The label goes beside a level stretch of the vector (or along an inclined one), where most of it lies on hidden area
// and no other label stands.
function labelVector(ctx, mask, style, values, raster, palette, y, taken) {
  const { width, height } = ctx.canvas,
    look = VECTOR_STYLE[style],
    { first } = raster.cols;
  const text = look.paired && mask.names.includes("lte") ? look.paired : look.label;
  ctx.font = `600 ${11.5 * palette.scale}px ${palette.font}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const w = ctx.measureText(text).width,
    h = 16 * palette.scale,
    pad = 8 * palette.scale;
  const stretches = [];
  for (let x = 0, start = 0; x <= width; x++) {
    const same = x < width && Math.abs(y(values[first[x]]) - y(values[first[start]])) < 2;
    if (!same) {
      stretches.push([start, x]);
      start = x;
    }
  }
  stretches.sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
  const inclined = stretches[0][1] - stretches[0][0] < 24 * palette.scale;
  const places = inclined
    ? [0.68, 0.3, 0.5, 0.85].map((f) => Math.round(f * (width - 1))).map((x) => [x, x])
    : stretches.slice(0, 8);
  let best = null;
  for (const [order, [from, to]] of places.entries()) {
    const v = y(values[first[Math.min(from, width - 1)]]);
    if (!inclined && (v < 2 * palette.scale || v > height - 2 * palette.scale)) continue;
    for (const below of [look.below, !look.below])
      for (const wanted of inclined ? [below ? from - w - pad : from + pad] : [from + pad, to - w - pad]) {
        const x = Math.min(Math.max(pad, wanted), width - w - pad),
          cy = inclined ? v : v + (below ? 1 : -1) * 12 * palette.scale;
        const box = [x - 2, cy - h / 2, x + w + 2, cy + h / 2];
        if (cy < h / 2 || cy > height - h / 2 || taken.some((t) => overlaps(t, box))) continue;
        const score = hiddenShare(raster, box) - 0.03 * order - (below === look.below ? 0 : 0.2);
        if (!best || score > best.score) best = { score, x, cy, box };
      }
  }
  if (!best) return;
  taken.push(best.box);
  haloText(ctx, palette, text, best.x, best.cy, palette[look.color], palette.empty);
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
function labelAreas(ctx, raster, palette, taken) {
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
        if (grow + 1 > best && grow + 1 >= 4 && !taken.some((t) => overlaps(t, box))) {
          best = grow + 1;
          place = [cx, cy, box, grow];
        }
      }
    if (!place) continue;
    const [cx, cy, box, grow] = place,
      reach = (grow / 2 / n) * width;
    taken.push([
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
