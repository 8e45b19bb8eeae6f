// The fields of one layer. Each tells `change(text, live)` what the layer reads now; live: the hand is still on it.

// A new element: properties as they are, `data` and attributes with a dash among them, then what it holds.
function made(tag, properties = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "data") Object.assign(element.dataset, value);
    else if (name.includes("-") || name === "role" || name === "list") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...inside.filter((one) => one !== null));
  return element;
}

const STEPS = 100; // places of a slider

const tupleText = (numbers) => `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`;

// A whole number as typed; the old one for what is none.
function wholeNumber(field, before, least) {
  const value = Math.round(Number(field.value));
  const good = field.value.trim() !== "" && Number.isFinite(value);
  const number = good ? Math.max(least ?? -Infinity, value) : before;
  field.value = String(number);
  return number;
}

// The parameters of a pattern that takes a fixed number of them: a slider and a number each, or a tuple of numbers.
function numberFields(layer, say, change) {
  const values = layer.numbers.map((one) => one.value);
  const text = () => `${layer.name}(${values.map((v) => (Array.isArray(v) ? tupleText(v) : v)).join(", ")})`;
  return layer.numbers.map((one, index) => {
    const set = (value, live) => {
      values[index] = value;
      change(text(), live);
    };
    const inputs = (one.many ? tupleInput : numberInputs)(one, index, `${one.name} of ${say}`, set);
    return made("label", { className: "field", title: one.about }, made("span", { textContent: one.name }), ...inputs);
  });
}

// Any other mask: its text as it stands, with every number in it as a field over a slider. What q and k are divided by
// is one number where it is the same: it changes in both places.
function numbersInText(layer, say, change) {
  const parts = layer.parts.map((part) => (typeof part === "string" ? part : part.value));
  const shown = layer.parts.map((part, at) => {
    if (typeof part === "string") return part;
    const index = (at - 1) / 2;
    const inputs = numberInputs(part, index, `number ${index + 1} of ${say}`, (value, live) => {
      const together = (other) => other === part || (part.least === 1 && other.least === 1 && other.value === part.value);
      layer.parts.forEach((other, i) => together(other) && (parts[i] = value));
      change(parts.join(""), live);
    });
    return made("span", { className: "number" }, ...inputs);
  });
  return made("span", { className: "parts" }, ...shown);
}

function tupleInput(one, index, label, set) {
  const field = made("input", {
    type: "text",
    value: one.value.join(", "),
    size: Math.max(6, one.value.join(", ").length),
    data: { at: `n${index}` },
    "aria-label": label,
  });
  field.addEventListener("change", () => {
    const numbers = field.value.match(/\d+/g)?.map(Number) ?? [];
    field.value = numbers.join(", ");
    set(numbers, false);
  });
  return [field];
}

// A slider, if the number has limits, and a field; `set` gets a number, and whether the hand is still on it.
function numberInputs(one, index, label, set) {
  let now = one.value;
  const field = made("input", {
    type: "number",
    value: String(now),
    step: "1",
    data: { at: `n${index}` },
    "aria-label": label,
  });
  if (one.least !== null) field.min = String(one.least);
  const moved = (value, live) => {
    now = value;
    field.value = String(value);
    set(value, live);
  };
  const slider = one.slider && sliderOf(one, index, label, moved);
  field.addEventListener("change", () => {
    const before = now;
    now = wholeNumber(field, before, one.least);
    slider?.place(now);
    if (now !== before) set(now, false);
  });
  return [slider, field].filter(Boolean);
}

