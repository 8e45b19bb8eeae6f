// The whole mask, the loop that is walked in full colour, the tile of the moment framed.

function drawWhere(walker) {
  const { replay, now, canvas, palette } = walker,
    { mask, data, byColumn } = replay;
  const ratio = Math.min(1.25, Math.max(0.3, mask.sq / mask.sk));
  walker.root.style.setProperty("--fm-ratio", String(1 / ratio));
  const box = canvas.getBoundingClientRect(),
    scale = palette.scale;
  const width = Math.round(box.width * scale),
    height = Math.round(box.height * scale);
  if (width < 2 || height < 2) return;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const ctx = canvas.getContext("2d"),
    view = wholeView(mask);
  const image = ctx.createImageData(width, height);
  paintMatrix(image, rasterise(mask, view, width, height), mask, palette, true);
  ctx.putImageData(image, 0, 0);
  drawTileGrid(ctx, mask, view, palette);
  const x = (k) => (k / mask.sk) * width,
    y = (q) => (q / mask.sq) * height;
  const [a, b] = replay.own;
  ctx.fillStyle = palette.ground;
  ctx.globalAlpha = 0.62;
  for (const [from, to] of [
    [0, a],
    [b, byColumn ? mask.sk : mask.sq],
  ])
    if (byColumn) ctx.fillRect(x(from), 0, x(to) - x(from), height);
    else ctx.fillRect(0, y(from), width, y(to) - y(from));
  ctx.globalAlpha = 1;
  const frame = ([r0, r1], [c0, c1], color, line) => {
    ctx.strokeStyle = color;
    ctx.lineWidth = line * scale;
    const inset = (line * scale) / 2;
    ctx.strokeRect(x(c0) + inset, y(r0) + inset, x(c1) - x(c0) - 2 * inset, y(r1) - y(r0) - 2 * inset);
  };
  if (byColumn) frame([0, mask.sq], replay.own, palette.text, 1.5);
  else frame(replay.own, [0, mask.sk], palette.text, 1.5);
  for (const tile of now.visited) {
    const { rows, keys } = replay.range(...replay.at(tile));
    frame(rows, keys, palette.text, 1);
  }
  if (now.tile !== null) {
    const { rows, keys } = replay.range(...replay.at(now.tile));
    frame(rows, keys, palette.select, 3);
  }
}

const whereWords = ({ data, mask }) =>
  `The mask with its tiles, ${mask.sq} queries by ${mask.sk} keys in tiles of ${data.block_m} by ${data.block_n}; the ` +
  `${data.pass === "dkdv" ? "column" : "row"} tile ${data.line} is walked. Up and down arrow keys choose another.`;
