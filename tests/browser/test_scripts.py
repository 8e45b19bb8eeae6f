"""The canvas's arithmetic without the app: random vectors, every answer counted cell by cell."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).resolve().parents[2] / "pages" / "ui" / "canvas"

COMPARE = """
(source) => {
  const { MaskVectors, straightLines, joinedKinds } = new Function(
    source + "; return { MaskVectors, straightLines, joinedKinds };")();
  let seed = 1;
  const dice = (n) => Math.floor(((seed = (seed * 48271) % 2147483647) / 2147483647) * n);
  const wrong = [], names = ["lts", "lte", "uts", "ute"];

  const steps = (sq, sk) => {
    const same = 1 + dice(20), values = new Int32Array(sk);
    for (let k = 0; k < sk; k++) values[k] = k % same ? values[k - 1] : dice(sq + 1);
    return values;
  };
  const lines = (sq, sk) => {
    const columns = [0], numbers = [dice(sq + 1)];
    while (columns.at(-1) < sk - 1) columns.push(Math.min(sk - 1, columns.at(-1) + 1 + dice(20)));
    for (let i = 1; i < columns.length; i++)
      numbers.push(numbers[i - 1] + (dice(3) - 1) * (columns[i] - columns[i - 1]));
    return numbers.every((v) => v >= 0 && v <= sq) ? straightLines(columns, numbers) : steps(sq, sk);
  };

  for (let round = 0; round < 300; round++) {
    const sq = 1 + dice(60), sk = 1 + dice(90), causal = dice(3) === 0;
    const sent = causal ? names.slice(0, 1 + dice(2)) : names;
    const vectors = sent.map(() => (dice(2) ? lines : steps)(sq, sk));
    const head = { seqlen_q: sq, seqlen_k: sk, causal, names: sent, block_m: 1 + dice(20), block_n: 1 + dice(20),
      rule: "exact" };
    const mask = new MaskVectors({ head, vectors });
    const check = (what, got, wanted) =>
      JSON.stringify(got) === JSON.stringify(wanted) || wrong.push([what, round, got, wanted]);

    const diagonal = Array.from({ length: sk }, (_, k) => Math.min(sq, Math.max(0, k - sk + sq)));
    if (causal) check("diagonal", [...mask.ute], diagonal);
    for (const name of names) {
      const from = dice(sk), to = from + 1 + dice(sk - from), part = [...mask[name]].slice(from, to);
      check("range of " + name, mask.range(name, from, to), [Math.min(...part), Math.max(...part)]);
    }
    const seen = (q, k) => !(q >= mask.lts[k] && q < mask.lte[k]) && !(q >= mask.uts[k] && q < mask.ute[k]);
    const kindOf = (i, j, m, n) => {
      let visible = 0, all = 0;
      for (let q = i * m; q < Math.min(sq, (i + 1) * m); q++)
        for (let k = j * n; k < Math.min(sk, (j + 1) * n); k++, all++) visible += seen(q, k);
      return visible === 0 ? 0 : visible === all ? 2 : 1;
    };
    const columnOf = (j, m, n) => Array.from({ length: Math.ceil(sq / m) }, (_, i) => kindOf(i, j, m, n));
    const { blockM, blockN } = mask, merged = [1 + dice(40), 1 + dice(40)], joined = joinedKinds(mask, ...merged);
    for (let j = 0; j < mask.tilesN; j++) check("tiles", [...mask.kindsOfBlock(j)], columnOf(j, blockM, blockN));
    for (let j = 0; j < Math.ceil(sk / merged[1]); j++) check("joined tiles", [...joined(j)], columnOf(j, ...merged));
    const i = dice(mask.tilesM), q = dice(sq);
    check("row of tiles", [...mask.kindsOfRow(i)],
      Array.from({ length: mask.tilesN }, (_, j) => kindOf(i, j, blockM, blockN)));
    check("row", mask.rowSees(q).count, Array.from({ length: sk }, (_, k) => seen(q, k)).filter(Boolean).length);
    let pairs = 0;
    for (let r = 0; r < sq; r++) for (let k = 0; k < sk; k++) pairs += seen(r, k);
    check("visible pairs", mask.visiblePairs, pairs);
  }
  return wrong.slice(0, 3);
}
"""


def test_ranges_tiles_and_rows_of_random_masks(chromium):
    names = ("vectors", "mask", "levels", "view", "raster", "tiles")
    page = chromium.new_page()
    try:
        source = "".join((FOLDER / f"{name}.js").read_text("utf-8") for name in names)
        assert page.evaluate(COMPARE, source) == []
    finally:
        page.close()