// A slider with room for small numbers: its way is the cube root of a long range, and it stops at round numbers; the
// arrow keys go one by one.
function sliderOf({ value, slider: [least, most] }, index, label, say) {
  const long = most - least > STEPS;
  const slider = made("input", {
    type: "range",
    min: "0",
    max: String(long ? STEPS : most - least),
    step: "1",
    data: { at: `s${index}` },
    "aria-label": `${label}, slider`,
  });
  let now = value;
  slider.place = (number) => {
    now = number;
    const share = Math.max(0, number - least) / Math.max(1, most - least);
    slider.value = String(Math.round(long ? STEPS * Math.cbrt(share) : number - least));
    slider.setAttribute("aria-valuetext", grouped(number));
  };
  const numberAt = (place) => {
    if (!long) return least + place;
    if (place === STEPS) return most;
    const share = place / STEPS,
      round = 2 ** Math.floor(Math.log2(Math.max(1, (4.5 * share * share * (most - least)) / STEPS)));
    return least + Math.round((share ** 3 * (most - least)) / round) * round;
  };
  const tell = (live) => {
    now = numberAt(Number(slider.value));
    slider.setAttribute("aria-valuetext", grouped(now));
    say(now, live);
  };
  slider.addEventListener("input", () => tell(true));
  slider.addEventListener("change", () => tell(false));
  slider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    slider.place(Math.min(most, Math.max(least, now + step)));
    say(now, false);
  });
  slider.place(value);
  return slider;
}

// A list of lengths or of tuples as a table, an item a column. How often it repeats is a row of its own.
function listTable(layer, say, change) {
  const { fields, open, tuples, longer, used } = layer.list;
  const items = layer.list.items.map(([count, ...numbers]) => ({ count, numbers }));
  const itemText = ({ count, numbers }) => {
    const one = tuples ? tupleText(numbers) : String(numbers[0]);
    return count === 1 ? one : `repeat(${one}, ${count})`;
  };
  const tell = () => change(`${layer.name}(${items.map(itemText).join(", ")})`, false);
  const rows = [...fields];
  const widest = Math.max(...items.map((item) => item.numbers.length));
  while (open && rows.length < widest + 1) rows.push(`${fields.at(-1)} ${rows.length}`);
  if (open && rows.length > 2) rows[fields.length - 1] = `${fields.at(-1)} 1`;
  const table = made("table", {});
  table.createTHead().insertRow().append(
    ...[...rows, "times", ""].map((textContent) => made("th", { scope: "col", textContent })),
  );
  const body = table.createTBody();
  const cell = (n, name, at, value, set) => {
    const field = made("input", {
      type: "number",
      min: "0",
      step: "1",
      value: value === undefined ? "" : String(value),
      data: { at },
      "aria-label": `${name} of item ${n + 1} of ${say}`,
    });
    field.addEventListener("change", () => set(field));
    return field;
  };
  items.forEach((item, n) => {
    const cells = rows.map((name, r) => {
      if (r > item.numbers.length) return "";
      return cell(n, name, `t${r}.${n}`, item.numbers[r], (field) => {
        if (open && r > 0 && field.value.trim() === "") item.numbers.splice(r, 1);
        else item.numbers[r] = wholeNumber(field, item.numbers[r] ?? 0, 0);
        tell();
      });
    });
    const times = cell(n, "times", `x${n}`, item.count, (field) => {
      item.count = wholeNumber(field, item.count, 0);
      tell();
    });
    const drop = made("button", {
      type: "button",
      textContent: "×",
      title: `Remove item ${n + 1}`,
      "aria-label": `Remove item ${n + 1} of ${say}`,
      disabled: items.length === 1,
      data: { at: `r${n}` },
    });
    drop.addEventListener("click", () => {
      items.splice(n, 1);
      tell();
    });
    body.insertRow().append(...[...cells, times, drop].map((one) => made("td", {}, one)));
  });
  const more = made("button", { type: "button", textContent: "+ one more", data: { at: "more" } });
  more.addEventListener("click", () => change(longer, false));
  const left = layer.keys - used;
  const sum = `${grouped(used)} of ${grouped(layer.keys)} tokens`;
  const says = left > 0 ? `${sum}, ${grouped(left)} left` : left < 0 ? `${sum}: ${grouped(-left)} too many` : sum;
  return made(
    "div",
    { className: "table" },
    made("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": `Items of ${say}` }, table),
    made("p", {}, more, made("span", { textContent: says })),
  );
}

const GROUPED = new Intl.NumberFormat("en-US");
const grouped = (n) => GROUPED.format(n);
