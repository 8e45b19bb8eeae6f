// The two layers of a pane: the exact picture below, and what follows the pointer above it.

// A picture that costs more than this is not drawn for every frame of a move. It is moved as it is, and drawn exactly
// again when the view rests or when PAUSE times its cost has passed, so drawing takes a sixth of the time at most.
const SHARP_MS = 9,
  PAUSE = 5;

function drawBase(explorer) {
  const began = performance.now(),
    { mask, view, width, height, palette, exactView, exactAt, cost } = explorer;
  if (explorer.moving && exactView && cost > SHARP_MS && began - exactAt < PAUSE * cost) {
    drawKept(explorer);
    return;
  }
  if (explorer.states?.length !== width * height) explorer.states = new Uint8Array(width * height);
  const raster = rasterise(mask, view, width, height, explorer.states),
    s = scaleOf(view, width, height);
  const withTiles = Math.min(s.cellX * mask.blockN, s.cellY * mask.blockM) >= 3;
  for (const pane of explorer.panes) {
    const ctx = pane.base.getContext("2d");
    if (pane.image?.width !== width || pane.image.height !== height) pane.image = ctx.createImageData(width, height);
    const { image } = pane; // kept from frame to frame: making one costs as much as filling it
    if (pane.side === "matrix") paintMatrix(image, raster, mask, palette, withTiles);
    else paintArea(image, raster, palette);
    ctx.putImageData(image, 0, 0);
    if (pane.side === "matrix") drawTileGrid(ctx, mask, view, palette);
    const numbers = drawCells(ctx, mask, view, palette);
    if (pane.side === "vectors") explorer.labels = drawVectors(ctx, mask, view, raster, palette, numbers);
  }
  explorer.exactView = view;
  explorer.exactAt = performance.now();
  explorer.cost = explorer.exactAt - began;
  explorer.root.dataset.drawMs = explorer.cost.toFixed(1);
  explorer.root.dataset.tiles = withTiles ? "shown" : "reduced";
}

// The last exact picture, moved and stretched to the view of the moment.
function drawKept(explorer) {
  const { exactView: kept, view, width, height, palette } = explorer;
  if (explorer.keptView !== kept) {
    for (const pane of explorer.panes) pane.kept.getContext("2d").drawImage(pane.base, 0, 0);
    explorer.keptView = kept;
  }
  const x = ((kept.c - view.c) / view.w) * width,
    y = ((kept.r - view.r) / view.h) * height;
  for (const pane of explorer.panes) {
    const ctx = pane.base.getContext("2d");
    ctx.fillStyle = palette.empty;
    ctx.fillRect(0, 0, width, height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(pane.kept, x, y, (kept.w / view.w) * width, (kept.h / view.h) * height);
  }
}

function drawOver(explorer) {
  const { mask, view, palette } = explorer;
  for (const pane of explorer.panes) {
    const ctx = pane.over.getContext("2d"),
      dots = pane.side === "vectors";
    ctx.clearRect(0, 0, explorer.width, explorer.height);
    drawBroken(ctx, mask.head.broken, view, palette);
    if (explorer.hovered) drawSelection(ctx, mask, view, palette, explorer.hovered, { strong: false, dots: false });
    if (explorer.selected) drawSelection(ctx, mask, view, palette, explorer.selected, { strong: true, dots });
    explorer.editing.draw(ctx);
  }
}

// The columns in which this mask stands for one that does not fit: a bar on top of them, and a tint.
function drawBroken(ctx, ranges, view, palette) {
  const { width, height } = ctx.canvas,
    s = scaleOf(view, width, height);
  ctx.fillStyle = palette.select;
  for (const [first, behind] of ranges) {
    if (behind <= view.c || first >= view.c + view.w) continue;
    const x = Math.max(0, s.x(first)),
      w = Math.max(palette.scale, Math.min(width, s.x(behind)) - x);
    ctx.globalAlpha = 0.13;
    ctx.fillRect(x, 0, w, height);
    ctx.globalAlpha = 1;
    ctx.fillRect(x, 0, w, Math.round(5 * palette.scale));
  }
}
