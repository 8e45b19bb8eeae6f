// Two masks and their difference under one view: what moves, zooms or chooses a cell in one picture does so in all.

const TELL_CHOICE_MS = 120,
  TELL_VIEW_MS = 400;

class Comparison {
  constructor(root) {
    this.root = root;
    this.panes = [...root.querySelectorAll(".pane")].map((element) => ({
      element,
      side: element.dataset.side,
      base: element.querySelector(".base"),
      over: element.querySelector(".over"),
    }));
    this.probe = root.querySelector(".probe");
    this.selected = this.hovered = null;
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.panes[0].element.querySelector(".stage"));
    this.themes = () => this.recolor();
    this.probe.addEventListener("transitionend", this.themes);
    listen(this);
  }

  destroy() {
    this.sizes.disconnect();
    this.probe.removeEventListener("transitionend", this.themes);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.telling);
    clearTimeout(this.looking);
  }

  update(bytes, tell) {
    this.tell = tell;
    const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true),
      head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
    const opened = head.opened !== this.opened;
    if (head.id !== this.root.dataset.mask) this.read(head, bytes, 4 + length);
    if (opened) {
      arrived();
      for (const timer of [this.looking, this.telling]) clearTimeout(timer);
      this.selected = head.at && { q: head.at[0], k: head.at[1] };
      this.startView = head.view;
      this.resize();
    }
    this.opened = head.opened;
    this.recolor();
  }

  read(head, bytes, at) {
    const before = this.mask;
    const [first, second, extra, missing] = head.layers.map((layers) =>
      joinedMask(layers.map((n) => new MaskVectors(decodePayload(bytes.subarray(at, (at += n)))))),
    );
    Object.assign(this, { first, second, extra, missing, mask: first.layers?.[0] ?? first });
    const { mask } = this;
    this.root.dataset.mask = head.id;
    if (!before || before.sq !== mask.sq || before.sk !== mask.sk) {
      this.view = wholeView(mask);
      this.hovered = this.selected = null;
    }
    this.root.style.setProperty("--fm-ratio", String(1 / Math.min(1.25, Math.max(0.3, mask.sq / mask.sk))));
    const [, , more, less] = head.pairs.map(grouped);
    const says = { first: head.titles[0], second: head.titles[1], difference: "" };
    const whole = {
      first: `A, ${grouped(head.pairs[0])} visible pairs`,
      second: `B, ${grouped(head.pairs[1])} visible pairs`,
      difference: `Only A shows ${more} pairs, only B shows ${less} pairs`,
    };
    for (const { element, side, over } of this.panes) {
      element.querySelector("small").textContent = element.querySelector("small").title = says[side];
      over.setAttribute("aria-label", `${whole[side]}. Arrows move the chosen cell, plus and minus zoom.`);
    }
    this.root.querySelector("[data-says=extra]").textContent = `only A shows: ${more}`;
    this.root.querySelector("[data-says=missing]").textContent = `only B shows: ${less}`;
    this.resize();
  }

  resize() {
    if (!this.mask) return;
    const scale = Math.min(2, window.devicePixelRatio || 1),
      box = this.panes[0].base.getBoundingClientRect();
    const width = Math.round(box.width * scale),
      height = Math.round(box.height * scale);
    if (width < 2 || height < 2) return;
    Object.assign(this, { width, height, scale });
    for (const pane of this.panes) for (const canvas of [pane.base, pane.over]) Object.assign(canvas, { width, height });
    if (this.startView) {
      const [c, w, r, h] = this.startView;
      this.view = fittedView({ c, w, r, h }, this.mask, width / scale, height / scale);
      this.startView = null;
    }
    this.recolor();
  }

  recolor() {
    if (!this.width) return;
    this.palette = readPalette(this.probe.firstElementChild, this.scale);
    this.root.dataset.theme = this.palette.dark ? "dark" : "light";
    this.request(true);
  }

  // ---- what `listen` asks for ------------------------------------------------------------------------------------

  showsAll() {
    return showsWhole(this.view, this.mask);
  }
  reset() {
    this.moveTo(wholeView(this.mask));
  }
  zoom(factor, fx, fy) {
    this.moveTo(zoomedView(this.view, this.mask, this.width / this.scale, this.height / this.scale, factor, fx, fy));
  }
  panBy(fx, fy) {
    const { c, w, r, h } = this.view;
    this.moveTo({ c: c + fx * w, w, r: r + fy * h, h });
  }
  moveTo(view) {
    this.view = fittedView(view, this.mask, this.width / this.scale, this.height / this.scale);
    this.request(true);
    clearTimeout(this.looking);
    this.looking = setTimeout(() => {
      const view = this.showsAll() ? null : viewText(this.view);
      writeAddress("view", view);
      this.tell("view", view && view.split(",").map(Number));
    }, TELL_VIEW_MS);
  }

  cellAt(fx, fy) {
    const { view, mask } = this,
      k = Math.floor(view.c + fx * view.w),
      q = Math.floor(view.r + fy * view.h);
    return { q, k, inside: q >= 0 && k >= 0 && q < mask.sq && k < mask.sk && fx >= 0 && fy >= 0 && fx < 1 && fy < 1 };
  }

  hover(spot) {
    this.hovered = spot && { q: spot.q, k: spot.k };
    this.root.querySelector(".readout").ariaLive = "off";
    this.request(false);
  }

  select(spot) {
    this.selected = spot && { q: spot.q, k: spot.k };
    this.hovered = null;
    this.root.querySelector(".readout").ariaLive = "polite";
    writeAddress("at", spot && `${spot.q},${spot.k}`);
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tell("selection", spot && [spot.q, spot.k]), TELL_CHOICE_MS);
    this.request(false);
  }

  moveSelection(dk, dq) {
    const { mask, view } = this,
      inside = (v, n) => Math.min(n - 1, Math.max(0, v));
    const from = this.selected ?? { q: Math.floor(view.r + view.h / 2) - dq, k: Math.floor(view.c + view.w / 2) - dk };
    const spot = { q: inside(from.q + dq, mask.sq), k: inside(from.k + dk, mask.sk) };
    if (spot.k < view.c || spot.k >= view.c + view.w) this.panBy((spot.k - view.c) / view.w - 0.5, 0);
    if (spot.q < view.r || spot.q >= view.r + view.h) this.panBy(0, (spot.q - view.r) / view.h - 0.5);
    this.select(spot);
  }

  // ---- drawing ---------------------------------------------------------------------------------------------------

  request(pictures) {
    this.stale ||= pictures;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (!this.width || !this.palette) return;
      if (this.stale) this.drawPictures();
      this.stale = false;
      this.drawOver();
      this.write();
    });
  }

  drawPictures() {
    const { view, width, height, palette, mask } = this,
      s = scaleOf(view, width, height),
      withTiles = Math.min(s.cellX * mask.blockN, s.cellY * mask.blockM) >= 3;
    const rasters = {};
    for (const name of ["first", "second", "extra", "missing"])
      rasters[name] = rasterise(this[name], view, width, height);
    for (const { side, base } of this.panes) {
      const ctx = base.getContext("2d"),
        image = ctx.createImageData(width, height);
      if (side === "difference") paintDifference(image, rasters, palette);
      else paintMatrix(image, rasters[side], this[side], palette, withTiles && !this[side].layers);
      ctx.putImageData(image, 0, 0);
      if (side !== "difference") drawTileGrid(ctx, mask, view, palette);
      drawCells(ctx, mask, view, palette);
    }
  }

  drawOver() {
    const { view, mask, palette } = this;
    for (const { over } of this.panes) {
      const ctx = over.getContext("2d");
      ctx.clearRect(0, 0, this.width, this.height);
      for (const [spot, strong] of [
        [this.hovered, false],
        [this.selected, true],
      ])
        if (spot) drawSelection(ctx, mask, view, palette, spot, { strong, dots: false });
    }
  }

  write() {
    const spot = this.hovered ?? this.selected,
      readout = this.root.querySelector(".readout");
    this.root.dataset.whole = this.showsAll();
    this.root.dataset.ready = "true";
    if (!spot) {
      readout.textContent = "Point at a cell to read it in both; click to hold it. " + HOW_TO_MOVE;
      return;
    }
    const [a, b] = [this.first, this.second].map((mask) => mask.visible(spot.q, spot.k));
    const says = a && b ? "both show it" : a ? "only A shows it" : b ? "only B shows it" : "neither shows it";
    this.root.dataset.says = JSON.stringify({ ...spot, a, b });
    const bold = document.createElement("b");
    bold.textContent = `Query ${grouped(spot.q)}, key ${grouped(spot.k)}: `;
    readout.replaceChildren(bold, `${says}.`);
  }
}

