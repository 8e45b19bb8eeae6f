// The explorer: one mask, one view, one selection, two panes. Streamlit calls the default export on every rerun and
// on every change of theme; the explorer of a place on the page lives as long as that place.

const HELP =
  "Point at a cell to read it; click to hold its column and tile. " +
  "Wheel or pinch zooms, dragging moves, a double click shows all.";
const REST_MS = 90;
const LARGEST_CELL = 48;

class Explorer {
  constructor(root) {
    this.root = root;
    this.panes = [...root.querySelectorAll(".pane")].map((element) => ({
      element,
      side: element.dataset.side,
      base: element.querySelector(".base"),
      over: element.querySelector(".over"),
      kept: document.createElement("canvas"),
    }));
    this.selected = null;
    this.hovered = null;
    this.cost = 0;
    this.moving = false;
    this.dirty = 0;
    this.strip = new Strip(root.querySelector(".strip"), (k) => this.select({ q: this.selected?.q ?? 0, k }));
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.panes[0].element.querySelector(".stage"));
    this.sizes.observe(root);
    this.themes = () => this.recolor();
    this.probe = root.querySelector(".probe");
    this.probe.addEventListener("transitionend", this.themes);
    listen(this);
  }

  destroy() {
    this.sizes.disconnect();
    this.probe.removeEventListener("transitionend", this.themes);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.resting);
  }

  update(bytes, report) {
    this.report = report;
    const payload = decodePayload(bytes),
      { head } = payload,
      before = this.mask;
    const told = JSON.stringify(head);
    if (told !== this.told) {
      this.told = told;
      if (!before || before.head.id !== head.id) {
        this.mask = new MaskVectors(payload);
        this.exactView = this.overview = null;
        this.root.dataset.mask = head.id;
        if (!before || before.sq !== head.seqlen_q || before.sk !== head.seqlen_k) {
          this.selected = null;
          this.showAll();
        }
      } else {
        this.mask.head = head;
        this.mask.setTiles(head.block_m, head.block_n, head.rule);
      }
      const spot = head.selection;
      if (spot && (!before || before.head.id !== head.id)) this.selected = { q: spot[0], k: spot[1] };
      this.layout();
    }
    this.recolor();
  }

  layout() {
    const { head, sq, sk } = this.mask,
      ratio = Math.min(1.25, Math.max(0.3, sq / sk));
    this.root.style.setProperty("--fm-ratio", String(1 / ratio));
    for (const side of ["matrix", "vectors"])
      this.root.querySelector(`.pane[data-side=${side}] small`).textContent = head[side];
    for (const name of ["lts", "lte", "uts", "ute"])
      this.root.querySelector(`[data-vector=${name}]`).hidden = !head.names.includes(name);
    this.root.querySelector("[data-vector=diagonal]").hidden = !head.causal;
    const summary = summaryWords(this.mask);
    for (const pane of this.panes)
      pane.over.setAttribute("aria-label", `${pane.element.querySelector("b").textContent}. ${summary}`);
    this.resize();
  }

  resize() {
    if (!this.mask) return;
    const scale = Math.min(2, window.devicePixelRatio || 1),
      box = this.panes[0].base.getBoundingClientRect();
    const width = Math.round(box.width * scale),
      height = Math.round(box.height * scale);
    if (width < 2 || height < 2) return;
    const changed = width !== this.width || height !== this.height;
    Object.assign(this, { width, height, scale });
    if (changed)
      for (const pane of this.panes)
        for (const canvas of [pane.base, pane.over, pane.kept]) Object.assign(canvas, { width, height });
    this.exactView = this.overview = null;
    this.strip.width = this.root.clientWidth;
    this.recolor();
  }

  recolor() {
    if (!this.width) return;
    this.palette = readPalette(this.probe.firstElementChild, this.scale);
    this.palette.font = getComputedStyle(this.root).fontFamily;
    this.root.dataset.theme = this.palette.dark ? "dark" : "light";
    this.overview = null;
    this.request(2);
  }

  // ---- view --------------------------------------------------------------------------------------------------

  showAll() {
    this.view = { c: 0, w: this.mask.sk, r: 0, h: this.mask.sq };
  }
  showsAll() {
    return this.view.w >= this.mask.sk && this.view.h >= this.mask.sq;
  }
  reset() {
    this.showAll();
    this.moved();
  }

  cellAt(fx, fy) {
    const { view, mask } = this,
      k = Math.floor(view.c + fx * view.w),
      q = Math.floor(view.r + fy * view.h);
    return { q, k, inside: q >= 0 && k >= 0 && q < mask.sq && k < mask.sk && fx >= 0 && fy >= 0 && fx < 1 && fy < 1 };
  }

  zoom(factor, fx, fy) {
    const { view, mask, scale } = this,
      next = {};
    const along = (start, span, f, length, pixels, a, b) => {
      const smallest = Math.min(length, pixels / scale / LARGEST_CELL),
        wanted = Math.min(length, Math.max(smallest, span * factor));
      next[a] = Math.min(length - wanted, Math.max(0, start + (span - wanted) * f));
      next[b] = wanted;
    };
    along(view.c, view.w, fx, mask.sk, this.width, "c", "w");
    along(view.r, view.h, fy, mask.sq, this.height, "r", "h");
    this.view = next;
    this.moved();
  }

  panBy(fx, fy) {
    const { view, mask } = this;
    this.view = {
      c: Math.min(mask.sk - view.w, Math.max(0, view.c + fx * view.w)),
      w: view.w,
      r: Math.min(mask.sq - view.h, Math.max(0, view.r + fy * view.h)),
      h: view.h,
    };
    this.moved();
  }

  moved() {
    this.moving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.moving = false;
      this.request(2);
    }, REST_MS);
    this.request(2);
  }

  // ---- selection ---------------------------------------------------------------------------------------------

  hover(spot) {
    this.hovered = spot && { q: spot.q, k: spot.k };
    this.root.querySelector(".readout").ariaLive = "off";
    this.request(1);
  }

  select(spot) {
    this.selected = spot && { q: spot.q, k: spot.k };
    this.hovered = null;
    this.root.querySelector(".readout").ariaLive = "polite"; // a choice is read out, what the pointer passes over is not
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.report("selection", this.selected && [this.selected.q, this.selected.k]), 120);
    this.request(1);
  }

  moveSelection(dk, dq) {
    const { mask, view } = this,
      from = this.selected ?? { q: Math.floor(view.r + view.h / 2), k: Math.floor(view.c + view.w / 2) };
    const clamp = (v, n) => Math.min(n - 1, Math.max(0, v));
    const spot = {
      q: clamp(from.q + (this.selected ? dq : 0), mask.sq),
      k: clamp(from.k + (this.selected ? dk : 0), mask.sk),
    };
    if (spot.k < view.c || spot.k >= view.c + view.w) this.panBy((spot.k - view.c) / view.w - 0.5, 0);
    if (spot.q < view.r || spot.q >= view.r + view.h) this.panBy(0, (spot.q - view.r) / view.h - 0.5);
    this.select(spot);
  }

  // ---- drawing -----------------------------------------------------------------------------------------------

  request(what) {
    this.dirty = Math.max(this.dirty, what);
    this.frame ??= requestAnimationFrame(() => {
      const level = this.dirty;
      this.frame = undefined;
      this.dirty = 0;
      if (!this.width || !this.palette) return;
      if (level === 2) drawBase(this);
      drawOver(this);
      this.write();
    });
  }

  // ---- text --------------------------------------------------------------------------------------------------

  write() {
    const { mask, view, root, hovered, selected } = this,
      spot = hovered ?? selected;
    const readout = root.querySelector(".readout");
    const parts = spot ? (hovered ? cellLine(mask, spot) : columnLine(mask, spot)) : [["", HELP]];
    readout.replaceChildren(
      ...parts.flatMap(([bold, text]) => {
        const b = document.createElement("b");
        b.textContent = bold;
        return [b, text];
      }),
    );
    const says = spot && {
      q: spot.q,
      k: spot.k,
      visible: mask.visible(spot.q, spot.k),
      tile: [Math.floor(spot.q / mask.blockM), Math.floor(spot.k / mask.blockN)],
      kind: KIND_NAMES[mask.kind(Math.floor(spot.q / mask.blockM), Math.floor(spot.k / mask.blockN))],
    };
    root.dataset.says = JSON.stringify(says);
    root.dataset.selected = JSON.stringify(selected);
    root.dataset.view = JSON.stringify([view.c, view.w, view.r, view.h]);
    root.querySelector(".scale").textContent = scaleWords(view, this.width, this.height);
    const words = root.dataset.tiles === "reduced" ? ["none visible", "some", "all"] : ["skipped", "partial", "full"];
    ["empty", "partial", "full"].forEach(
      (kind, i) => (root.querySelector(`[data-kind=${kind}]`).textContent = words[i]),
    );
    this.strip.write(mask, spot ?? { k: Math.floor(view.c + view.w / 2) }, selected, this.palette);
    root.dataset.ready = mask.head.id;
    if (!mask.head.drawn && !this.toldDrawn) {
      this.toldDrawn = true;
      this.report("drawn", true);
    }
  }
}

const explorers = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".fm-canvas");
  let explorer = explorers.get(parentElement);
  if (!explorer || explorer.root !== root) {
    explorer?.destroy();
    explorer = new Explorer(root);
    explorers.set(parentElement, explorer);
  }
  explorer.update(data, setStateValue);
  return () => {
    explorers.get(parentElement)?.destroy();
    explorers.delete(parentElement);
  };
}
