// The kinds of exercises: each builds its figures, sets what is answered on the board, and paints (answer, wrong, right).

const KINDS = ["skipped", "partial", "full"];

function rowBoard(board, task) {
  const { figure, grid, cells } = picture(task.n, "Causal attention", "rows are queries, columns are keys");
  paintLines(cells, task.target);
  const buttons = cells[task.row].map((cell, k) => {
    const button = make("button", "cell");
    Object.assign(button, { type: "button", ariaLabel: `query ${task.row} sees key ${k}` });
    button.addEventListener("click", () => board.set(k, board.answer[k] ? 0 : 1));
    cell.replaceWith(button);
    return button;
  });
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", `Causal attention; every row but row ${task.row} is filled`);
  return {
    elements: [figure],
    paint: (answer, wrong) =>
      buttons.forEach((button, k) => {
        button.className = `cell ${answer[k] ? "seen" : ""} ${wrong.has(`${task.row},${k}`) ? "wrong" : ""}`;
        button.textContent = wrong.has(`${task.row},${k}`) ? "?" : "";
        button.ariaPressed = String(Boolean(answer[k]));
      }),
  };
}

function vectorsBoard(board, task) {
  const { n, names, causal } = task,
    elements = [];
  if (task.target) {
    const goal = picture(n, "The goal");
    goal.figure.className = "goal";
    paintLines(goal.cells, task.target);
    describe(goal.grid, "The goal", task.target);
    elements.push(goal.figure);
  }
  const mine = picture(n, "Yours", causal ? "causal = True" : "causal = False"),
    inputs = [];
  let active = names[0];
  const focused = new Set();
  for (const name of names) {
    mine.grid.append(make("span", `head row name ${name[0]}`, name.toUpperCase()));
    for (let k = 0; k < n;) {
      const index = task.numbers.findIndex(([vector, first]) => vector === name && first === k);
      if (index < 0) {
        mine.grid.append(make("span", "given", task.given[name][k++]));
        continue;
      }
      const [, first, end] = task.numbers[index],
        input = make("input", "number");
      Object.assign(input, { type: "number", min: 0, max: n, inputMode: "numeric" });
      input.style.gridColumn = `span ${end - first}`;
      const whose = end - first > 1 ? `keys ${first} to ${end - 1}` : `key ${first}`;
      input.ariaLabel = `${name.toUpperCase()} of ${whose}`;
      input.addEventListener("input", () => {
        const typed = Number(input.value);
        board.set(index, input.value !== "" && Number.isInteger(typed) ? typed : null);
      });
      input.addEventListener("focus", () => {
        active = name;
        focused.clear();
        focused.add(index);
        input.select();
        board.paint();
      });
      input.addEventListener("blur", () => {
        focused.delete(index);
        board.paint();
      });
      inputs[index] = input;
      mine.grid.append(input);
      k = end;
    }
  }
  const touch = (q, k) => {
    const covers = ([, first, end]) => first <= k && k < end;
    let index = task.numbers.findIndex((x) => x[0] === active && covers(x));
    if (index < 0) index = task.numbers.findIndex(covers);
    if (index < 0) return;
    const [vector] = task.numbers[index],
      value = vector.endsWith("s") ? q : q + 1;
    board.set(index, board.answer[index] === value ? (vector[0] === "l" ? n : 0) : value);
    active = vector;
  };
  mine.cells.forEach((row, q) => row.forEach((cell, k) => cell.addEventListener("click", () => touch(q, k))));
  mine.grid.classList.add("clickable");
  elements.push(mine.figure);
  const how = make("p", "how");
  for (const [hider, own] of [
    ["low", names.filter((name) => name[0] === "l")],
    ["up", names.filter((name) => name[0] === "u")],
  ])
    if (own.length) how.append(make("i", `cell ${hider}`), `hidden by ${own.join(", ").toUpperCase()}`);
  if (causal) how.append(make("i", "cell"), "hidden by causal");
  how.append(make("i", "cell seen"), "visible");
  elements.push(how);

  const columns = (answer) => {
    const of = Object.fromEntries(names.map((name) => [name, [...task.given[name]]]));
    task.numbers.forEach(([name, first, end], i) => of[name].fill(answer[i], first, end));
    return of;
  };
  const hider = (of, q, k) => {
    if (causal && k > q) return "tri";
    if (q >= of.lts[k] && q < (of.lte?.[k] ?? n)) return "low";
    if (!causal && q >= (of.uts?.[k] ?? 0) && q < of.ute[k]) return "up";
    return "seen";
  };
  return {
    elements,
    paint: (answer, wrong) => {
      const of = columns(answer);
      const lines = mine.cells.map((row, q) =>
        row
          .map((cell, k) => {
            const by = hider(of, q, k);
            cell.className = `cell ${by} ${wrong.has(`${q},${k}`) ? "wrong" : ""}`;
            cell.textContent = wrong.has(`${q},${k}`) ? "≠" : "";
            return by === "seen" ? "1" : "0";
          })
          .join(""),
      );
      describe(mine.grid, "Your picture", lines);
      for (const index of focused) {
        const [, first, end] = task.numbers[index],
          at = answer[index];
        if (at === null || at < 0 || at > n) continue;
        for (let k = first; k < end; k++)
          mine.cells[Math.min(at, n - 1)][k].classList.add("edge", ...(at === n ? ["under"] : []));
      }
      inputs.forEach((input, i) => {
        if (answer[i] !== null && input.value !== String(answer[i])) input.value = answer[i];
      });
    },
  };
}

