// The explorer: one mask, one view, one selection, every picture of it. Streamlit calls the default export on every
// rerun and on every change of theme; the explorer of a place on the page lives as long as that place.

const REST_MS = 90, // without a move: the view is at rest
  LATE_MS = 20; // a timer that is later than this had to wait for a frame
const TELL_MS = { selection: 120, view: 400 }; // then the server hears of it, for what it draws itself

class Explorer {
  constructor(root) {
    this.root = root;
    this.panes = [...root.querySelectorAll(".pane[data-side=matrix], .pane[data-side=vectors]")].map((element) => ({
      element,
      side: element.dataset.side,
      base: element.querySelector(".base"),
      over: element.querySelector(".over"),
      kept: document.createElement("canvas"),
    }));
    Object.assign(this, { selected: null, chosen: 0, hovered: null, cost: 0, moving: false, dirty: 0, telling: {} });
    this.strip = new Strip(root.querySelector(".strip"), (k) => this.select(this.inColumn(k)));
    this.minimap = new Minimap(root.querySelector(".minimap"), this);
    this.tiles = new TileViews(root, this);
    this.editing = new Editing(this);
    this.curves = new Curves(this);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.panes[0].element.querySelector(".stage"));
    this.sizes.observe(root);
    this.themes = () => this.recolor();
    this.probe = root.querySelector(".probe");
    this.probe.addEventListener("transitionend", this.themes);
    listen(this);
    this.skip = skipLink(this.panes[0].over);
  }

  destroy() {
    this.editing.destroy();
    this.curves.destroy();
    this.skip.remove();
    this.sizes.disconnect();
    this.probe.removeEventListener("transitionend", this.themes);
    cancelAnimationFrame(this.frame);
    for (const timer of [this.resting, this.later, ...Object.values(this.telling)]) clearTimeout(timer);
  }

  update(bytes, report) {
    this.report = report;
    const payload = decodePayload(bytes),
      { head } = payload,
      before = this.mask;
    const told = JSON.stringify(head);
    if (told !== this.told) {
      this.told = told;
      const fresh = !before || before.head.id !== head.id,
        opened = head.opened !== this.opened;
      this.opened = this.root.dataset.opened = head.opened;
      this.heard = head.heard;
      if (opened) this.forgetPlace();
      if (fresh) {
        this.mask = new MaskVectors(payload);
        this.exactView = null;
        this.root.dataset.mask = head.id;
      } else {
        this.mask.head = head;
        this.mask.setTiles(head.block_m, head.block_n, head.rule);
      }
      const { sq, sk } = this.mask,
        own = this.chosen > head.heard && !opened && (!this.selected || (this.selected.q < sq && this.selected.k < sk));
      if ((fresh && !own) || opened) {
        const [q, k] = head.selection;
        this.chosen = 0;
        this.selected = { q, k };
        this.hovered = null;
      }
      if (opened || before.sq !== head.seqlen_q || before.sk !== head.seqlen_k) this.startView = head.view ?? "whole";
      this.layout();
      if (fresh || head.edited === this.editing.sent?.told || this.editing.on !== Boolean(this.editable)) this.editing.renew();
      this.editable = this.editing.on;
    }
    this.recolor();
  }

  // Another screen is open: what was to be told of places of the one before is void.
  forgetPlace() {
    arrived();
    for (const timer of [this.resting, ...Object.values(this.telling)]) clearTimeout(timer);
    this.moving = false;
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
    this.root.querySelector("[data-broken]").hidden = !head.broken.length;
    this.root.dataset.long = Math.max(sq, sk) > 99_999; // long numbers take a line more
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
    this.exactView = null;
    this.strip.width = this.root.clientWidth;
    if (this.startView) {
      const [c, w, r, h] = this.startView;
      this.view =
        this.startView === "whole" ? wholeView(this.mask) : fittedView({ c, w, r, h }, this.mask, ...this.cssSize());
      this.startView = null;
    }
    this.recolor();
  }

  cssSize() {
    return [this.width / this.scale, this.height / this.scale];
  }

  recolor() {
    if (!this.width) return;
    this.palette = readPalette(this.probe.firstElementChild, this.scale);
    this.palette.font = getComputedStyle(this.root).fontFamily;
    this.root.dataset.theme = this.palette.dark ? "dark" : "light";
    this.root.style.setProperty("--fm-thin", this.palette.thin);
    this.minimap.forget();
    this.tiles.forget();
    this.request(2);
  }

  // ---- view --------------------------------------------------------------------------------------------------

  showsAll() {
    return showsWhole(this.view, this.mask);
  }
  reset() {
    this.moveTo(wholeView(this.mask));
  }
  zoom(factor, fx, fy) {
    this.moveTo(zoomedView(this.view, this.mask, ...this.cssSize(), factor, fx, fy));
  }
  panBy(fx, fy) {
    const { c, w, r, h } = this.view;
    this.moveTo({ c: c + fx * w, w, r: r + fy * h, h });
  }
  centerOn(fx, fy) {
    const { w, h } = this.view;
    this.moveTo({ c: fx * this.mask.sk - w / 2, w, r: fy * this.mask.sq - h / 2, h });
  }

  moveTo(view) {
    this.view = fittedView(view, this.mask, ...this.cssSize());
    this.moving = true;
    clearTimeout(this.telling.view);
    this.request(2);
  }

  // The time of rest begins when the last move has been drawn, and anew if the browser was busy until its end (with
  // showing what was drawn), so that slow frames are not taken for rest.
  awaitRest(patience = 5) {
    clearTimeout(this.resting);
    const end = performance.now() + REST_MS;
    this.resting = setTimeout(() => {
      if (patience && performance.now() > end + LATE_MS) {
        this.awaitRest(patience - 1);
        return;
      }
      this.moving = false;
      writeAddress("view", this.showsAll() ? null : viewText(this.view));
      this.tell("view", this.showsAll() ? null : viewText(this.view).split(",").map(Number));
      this.request(2);
    }, REST_MS);
  }

  cellAt(fx, fy) {
    const { view, mask } = this,
      k = Math.floor(view.c + fx * view.w),
      q = Math.floor(view.r + fy * view.h);
    return { q, k, inside: q >= 0 && k >= 0 && q < mask.sq && k < mask.sk && fx >= 0 && fy >= 0 && fx < 1 && fy < 1 };
  }

  // ---- selection ---------------------------------------------------------------------------------------------

  hover(spot) {
    if (!spot && !this.hovered) return;
    this.hovered = spot && { q: spot.q, k: spot.k };
    this.root.querySelector(".readout").ariaLive = "off";
    this.request(1);
  }

  select(spot) {
    this.selected = spot && { q: spot.q, k: spot.k };
    this.hovered = null;
    this.root.querySelector(".readout").ariaLive = "polite"; // only a choice is read out
    writeAddress("at", spot && `${spot.q},${spot.k}`);
    this.chosen = Infinity; // until the server has heard of it, what it says of the selection is older
    this.tell("selection", spot && [spot.q, spot.k]);
    this.request(1);
  }

  tell(name, value) {
    clearTimeout(this.telling[name]);
    this.telling[name] = setTimeout(() => {
      const number = this.report(name, value);
      if (name === "selection") this.chosen = number;
    }, TELL_MS[name]);
  }

  // The cell of a column in the row of the selection.
  inColumn(k) {
    return { q: this.selected?.q ?? 0, k };
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
    this.frame ??= requestAnimationFrame((now) => {
      const level = this.dirty;
      this.frame = undefined;
      this.dirty = 0;
      if (this.moving && this.exactFrame) this.cost = Math.max(this.cost, now - this.exactFrame - 1000 / 60);
      if (!this.width || !this.palette) return;
      const before = this.exactAt;
      if (level === 2) drawBase(this);
      this.exactFrame = this.exactAt !== before && now; // what the browser itself does to show it costs as well
      drawOver(this);
      this.minimap.draw();
      this.write();
      if (this.moving) this.awaitRest();
      else this.drawTiles();
    });
  }

  // The tile views come after the pictures: the first map of a million tokens takes longer than a frame.
  drawTiles() {
    const { tiles } = this,
      draw = () => tiles.draw(this.hovered ?? this.selected);
    if (tiles.image) {
      draw();
      return;
    }
    clearTimeout(this.later);
    this.later = setTimeout(draw, 30);
  }

  write() {
    const { mask, view, root, hovered, selected } = this,
      spot = hovered ?? selected;
    const readout = root.querySelector(".readout");
    const parts = spot
      ? hovered
        ? cellLine(mask, spot)
        : selectionLine(mask, spot)
      : [["", EXPLAINED + HOW_TO_MOVE]];
    if (readout.textContent !== parts.flat().join(""))
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
    root.dataset.whole = this.showsAll();
    root.dataset.moving = this.moving;
    root.dataset.labels = JSON.stringify(this.labels);
    setText(root.querySelector(".scale"), scaleWords(view, this.width, this.height));
    const words = root.dataset.tiles === "reduced" ? ["none visible", "some", "all"] : ["skipped", "partial", "full"];
    ["empty", "partial", "full"].forEach((kind, i) => setText(root.querySelector(`[data-kind=${kind}]`), words[i]));
    this.strip.write(mask, spot ?? { k: Math.floor(view.c + view.w / 2) }, selected);
    root.dataset.ready = mask.head.id;
    if (!mask.head.drawn && !this.toldDrawn) {
      this.toldDrawn = true;
      this.report("drawn", true);
    }
  }
}

// The first stop of the Tab key. No address with a # leads into a shadow tree, so the canvas has to make it itself.
function skipLink(picture) {
  const link = document.createElement("a");
  link.href = "#";
  link.className = "fm-skip";
  link.textContent = "Skip to the picture";
  link.addEventListener("click", (event) => {
    event.preventDefault();
    picture.focus();
    picture.scrollIntoView({ block: "nearest" });
  });
  document.body.prepend(link);
  return link;
}

// A text that stays the same costs no layout.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export default function (given) {
  return mount(given, ".fm-canvas", Explorer, (explorer, tell) => explorer.update(given.data, tell));
}
