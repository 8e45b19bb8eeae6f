// The sentences: what a cell is, why a tile has its kind, what the whole picture shows.

const GROUPS = new Intl.NumberFormat("en-US");
const grouped = (n) => GROUPS.format(n);
const rowsText = (a, b) => (b - a === 1 ? `row ${a}` : `rows ${a} … ${b - 1}`);
const columnsText = (a, b) => (b - a === 1 ? `column ${a}` : `columns ${a} … ${b - 1}`);
const KIND_WORDS = ["skipped", "partial, tested cell by cell", "full, no test needed"];
const EXPLAINED = "Point at a cell to read it; click to hold its column, row and tile. ";
const HOW_TO_MOVE = "Wheel or pinch zooms, dragging moves, a double click shows all.";

function runWords(mask, which, k) {
  if (which === "lower") {
    if (mask.lte[k] === mask.sq) return `LTS ${mask.lts[k]} (rows ${mask.lts[k]} and below)`;
    return `LTS ${mask.lts[k]} and LTE ${mask.lte[k]} (${rowsText(mask.lts[k], mask.lte[k])})`;
  }
  if (mask.causal) return `the causal diagonal (rows before ${mask.ute[k]})`;
  if (mask.uts[k] === 0) return `UTE ${mask.ute[k]} (rows before ${mask.ute[k]})`;
  return `UTS ${mask.uts[k]} and UTE ${mask.ute[k]} (${rowsText(mask.uts[k], mask.ute[k])})`;
}

function cellWords(mask, q, k) {
  const by = mask.hides(q, k);
  if (!by.length) return "visible";
  return `hidden by ${by.map((which) => runWords(mask, which, k)).join(" and by ")}`;
}

// The comparison of the row block with the minimum and maximum of the vectors that decided a tile's kind.
function tileReason(mask, i, j) {
  const { r0, r1, c0, c1 } = mask.tileRange(i, j),
    kind = mask.kind(i, j);
  const runs = mask.intervalRanges(c0, c1),
    last = r1 - 1;
  const says = runs.map((run, n) => compare(mask, run, n === 0, r0, last, c0, c1));
  if (kind === EMPTY) {
    const one = says.find((s) => s.covers);
    return one
      ? one.text
      : "each of its columns hides all these rows by one run or another, though neither interval alone does " +
          "(the paper's rule would compute it)";
  }
  if (kind === FULL) {
    if (says.some((s) => s.cuts)) return "each column's runs lie above or below these rows";
    return (
      says
        .map((s) => s.text)
        .filter(Boolean)
        .join(" and ") || "nothing is hidden in these columns"
    );
  }
  return says
    .filter((s) => s.cuts || s.covers)
    .map((s) => s.text)
    .join("; ");
}

function compare(mask, run, lower, r0, last, c0, c1) {
  const { minStart, maxStart, minEnd, maxEnd } = run,
    diagonal = !lower && mask.causal;
  const S = lower ? "LTS" : "UTS",
    E = lower ? "LTE" : "UTE";
  const openEnd = minEnd === mask.sq,
    openStart = maxStart === 0;
  const shift = mask.offset ? ` ${mask.offset > 0 ? "-" : "+"} ${Math.abs(mask.offset)}` : "";
  if (maxEnd === 0 || minStart === mask.sq) return { text: "", covers: false, cuts: false };
  if (maxStart <= r0 && minEnd >= last + 1) {
    const start = `its first row ${r0} ≥ max ${S} ${maxStart}`,
      end = `its last row ${last} < min ${E} ${minEnd}`;
    if (diagonal) return { covers: true, text: `its last row ${last} < its first column ${c0}${shift}` };
    return { covers: true, text: openEnd ? start : openStart ? end : `${start} and ${end}` };
  }
  if (minStart > last) return { text: `its last row ${last} < min ${S} ${minStart}` };
  if (maxEnd <= r0)
    return {
      text: diagonal
        ? `its first row ${r0} ≥ its last column ${c1 - 1}${shift}`
        : `its first row ${r0} ≥ max ${E} ${maxEnd}`,
    };
  if (diagonal) return { cuts: true, text: `the causal diagonal crosses it` };
  const range = (name, a, b) => (a === b ? `${name} ${a}` : `${name} ${a} … ${b}`);
  const parts = [openStart ? "" : range(S, minStart, maxStart), openEnd ? "" : range(E, minEnd, maxEnd)].filter(
    Boolean,
  );
  return { cuts: true, text: `${parts.join(" and ")} cut${parts.length > 1 ? "" : "s"} its ${rowsText(r0, last + 1)}` };
}