function tilesBoard(board, task) {
  const { n, block, row_tile } = task,
    { figure, grid, cells } = picture(n, "Two documents", `tiles of ${block} × ${block}`);
  figure.className = "wide";
  const first = row_tile * block;
  const choices = task.bounds.map(([low, high], tile) => {
    const span = make("div", "span");
    span.style.gridColumn = `span ${block}`;
    span.append(make("div", "", `min ${low}`), make("div", "", `max ${high}`));
    const group = make("div");
    group.setAttribute("role", "radiogroup");
    group.ariaLabel = `Tile ${tile}, keys ${tile * block} to ${(tile + 1) * block - 1}, LTS from ${low} to ${high}`;
    KINDS.forEach((kind, value) => {
      const label = make("label"),
        radio = make("input");
      Object.assign(radio, { type: "radio", name: `tile${tile}`, value });
      radio.addEventListener("change", () => board.set(tile, value));
      label.append(radio, kind);
      group.append(label);
    });
    span.append(group);
    return span;
  });
  grid.append(make("span", "head row name l", "LTS"), ...choices);
  return {
    elements: [figure],
    paint: (answer, wrong, right) => {
      paintLines(cells, task.target);
      cells.forEach((row, q) =>
        row.forEach((cell, k) => {
          if (q >= first && q < first + block && !right) {
            cell.className = "cell unknown";
            cell.textContent = "?";
          } else cell.textContent = "";
          if (k % block === 0 && k) cell.classList.add("line-left");
          if (q % block === 0 && q) cell.classList.add("line-top");
        }),
      );
      choices.forEach((span, tile) =>
        span.querySelectorAll("input").forEach((radio, value) => (radio.checked = answer[tile] === value)),
      );
      describe(
        grid,
        "The mask",
        task.target.filter((_, q) => right || q < first || q >= first + block),
      );
    },
  };
}

function misfitBoard(board, task) {
  const all = make("div", "choices");
  const radios = task.choices.map(([caption, lines], i) => {
    const { figure, grid, cells, title } = picture(task.n, ""),
      label = make("label"),
      radio = make("input");
    paintLines(cells, lines);
    describe(grid, caption, lines);
    Object.assign(radio, { type: "radio", name: "choice", value: i });
    radio.addEventListener("change", () => board.set(0, i));
    grid.addEventListener("click", () => board.set(0, i));
    grid.classList.add("clickable");
    label.append(radio, caption);
    title.replaceChildren(label);
    all.append(figure);
    return radio;
  });
  const count = make("label", "count", `Hidden runs of its key ${task.column}`),
    input = make("input", "number");
  Object.assign(input, { type: "number", min: 0, max: 99, inputMode: "numeric" });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("input", () => board.set(1, input.value === "" ? null : Number(input.value)));
  count.append(input);
  return {
    elements: [all, count],
    paint: (answer) => {
      radios.forEach((radio, i) => (radio.checked = answer[0] === i));
      if (answer[1] !== null && input.value !== String(answer[1])) input.value = answer[1];
    },
  };
}

// Any mask: how it is packed, or that it does not fit; then the numbers of that packing.
function freeBoard(board, task) {
  const { n, names, options } = task,
    select = make("select"),
    label = make("label", "packing", "Packed as"),
    place = make("div", "figures");
  options.forEach((option, i) => {
    const text = option
      ? `causal = ${option[0] ? "True" : "False"}: ${option[1].join(", ").toUpperCase()}`
      : "it does not fit";
    const choice = make("option", "", text);
    choice.value = i;
    select.append(choice);
  });
  select.addEventListener("change", () => board.set(0, Number(select.value)));
  label.append(select);
  let shown = null,
    inner = null,
    places = [];
  const build = (option) => {
    shown = option;
    inner = null;
    place.replaceChildren();
    if (!options[option]) return;
    const [causal, packed] = options[option];
    const numbers = packed.flatMap((name) => Array.from({ length: n }, (_, k) => [name, k, k + 1, ""]));
    places = numbers.map(([name, k]) => 1 + n * names.indexOf(name) + k);
    const part = {
      get answer() {
        return places.map((i) => board.answer[i]);
      },
      set: (i, value) => board.set(places[i], value),
      paint: () => board.paint(),
    };
    inner = vectorsBoard(part, {
      n,
      causal,
      names: packed,
      numbers,
      given: Object.fromEntries(packed.map((name) => [name, Array(n).fill(0)])),
      target: null,
    });
    place.append(...inner.elements);
  };
  return {
    elements: [label, place],
    paint: (answer, wrong, right) => {
      if (shown !== answer[0]) build(answer[0]);
      select.value = answer[0];
      inner?.paint(
        places.map((i) => answer[i]),
        wrong,
        right,
      );
    },
  };
}

const BOARDS = { row: rowBoard, vectors: vectorsBoard, tiles: tilesBoard, misfit: misfitBoard, free: freeBoard };
