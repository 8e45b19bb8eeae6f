// One or two sentences for every step, with the numbers of the row that is followed.

const INFINITE = 1e29;
const number = (x, digits = 2) => {
  if (x === null || x === undefined || x < -INFINITE) return "−∞";
  return (Math.sign(x) * (Math.abs(x) + 1e-7))
    .toFixed(digits)
    .replace(/^-(0\.?0*)$/, "$1")
    .replace("-", "−");
};
const queriesText = ([a, b]) => (b - a === 1 ? `query ${a}` : `queries ${a} … ${b - 1}`);
const keysText = ([a, b]) => (b - a === 1 ? `key ${a}` : `keys ${a} … ${b - 1}`);
const upper = (text) => text[0].toUpperCase() + text.slice(1);

const FATE = ["Skipped: nothing of it is loaded.", "Computed, with a test of every cell.", "Computed, without a test."];

function stepWords(replay, now, before, row) {
  const { data, own, byColumn } = replay,
    { step, values } = now;
  const say = SENTENCES[step.line];
  const along = byColumn ? queriesText : keysText;
  const tile = step.tile === null ? null : replay.range(...replay.at(step.tile));
  const at = row - own[0];
  return say({ replay, data, step, values, before: before?.values ?? {}, row, at, along, tile, own, byColumn });
}

const visits = ({ replay, byColumn }) => {
  const total = replay.decisions.length,
    n = replay.order.length;
  const kind = byColumn ? "row" : "key";
  if (!n) return `None of the ${total} ${kind} tiles is visited: nothing is visible here.`;
  return `It visits ${n} of ${total} ${kind} tiles, PARTIAL ones first; the order changes no more than rounding.`;
};

const agreement = ({ data }) =>
  `Against the dense reference the largest difference is ${data.worst === 0 ? "0" : data.worst.toExponential(1)}.`;

const hiddenCount = (s) => s.flat().filter((x) => x === null).length;