// What one mask shows and the other hides, each hatched its own way; pale what both show.
function paintDifference(image, { first, extra, missing, width = first.width, height = first.height }, palette) {
  const out = new Uint32Array(image.data.buffer),
    pitch = palette.hatchPitch,
    dark = Math.max(1, Math.round(pitch * 0.3));
  const numbers = (color) => color.match(/[\d.]+/g).slice(0, 3).map(Number);
  const mixed = (a, b, t) => pack(numbers(a).map((v, i) => Math.round(v + (numbers(b)[i] - v) * t)));
  const shade = (color) => [mixed(color, color, 0), mixed(color, "rgb(0, 0, 0)", 0.34)];
  const onlyA = shade(palette.lower),
    onlyB = shade(palette.upper),
    common = mixed(palette.ground, palette.full, 0.3);
  for (let x = 0; x < width; x++)
    for (let y = 0, s = x * height, p = x; y < height; y++, s++, p += width) {
      const more = extra.states[s] !== NONE,
        less = missing.states[s] !== NONE;
      const rising = (x + y) % pitch,
        falling = (((x - y) % pitch) + pitch) % pitch;
      if (more && less) out[p] = rising < pitch / 2 ? onlyA[0] : onlyB[0];
      else if (more) out[p] = onlyA[Number(rising < dark)];
      else if (less) out[p] = onlyB[Number(falling < dark)];
      else out[p] = first.states[s] !== NONE ? common : palette.packed.empty;
    }
}

export default function (given) {
  return mount(given, ".fm-versus", Comparison, (comparison, tell) => comparison.update(given.data, tell));
}
