// Boundaries of documents, and of whatever else has lengths: both pictures show them as edges, and the pointer takes
// hold of one there. What the part before it wins, the part behind it loses.

const CURSORS = { row: "ns-resize", column: "ew-resize", corner: "nwse-resize" };

// The boundary within reach of the pointer, where the picture has an edge along it; null for none.
function cutAt({ mask, view }, [width, height], { q, k, fx, fy, inside }) {
  let best = null;
  for (const cut of inside ? mask.head.cuts : []) {
    const [, , , at] = cut,
      row = at - mask.offset;
    const down = Math.abs(((row - view.r) / view.h - fy) * height),
      across = Math.abs(((at - view.c) / view.w - fx) * width);
    const inRow = down <= REACH && row > 0 && row < mask.sq && mask.visible(row - 1, k) !== mask.visible(row, k),
      inColumn = across <= REACH && at > 0 && at < mask.sk && mask.visible(q, at - 1) !== mask.visible(q, at);
    const away = Math.min(inRow ? down : Infinity, inColumn ? across : Infinity);
    if (away === Infinity || away >= best?.away) continue;
    const corner = down <= REACH && across <= REACH;
    best = { away, move: cutMove(cut, corner ? "corner" : inRow ? "row" : "column") };
  }
  return best && best.move;
}

// The boundary of documents that a level line of the vectors is, if it is one.
function cutOfLine(mask, { name, slope, line }) {
  const cut = slope ? null : mask.head.cuts.find(([, , , at]) => at - mask.offset === line);
  return cut ? { ...cutMove(cut, "row"), name } : null;
}

function cutMove([layer, part, start, at, end, low, high], along) {
  return { cut: [layer, part, at], along, start, line: at, end, by: 0, low: low - at, high: high - at };
}

// By how many tokens the pointer has moved it; at a corner it goes along the diagonal.
function cutSteps({ along, grabbed }, view, { fx, fy }) {
  const rows = (fy - grabbed[1]) * view.h,
    columns = (fx - grabbed[0]) * view.w;
  return Math.round({ row: rows, column: columns, corner: (rows + columns) / 2 }[along]);
}

function cutWords({ line, by, start, end }) {
  const now = line + by;
  return `Boundary ${grouped(line)} → ${grouped(now)}: ${grouped(now - start)} tokens before it, ${grouped(end - now)} behind`;
}

// Both parts as they will be: a square each on the diagonal.
function traceCut(ctx, { line, by, start, end }, s, offset) {
  for (const [from, to] of [[start, line + by], [line + by, end]])
    ctx.rect(s.x(from), s.y(from - offset), s.x(to) - s.x(from), s.y(to - offset) - s.y(from - offset));
}
