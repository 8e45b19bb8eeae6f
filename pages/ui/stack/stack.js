// The stack of layers. What is changed here shows at once and is told to the server as the whole stack; what comes back
// is taken when it answers the last thing told.

const LIVE_MS = 120; // between two messages while a slider moves
const JOINS = { "&": "and", "|": "or" };
const STALE = ["The text is not a mask yet: its layers show when it is.", "Layers of the last text that was a mask."];

class Stack {
  constructor(root) {
    Object.assign(this, { root, layers: null, shown: [], told: 0, last: 0 });
    Object.assign(this, { open: new Set(), written: new Set() }); // numbers of layers: table unfolded, shown as text
    this.cards = made("div", { className: "cards", role: "list", "aria-label": "Layers of the mask" });
    this.says = made("p", { className: "says", role: "status" });
    this.kind = made("select", { "aria-label": "Layer to add", data: { at: "kind" } });
    this.join = made("select", { "aria-label": "Join it by", data: { at: "join" } });
    this.join.append(...["&", "|"].map((value) => made("option", { value, textContent: JOINS[value] })));
    this.more = made("button", { type: "button", textContent: "Add" });
    this.more.addEventListener("click", () => this.add());
    this.adding = made("div", { className: "adding" }, this.join, this.kind, this.more);
    root.replaceChildren(this.cards, this.adding, this.says);
    for (const told of ["focusin", "change"])
      root.addEventListener(told, ({ target }) => (this.entered = target.value));
  }

  destroy() {
    clearTimeout(this.waiting);
  }

  update(data, report) {
    this.report = report;
    this.heard = data.heard;
    if (this.gesture || (this.pending && data.heard < this.told)) return; // what comes later answers all of it
    this.pending = false;
    this.take(data);
  }

  take(data) {
    if (JSON.stringify(data.new) !== this.known) {
      const chosen = this.kind.value || "sliding_window";
      this.known = JSON.stringify(data.new);
      this.new = data.new;
      this.kind.replaceChildren(
        ...Object.keys(data.new).map((name) =>
          made("option", { value: name, textContent: name }),
        ),
      );
      this.kind.value = chosen;
    }
    this.root.dataset.layers = data.layers ? data.layers.length : "none";
    this.root.dataset.heard = data.heard;
    this.adding.hidden = data.layers === null;
    this.cards.inert = this.adding.inert = data.stale;
    this.root.dataset.stale = data.stale;
    this.says.textContent = data.stale ? STALE[data.layers === null ? 0 : 1] : (data.problem?.says ?? "");
    if (data.problem) return; // what was typed stays as it is
    this.layers = (data.layers ?? []).map((layer) => ({ ...layer, keys: data.keys }));
    this.draw();
  }

  draw() {
    const active = this.root.getRootNode().activeElement,
      at = active?.dataset?.at,
      holder = active?.closest?.(".card"),
      focused = holder ? this.shown.findIndex((one) => one.card === holder) : -1,
      typing = /^(text|number)$/.test(active?.type) && active.value !== this.entered; // and has not told of it yet
    const { layers, shown } = this,
      before = shown.length;
    layers.forEach((layer, n) => {
      const key = JSON.stringify([layer, layers.length, this.open.has(n), this.written.has(n)]);
      if (shown[n]?.key === key || (typing && shown[n]?.card === holder)) return;
      const card = this.card(layer, n);
      if (shown[n]) shown[n].card.replaceWith(card);
      else this.cards.append(card);
      shown[n] = { key, card };
    });
    for (const { card } of shown.splice(layers.length)) card.remove();
    if (before && layers.length === before + 1 && !holder) this.cards.scrollTop = this.cards.scrollHeight;
    if (this.goTo || (holder && !holder.isConnected)) this.focus(focused, at);
  }

  focus(n, at) {
    const wanted = this.goTo ?? [n, at];
    this.goTo = null;
    const { card } = this.shown[Math.min(wanted[0], this.shown.length - 1)] ?? {};
    const field = wanted[0] >= 0 && card?.querySelector(`[data-at="${wanted[1]}"]`);
    if (!field) return;
    field.focus({ preventScroll: true });
    if (field.type === "number") field.select(); // as the Tab key leaves it
  }

  card(layer, n) {
    const many = this.layers.length,
      say = `layer ${n + 1}`;
    const set = (values) => {
      this.change(n, values(this.layers[n]));
      this.draw(); // at once: the next press is on what this one made
    };
    const join = made("button", {
      type: "button",
      className: "join",
      textContent: JOINS[layer.operator] ?? "start",
      title: n ? `Join ${say} by ${JOINS[layer.operator === "&" ? "|" : "&"]} instead` : "The first layer",
      disabled: n === 0,
      data: { at: "join" },
    });
    join.addEventListener("click", () => set((now) => ({ operator: now.operator === "&" ? "|" : "&" })));
    const on = made("input", { type: "checkbox", checked: layer.on, data: { at: "on" }, "aria-label": `${say} is on` });
    on.addEventListener("change", () => set(() => ({ on: on.checked })));
    const not = made("button", {
      type: "button",
      className: "not",
      textContent: "not",
      title: `Turn ${say} round: what it hides is shown`,
      "aria-pressed": String(layer.negated),
      data: { at: "not" },
    });
    not.addEventListener("click", () => set((now) => ({ negated: !now.negated })));
    const tool = (at, sign, words, able, act) => {
      const button = made("button", {
        type: "button",
        className: "tool",
        textContent: sign,
        title: words,
        "aria-label": words,
        disabled: !able,
        data: { at },
      });
      button.addEventListener("click", act);
      return button;
    };
    return made(
      "div",
      { className: "card", role: "listitem", data: { on: layer.on } },
      made(
        "div",
        { className: "head" },
        join,
        made("label", { className: "on", title: "On or off" }, on),
        not,
        ...this.body(layer, n, say),
        made(
          "span",
          { className: "tools" },
          layer.parts ? this.pencil(n, say) : null,
          tool("up", "↑", `Move ${say} forward`, n > 0, () => this.swap(n - 1, n - 1, "up")),
          tool("down", "↓", `Move ${say} back`, n < many - 1, () => this.swap(n, n + 1, "down")),
          tool("drop", "×", `Remove ${say}`, many > 1, () => this.drop(n)),
        ),
      ),
      layer.list && this.open.has(n) ? listTable(layer, say, (text, live) => this.change(n, { text }, live)) : null,
    );
  }

