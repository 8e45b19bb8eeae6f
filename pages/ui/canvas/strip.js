// The vectors as numbers, around one column: as many columns as the width holds.

class Strip {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.width = 0;
    element.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-k]");
      if (cell) this.choose(Number(cell.dataset.k));
    });
  }

  write(mask, spot, selected) {
    const wide = Math.max(44, String(Math.max(mask.sq, mask.sk)).length * 8 + 14);
    const fits = Math.max(3, Math.floor((this.width - 64) / wide)),
      count = Math.min(mask.sk, fits);
    let from = Math.max(0, Math.min(mask.sk - count, spot.k - Math.floor(count / 2)));
    const stays = this.element.matches(":hover") && this.count === count && this.mask === mask;
    if (stays && spot.k >= this.from && spot.k < this.from + count) from = this.from; // not away from under the pointer
    Object.assign(this, { from, count, mask });
    const key = [mask.head.id, from, count, spot.k, selected?.k].join();
    if (key === this.key) return;
    this.key = key;
    const table = document.createElement("table"),
      columns = Array.from({ length: count }, (_, i) => from + i);
    const row = (head, className, values, tag) => {
      const tr = table.insertRow(),
        th = document.createElement("th");
      th.textContent = head;
      th.scope = "row";
      th.className = className;
      tr.append(th);
      for (const [i, value] of values.entries()) {
        const cell = document.createElement(tag);
        cell.textContent = String(value);
        cell.dataset.k = columns[i];
        if (columns[i] === selected?.k) cell.className = "chosen";
        else if (columns[i] === spot.k) cell.className = "near";
        tr.append(cell);
      }
    };
    row("key", "", columns, "th");
    for (const name of mask.names)
      row(
        name.toUpperCase(),
        name,
        columns.map((k) => mask[name][k]),
        "td",
      );
    this.element.replaceChildren(table);
  }
}