// [[bold, text], …]: the line under the pictures, for the cell under the pointer.
function cellLine(mask, { q, k }) {
  return [[`Query ${q}, key ${k}`, `: ${cellWords(mask, q, k)}. `], ...tileLine(mask, q, k)];
}

function tileLine(mask, q, k) {
  const i = Math.floor(q / mask.blockM),
    j = Math.floor(k / mask.blockN),
    t = mask.tileRange(i, j),
    kind = mask.kind(i, j);
  const reason = tileReason(mask, i, j);
  return [
    [`Tile (${i}, ${j})`, `, ${rowsText(t.r0, t.r1)} × ${columnsText(t.c0, t.c1)}: `],
    [KIND_WORDS[kind], reason ? `, because ${reason}.` : "."],
  ];
}

function rowLine(mask, q) {
  const { count, runs } = mask.rowSees(q);
  if (!count) return [`Row ${q}`, " sees nothing. "];
  const keys = runs.slice(0, 3).map(([a, b]) => (b - a === 1 ? `${a}` : `${a} … ${b - 1}`));
  if (runs.length > 3) keys.push("…");
  return [`Row ${q}`, ` sees ${grouped(count)} key${count === 1 ? "" : "s"}: ${keys.join(", ")}. `];
}

// The same for a selected cell: its column, its row, its tile.
function selectionLine(mask, { q, k }) {
  const parts = [];
  const upper = mask.uts[k] < mask.ute[k],
    lower = mask.lts[k] < mask.lte[k];
  if (upper)
    parts.push(
      `${rowsText(mask.uts[k], mask.ute[k])} hidden by ` +
        (mask.causal ? "the causal diagonal" : mask.uts[k] ? "UTS and UTE" : "UTE"),
    );
  if (lower)
    parts.push(`${rowsText(mask.lts[k], mask.lte[k])} hidden by ${mask.lte[k] === mask.sq ? "LTS" : "LTS and LTE"}`);
  const seen = mask.visibleRuns(k).map(([a, b]) => rowsText(a, b));
  const visible = seen.length ? `visible to ${seen.join(" and ")}` : "visible to nobody";
  return [[`Column ${k}`, `: ${[...parts, visible].join("; ")}. `], rowLine(mask, q), ...tileLine(mask, q, k)];
}

// [name, smallest, largest, what that says of the tile's rows], a line for each vector that carries information.
function boundsOfTile(mask, i, j) {
  const { r0, r1, c0, c1 } = mask.tileRange(i, j),
    last = r1 - 1;
  const lines = mask.names.map((name) => {
    const [low, high] = mask.range(name, c0, c1),
      starts = name.endsWith("s");
    let says = `${starts ? "begins" : "ends"} inside these rows, in some column`;
    if (low > last) says = starts ? "begins below these rows" : `goes on past row ${last}`;
    else if (high <= r0) says = starts ? `has begun by row ${r0}` : "ends above these rows";
    return [name.toUpperCase(), low, high, says];
  });
  if (mask.causal) {
    const [low, high] = [c0 - mask.offset, c1 - 1 - mask.offset];
    let says = "crosses the tile";
    if (last < low) says = "leaves the tile above it: hidden";
    else if (r0 >= high) says = "leaves the tile below it: not hidden by it";
    lines.push(["diagonal", low, high, says]);
  }
  return lines;
}

function scaleWords(view, width, height) {
  const perX = view.w / width,
    perY = view.h / height;
  if (perX <= 1 && perY <= 1) return "";
  const n = (v) => (v < 10 ? v.toFixed(1) : grouped(Math.round(v)));
  return `1 pixel = ${n(perX)} × ${n(perY)} tokens`;
}

// As many digits as it takes not to call nearly all 100.0, nor nearly nothing 0.0.
function percentText(part, whole) {
  const value = (100 * part) / whole;
  let digits = 1;
  if (part > 0 && part < whole) while ([0, 100].includes(Number(value.toFixed(digits)))) digits++;
  return value.toFixed(digits);
}

function summaryWords(mask) {
  const size = `${grouped(mask.sq)} queries by ${grouped(mask.sk)} keys`,
    share = percentText(mask.visiblePairs, mask.sq * mask.sk);
  const keys =
    "Plus and minus zoom, 0 shows all, arrow keys pan a part or move the selected cell, shift and arrow keys always " +
    "move it, W A S D move it by a tile.";
  const tiles = `Tiles of ${mask.blockM} by ${mask.blockN}.`;
  return `Attention mask, ${size}; ${share} % of the pairs are visible. ${tiles} ${keys}`;
}