  // The name with its fields, or a line of text.
  body(layer, n, say) {
    const change = (text, live) => this.change(n, { text }, live);
    if (layer.parts && !this.written.has(n)) return [numbersInText(layer, say, change)];
    if (!layer.name) {
      const field = made("input", {
        type: "text",
        className: "text",
        value: layer.text,
        size: Math.min(48, Math.max(14, layer.text.length)),
        spellcheck: false,
        data: { at: "text" },
        "aria-label": `Mask of ${say}`,
      });
      field.addEventListener("change", () => {
        this.written.delete(n);
        change(field.value, false);
      });
      return [field];
    }
    const name = made("b", { textContent: layer.name, title: layer.about });
    if (layer.numbers) return [name, ...numberFields(layer, say, change)];
    const { items } = layer.list,
      many = items.reduce((sum, [count]) => sum + count, 0);
    const toggle = made("button", {
      type: "button",
      className: "list",
      textContent: `${grouped(many)} item${many === 1 ? "" : "s"} ${this.open.has(n) ? "▴" : "▾"}`,
      title: layer.list.about,
      "aria-expanded": String(this.open.has(n)),
      "aria-label": `${layer.list.about}: ${many} in ${say}`,
      data: { at: "list" },
    });
    toggle.addEventListener("click", () => {
      if (!this.open.delete(n)) this.open.add(n);
      this.draw();
      this.shown[n].card.scrollIntoView({ block: "nearest" });
    });
    return [name, toggle];
  }

  // Between the fields of a layer's numbers and its text as one line.
  pencil(n, say) {
    const button = made("button", {
      type: "button",
      className: "tool",
      textContent: "✎",
      title: `Write ${say} as text`,
      "aria-label": `Write ${say} as text`,
      "aria-pressed": String(this.written.has(n)),
      data: { at: "pencil" },
    });
    button.addEventListener("click", () => {
      if (!this.written.delete(n)) this.written.add(n);
      this.goTo = [n, this.written.has(n) ? "text" : "pencil"];
      this.draw();
    });
    return button;
  }

  change(n, values, live = false) {
    if (live) this.gesture ||= String(Date.now());
    const changed = { ...this.layers[n], ...values };
    this.layers = this.layers.with(n, changed);
    this.tell(live);
  }

  // Layers n and n + 1 change places; the first of a stack is joined to nothing.
  swap(n, goTo, at) {
    const [a, b] = [this.layers[n], this.layers[n + 1]];
    const layers = [...this.layers];
    layers[n] = n ? b : { ...b, operator: "" };
    layers[n + 1] = n ? a : { ...a, operator: b.operator };
    for (const set of [this.open, this.written]) {
      const marked = [set.has(n), set.has(n + 1)];
      marked.forEach((is, i) => (is ? set.add(n + 1 - i) : set.delete(n + 1 - i)));
    }
    this.layers = layers;
    this.goTo = [goTo, at];
    this.draw();
    this.tell(false);
  }

  drop(n) {
    const layers = this.layers.filter((_, i) => i !== n);
    layers[0] = { ...layers[0], operator: "" };
    for (const name of ["open", "written"])
      this[name] = new Set([...this[name]].filter((i) => i !== n).map((i) => i - (i > n)));
    this.layers = layers;
    this.goTo = [Math.max(0, n - 1), "drop"];
    this.draw();
    this.tell(false);
  }

  add() {
    const layer = { operator: this.join.value, negated: false, on: true, text: this.new[this.kind.value] };
    this.layers = [...this.layers, layer];
    this.tell(false);
  }

  // A gesture is one step that can be undone, however often it is told on its way.
  tell(live) {
    clearTimeout(this.waiting);
    const wait = live ? Math.max(0, this.last + LIVE_MS - Date.now()) : 0;
    this.pending = true;
    this.told = Infinity; // until it is sent, every answer is older
    this.waiting = setTimeout(() => this.send(), wait);
    if (!live) this.ending = true;
  }

  send() {
    this.last = Date.now();
    const layers = this.layers.map(({ operator, negated, on, text }) => ({ operator, negated, on, text })),
      gesture = this.gesture ?? "";
    this.told = this.report("stack", { layers, gesture }, { whole: (said) => gesture && said.gesture === gesture });
    if (this.ending) this.gesture = this.ending = null;
  }
}

export default function (given) {
  return mount(given, ".fm-layers", Stack, (stack, tell) => stack.update(given.data, tell));
}