// What hides cells of a tile, neighbouring keys with the same numbers together.
function hiders(mask, { rows, keys }) {
  const groups = [];
  for (const which of ["lower", "upper"])
    for (let k = keys[0]; k < keys[1]; k++) {
      const [from, to] = which === "lower" ? [mask.lts[k], mask.lte[k]] : [mask.uts[k], mask.ute[k]];
      if (Math.max(from, rows[0]) >= Math.min(to, rows[1])) continue;
      const diagonal = which === "upper" && mask.causal;
      const text = diagonal ? "the causal diagonal" : runWords(mask, which, k).replace(/ \(.*/, "");
      const last = groups.at(-1);
      if (last?.text === text && last.end === k) last.end = k + 1;
      else groups.push({ text, first: k, end: k + 1 });
    }
  const told = groups.slice(0, 4).map(({ text, first, end }) => `${text} of ${keysText([first, end])}`);
  return told.join("; ") + (groups.length > 4 ? "; …" : "");
}

const SENTENCES = {
  decide: ({ step, along, tile, byColumn }) => {
    const { kind, why } = step.wrote.decision;
    const note = why.includes("diagonal") ? " (The diagonal stands for the first row that sees a column.)" : "";
    return `Tile ${step.tile}, ${along(byColumn ? tile.rows : tile.keys)}: ${why}. ${FATE[kind]}${note}`;
  },
  load: (c) =>
    c.byColumn
      ? `The program owns ${keysText(c.own)}, loads their k and v once, and starts with dk = dv = 0. ${visits(c)}`
      : `The program owns ${queriesText(c.own)} and loads them once. ${visits(c)}`,
  scores: ({ along, tile, data, byColumn }) =>
    `${upper(along(byColumn ? tile.rows : tile.keys))} are loaded, and every query meets every key, hidden or not: ` +
    `s = q · k × ${data.scale}.`,
  hide: ({ values, replay, tile }) => {
    const cells = values.s.flat().length,
      hidden = hiddenCount(values.s);
    if (!hidden) return "The test finds no hidden cell: min and max could not tell.";
    return `${hidden} of ${cells} cells become −∞, so that exp makes them 0. Hidden by: ${hiders(replay.mask, tile)}.`;
  },
  max: ({ values, before, row, at }) =>
    `Row ${row}: m_new = max(${number(before.m_i[at])}, ${number(rowMax(values.s[at]))}) = ` +
    `${number(values.m_new[at])}, the largest score so far (framed in every row: the largest of this tile). Subtracted, it keeps exp from overflowing.`,
  exp: ({ values, before, row, at, data }) => {
    if (data.pass !== "forward")
      return "p = exp(s − lse): the probabilities again, from the one number a row that the forward kept. No maximum is needed.";
    const alpha = values.alpha[at];
    const m = `Row ${row}: α = exp(${number(before.m_i[at])} − ${number(values.m_new[at])}) = ${number(alpha)}: `;
    if (values.m_new[at] < -INFINITE) return `Row ${row} has seen no key yet: its p are 0.`;
    if (alpha === 0) return `${m}nothing was summed before.`;
    if (alpha === 1) return `${m}the maximum stays, so do the sums.`;
    return `${m}a larger maximum, so what was summed shrinks by α.`;
  },
  sum: ({ values, before, row, at }) =>
    `Row ${row}: l = ${number(before.l_i[at])} × ${number(values.alpha[at])} + ${number(rowSum(values.p[at]))} = ` +
    `${number(values.l_i[at])}. Divided by l at the end, the p become probabilities.`,
  acc: ({ values, before, row, at, replay, step }) =>
    `Row ${row}: acc = acc × ${number(values.alpha[at])} + p V, in its first place ${number(before.acc[at][0])} × ` +
    `${number(values.alpha[at])} + ${number(values.acc[at][0] - before.acc[at][0] * values.alpha[at])} = ` +
    `${number(values.acc[at][0])}. Tile ${replay.order.indexOf(step.tile) + 1} of ${replay.order.length} is done.`,
  out: (c) => {
    const { values, row, at } = c;
    const one =
      values.lse[at] === null
        ? `Row ${row} sees nothing: out = 0 and lse = −∞.`
        : `Row ${row}: out = acc / ${number(values.l_i[at])}, lse = ${number(values.m_i[at])} + log ` +
          `${number(values.l_i[at])} = ${number(values.lse[at])}.`;
    return `${one} ${agreement(c)}`;
  },
  dp: () => "dp = dO Vᵀ: what a little more of each probability would be worth.",
  dv: ({ row, at, values, before }) =>
    `Key ${row} collects dO of every query, weighted by p: its first place goes from ${number(before.dv[at][0])} to ` +
    `${number(values.dv[at][0])}.`,
  ds: ({ data, tile, row, byColumn }) => {
    const q = byColumn ? tile.rows[0] : row;
    return (
      `ds = p (dp − δ), where δ = rowsum(dO ∘ out); row ${q} has δ = ${number(data.inputs.delta[q])}. A hidden cell has p = 0, so it gets no gradient.`
    );
  },
  dk: ({ row, at, values, before }) =>
    `Key ${row} collects q of every query, weighted by ds: its first place goes from ${number(before.dk[at][0])} to ` +
    `${number(values.dk[at][0])}.`,
  dq: ({ row, at, values, before }) =>
    `Row ${row} collects k of every key, weighted by ds: its first place goes from ${number(before.dq[at][0])} to ` +
    `${number(values.dq[at][0])}.`,
  store: (c) => {
    const scaled = c.byColumn ? "dK is multiplied by the scale, dV is not; both are" : "dQ is multiplied by the scale and";
    return `${scaled} written once, by the only owner: no atomics. ${agreement(c)}`;
  },
};

const rowMax = (row) => row.reduce((a, b) => (b === null ? a : a === null ? b : Math.max(a, b)), null);
const rowSum = (row) => row.reduce((a, b) => a + b, 0);

// How one cell of the grid came about; a tile that is only judged has no scores.
function pairWords(replay, { step }, q, k) {
  const { data, mask } = replay,
    { inputs } = data;
  const products = inputs.q[q].map((x, d) => `${number(x, 1)}·${number(inputs.k[k][d], 1)}`).join(" + ");
  const s = Math.fround(data.scale * inputs.q[q].reduce((sum, x, d) => sum + x * inputs.k[k][d], 0));
  const by = mask.hides(q, k);
  const seen = by.length ? `hidden by ${by.map((which) => runWords(mask, which, k)).join(" and by ")}` : "visible";
  const score = `s = ${data.scale} × (${products}) = ${number(s)}`;
  const then = by.length && step.line !== "scores" ? ", then −∞" : "";
  return [`Query ${q}, key ${k}`, `: ${seen}.${step.line === "decide" ? "" : ` ${score}${then}`}`];
}
