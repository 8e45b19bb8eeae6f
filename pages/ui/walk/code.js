// The algorithms as they are read; the first entry of a line is the step that executes it.

const DECIDE = (tile) => [
  [null, `# tile_runs, once a mask: from min and max alone`],
  [null, `for ${tile} tiles:`],
  ["decide0", "    surely hidden → EMPTY, skip"],
  ["decide1", "    some interval reaches it → PARTIAL"],
  ["decide2", "    none does → FULL"],
];

const CODE = {
  forward: [
    ...DECIDE("j in key"),
    [null, "# forward kernel, one row tile"],
    ["load", "q ← Q[rows];  m ← −∞;  l, acc ← 0"],
    [null, "for j in PARTIAL tiles, then FULL ones:"],
    ["scores", "    s ← q K[j]ᵀ · scale"],
    ["hide", "    if PARTIAL:  s ← −∞ where hidden"],
    ["max", "    m_new ← max(m, rowmax s)"],
    ["exp", "    p ← exp(s − m_new);  α ← exp(m − m_new)"],
    ["sum", "    l ← l · α + rowsum p"],
    ["acc", "    acc ← acc · α + p V[j];  m ← m_new"],
    ["out", "out ← acc / l;  lse ← m + log l"],
  ],
  dkdv: [
    ...DECIDE("i in row"),
    [null, "# dK and dV kernel, one column tile"],
    ["load", "k ← K[keys];  v ← V[keys];  dk, dv ← 0"],
    [null, "for i in PARTIAL tiles, then FULL ones:"],
    ["scores", "    s ← Q[i] kᵀ · scale"],
    ["hide", "    if PARTIAL:  s ← −∞ where hidden"],
    ["exp", "    p ← exp(s − lse[i])"],
    ["dp", "    dp ← dO[i] vᵀ"],
    ["dv", "    dv ← dv + pᵀ dO[i]"],
    ["ds", "    ds ← p ∘ (dp − δ[i])"],
    ["dk", "    dk ← dk + dsᵀ Q[i]"],
    ["store", "dK[keys] ← dk · scale;  dV[keys] ← dv"],
  ],
  dq: [
    ...DECIDE("j in key"),
    [null, "# dQ kernel, one row tile"],
    ["load", "q, dO ← rows;  lse, δ ← rows;  dq ← 0"],
    [null, "for j in PARTIAL tiles, then FULL ones:"],
    ["scores", "    s ← q K[j]ᵀ · scale"],
    ["hide", "    if PARTIAL:  s ← −∞ where hidden"],
    ["exp", "    p ← exp(s − lse)"],
    ["dp", "    dp ← dO V[j]ᵀ"],
    ["ds", "    ds ← p ∘ (dp − δ)"],
    ["dq", "    dq ← dq + ds K[j]"],
    ["store", "dQ[rows] ← dq · scale"],
  ],
};

const LINE_OF = (step) => (step.line === "decide" ? `decide${step.wrote.decision.kind}` : step.line);

// What the grid shows while a line is executed.
const SHOWN = {
  scores: "s",
  hide: "s",
  max: "s",
  exp: "p",
  sum: "p",
  acc: "p",
  dp: "dp",
  dv: "p",
  ds: "ds",
  dk: "ds",
  dq: "ds",
};
const GRID_NAMES = { s: "Scores s", p: "Weights p", dp: "Gradients dp", ds: "Gradients ds" };
