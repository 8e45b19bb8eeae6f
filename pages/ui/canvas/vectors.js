// The vectors as they travel, and the smallest and largest of their numbers over any columns.

// Payload: uint32 length of the head, the head as JSON padded to a multiple of four, then the vectors in head.names,
// each as `head.corners` of its corners (their columns, then their numbers), or for 0 of them as it is.
function decodePayload(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const ints = new Int32Array(bytes.slice(4 + length).buffer);
  let at = 0;
  const take = (count) => ints.subarray(at, (at += count));
  const vectors = head.corners.map((n) => (n ? straightLines(take(n), take(n)) : take(head.seqlen_k)));
  return { head, vectors };
}

// The vector of some corners, which it keeps: columns in rising order, and the numbers there.
function straightLines(columns, numbers) {
  const last = columns.length - 1,
    values = new Int32Array(columns[last] + 1);
  values[0] = numbers[0];
  for (let i = 0; i < last; i++) {
    const step = (numbers[i + 1] - numbers[i]) / (columns[i + 1] - columns[i]);
    for (let k = columns[i], v = numbers[i]; k <= columns[i + 1]; k++, v += step) values[k] = v;
  }
  values.corners = { columns, numbers };
  return values;
}

const levelLine = (sk, number) => straightLines(sk > 1 ? [0, sk - 1] : [0], sk > 1 ? [number, number] : [number]);

// The first row of every column that the causal triangle does not hide.
function diagonalRows(sq, sk) {
  const inside = (k) => Math.min(sk - 1, Math.max(0, k)),
    columns = [...new Set([0, inside(sk - sq), sk - 1])];
  return straightLines(
    columns,
    columns.map((k) => Math.min(sq, Math.max(0, k - (sk - sq)))),
  );
}

// Where in a rising array the numbers from `least` on begin.
function firstFrom(rising, least) {
  let low = 0,
    high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Smallest and largest of the entries [from, to), from a pyramid with 32 entries a step.
function extremes(levels, from, to) {
  let low = Infinity,
    high = -Infinity;
  const take = (level, i) => {
    if (level.low[i] < low) low = level.low[i];
    if (level.high[i] > high) high = level.high[i];
  };
  for (let n = 0; from < to; n++) {
    const last = n === levels.length - 1;
    while (from < to && (last || from % 32)) take(levels[n], from++);
    while (from < to && to % 32) take(levels[n], --to);
    from /= 32;
    to /= 32;
  }
  return [low, high];
}

function buildPyramid(values) {
  const levels = [{ low: values, high: values }];
  while (levels.at(-1).low.length > 32) {
    const { low, high } = levels.at(-1);
    const n = Math.ceil(low.length / 32),
      below = new Int32Array(n),
      above = new Int32Array(n);
    for (let i = 0; i < n; i++) {
      let a = Infinity,
        b = -Infinity;
      for (let k = i * 32, end = Math.min(k + 32, low.length); k < end; k++) {
        if (low[k] < a) a = low[k];
        if (high[k] > b) b = high[k];
      }
      below[i] = a;
      above[i] = b;
    }
    levels.push({ low: below, high: above });
  }
  return levels;
}
