// Pictures of small masks, made of cells that can be pointed at.

const make = (tag, className, text) => {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
};

// A picture: its cells by [query][key], and the grid, into which numbers may follow below the columns.
function picture(n, caption, note = "") {
  const figure = make("figure"),
    grid = make("div", "grid"),
    cells = [];
  const title = make("figcaption", "", `${caption} `);
  title.append(make("small", "", note));
  grid.style.setProperty("--n", n);
  grid.append(make("span"), ...Array.from({ length: n }, (_, k) => make("span", "head", k)));
  for (let q = 0; q < n; q++) {
    grid.append(make("span", "head row", q));
    cells.push(Array.from({ length: n }, () => make("span", "cell")));
    grid.append(...cells[q]);
  }
  figure.append(title, grid);
  return { figure, grid, cells, title };
}

function describe(grid, name, lines) {
  const seen = lines.map((line, q) => {
    const keys = [...line].flatMap((x, k) => (x === "1" ? [k] : []));
    return `query ${q} sees ${keys.length ? `keys ${keys.join(", ")}` : "nothing"}`;
  });
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", `${name}: ${seen.join("; ")}.`);
}

function paintLines(cells, lines) {
  lines.forEach((line, q) => [...line].forEach((x, k) => (cells[q][k].className = x === "1" ? "cell seen" : "cell")));
}
