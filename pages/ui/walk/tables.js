// The tables of the walk: the grid of one tile, what the program keeps, the tiles of the loop, the lines of the code.

const element = (tag, text, attributes = {}) => {
  const e = document.createElement(tag);
  if (text !== null) e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
};

function table(heads, rows) {
  const out = element("table", null),
    top = out.createTHead().insertRow();
  heads.forEach((text) => top.append(element("th", text, { scope: "col" })));
  const body = out.createTBody();
  for (const [label, cells, className] of rows) {
    const line = body.insertRow();
    line.className = className ?? "";
    const head = element("th", null, { scope: "row" });
    head.append(label);
    line.append(head, ...cells);
  }
  return out;
}

// ---- the grid ------------------------------------------------------------------------------------------------

// [title, what is small beside it, table]
function gridOf(replay, now, follow) {
  const { data, mask } = replay,
    { step, values } = now;
  if (step.tile === null) return ownGrid(replay, now);
  const [i, j] = replay.at(step.tile),
    { rows, keys } = replay.range(i, j);
  const kind = KIND_NAMES[replay.decisions[step.tile].kind];
  const name = SHOWN[step.line];
  const [low, high] = name ? replay.limits(name) : [0, 1];
  const lines = [];
  for (let q = rows[0]; q < rows[1]; q++) {
    const cells = [],
      largest = step.line === "max" ? rowMax(values.s[q - rows[0]]) : null;
    for (let k = keys[0]; k < keys[1]; k++) {
      const x = name ? values[name][q - rows[0]][k - keys[0]] : undefined;
      const hidden = !mask.visible(q, k) && (step.line === "decide" || replay.decisions[step.tile].kind !== FULL);
      const shaded = x !== undefined && x !== null && !(hidden && name !== "s");
      const text = x === undefined || x === null ? (hidden && digits >= 0 ? "hid" : "") : walkerDigits(x);
      const cell = element("td", text, { "data-q": q, "data-k": k });
      if (x !== undefined && x !== null) cell.dataset.value = x;
      if (shaded) cell.style.setProperty("--t", ((x - low) / (high - low || 1)).toFixed(3));
      cell.className = [
        hidden && (x === null || name !== "s") ? "hidden" : shaded ? "shaded" : "seen",
        (replay.byColumn ? k : q) === follow ? "followed" : "",
        x !== undefined && x !== null && x === largest ? "largest" : "",
      ].join(" ");
      cells.push(cell);
    }
    lines.push([q, cells]);
  }
  const what = name === "p" && data.pass !== "forward" ? "Probabilities p" : GRID_NAMES[name]; // divided by l there
  const title = name ? `${what} of tile (${i}, ${j})` : `Tile (${i}, ${j}), not loaded`;
  const heads = ["", ...Array.from({ length: keys[1] - keys[0] }, (_, n) => keys[0] + n)];
  const out = table(heads, lines);
  out.className = digits < 0 ? "bare" : "";
  return [title, kind, out];
}

// Before and behind the loop: what the program owns.
function ownGrid(replay, { values }) {
  const { own, byColumn } = replay;
  const name = byColumn ? "k" : "q",
    x = values[name];
  const lines = x.map((row, n) => [own[0] + n, row.map((v) => element("td", number(v, 1), { class: "seen" }))]);
  return [`${name} of ${byColumn ? keysText(own) : queriesText(own)}`, "", table(["", ...places(x[0])], lines)];
}

const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";
const places = (row, name = "d") => row.map((_, d) => `${name}${SUBSCRIPTS[d]}`);
let digits = 2; // as many as the cells have room for, -1 for shades alone
const walkerDigits = (x) => (digits < 0 ? "" : number(x, digits));

// ---- what the program keeps ----------------------------------------------------------------------------------

// [title, table]; a column is [its head, the name of the value, place or null].
function keptTable(replay, now, follow) {
  const { data, own, byColumn } = replay,
    { values, changed, step } = now;
  const wide = (name) => [0, 1, 2, 3].map((d) => [`${name}${SUBSCRIPTS[d]}`, name, d]);
  let columns;
  if (data.pass === "forward")
    columns =
      step.line === "out"
        ? [["m", "m_i", null], ["l", "l_i", null], ["lse", "lse", null], ...wide("out")]
        : [["m", "m_i", null], ["l", "l_i", null], ["α", "alpha", null], ...wide("acc")];
  else if (byColumn) columns = [...wide("dk"), ...wide("dv")];
  else columns = [["lse", "lse", null], ["δ", "delta", null], ...wide("dq")];
  const constant = byColumn ? {} : { lse: data.inputs.lse?.slice(...own), delta: data.inputs.delta?.slice(...own) };
  const of = (name, n, d) => {
    const value = values[name]?.[n] ?? (name in values ? null : constant[name]?.[n]);
    return d === null || value === undefined || value === null ? value : value[d];
  };
  const started = "q" in values || "k" in values;
  const lines = Array.from({ length: own[1] - own[0] }, (_, n) => [
    element("button", own[0] + n, {
      type: "button",
      "data-own": own[0] + n,
      "aria-pressed": own[0] + n === follow,
      title: "Follow it",
    }),
    columns.map(([, name, d]) => {
      const x = started ? of(name, n, d) : undefined;
      const cell = element("td", x === undefined ? "" : number(x), { class: changed.has(name) ? "changed" : "" });
      if (x !== undefined) cell.dataset.value = x;
      cell.dataset.own = own[0] + n;
      return cell;
    }),
    own[0] + n === follow ? "followed" : "",
  ]);
  const whose = byColumn ? keysText(own) : queriesText(own);
  const out = table([byColumn ? "key" : "row", ...columns.map(([head]) => head)], lines);
  return [`Kept for ${whose}`, out];
}

// ---- the tiles of the loop -----------------------------------------------------------------------------------

function stripOf(replay, now) {
  return replay.decisions.map(({ kind, why }, tile) => {
    const { rows, keys } = replay.range(...replay.at(tile));
    const decided = tile < now.decided,
      place = replay.order.indexOf(tile),
      done = now.visited.includes(tile);
    const item = element("li", null, { class: ["empty", "partial", "full"][kind] });
    const button = element("button", null, { type: "button", "data-tile": tile });
    if (now.tile === tile) button.setAttribute("aria-current", "step");
    const head = element("b", `tile ${tile}`);
    head.prepend(element("i", null, { class: `key ${decided ? KIND_NAMES[kind] : "ground"}` }));
    if (decided && place >= 0) head.append(element("small", `${done ? "✓ " : ""}visit ${place + 1}`));
    button.append(head, element("span", replay.byColumn ? queriesText(rows) : keysText(keys)));
    button.append(element("span", decided ? `${["skipped", "partial", "full"][kind]}: ${why}` : "not judged yet"));
    item.classList.toggle("pending", !decided);
    item.append(button);
    return item;
  });
}

// ---- the code ------------------------------------------------------------------------------------------------

function codeLines(replay) {
  return CODE[replay.data.pass].map(([line, text]) => {
    const at = line && replay.nextOf(line, 0);
    const used = line && LINE_OF(replay.steps[at]) === line;
    const out = element(used ? "button" : "span", text);
    if (used) Object.assign(out, { type: "button" }).dataset.line = line;
    return out;
  });
}
