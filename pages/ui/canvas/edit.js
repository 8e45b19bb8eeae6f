// Painting and dragging: a box on the matrix that hides or shows, a boundary of the vectors that moves. Nothing reaches
// the server before the end of it; then it hears once, and what it makes of it is the next mask.

const REACH = 5, // CSS pixels from a boundary that take hold of it
  GIVE_UP_MS = 20_000; // without an answer: the preview goes
const PAINTS = { hide: "Hide", show: "Show" };

class Editing {
  constructor(explorer) {
    this.explorer = explorer;
    this.status = explorer.root.querySelector(".mode");
    Object.assign(this, { mode: null, box: null, move: null, sent: null });
  }

  get on() {
    return Boolean(this.explorer.mask?.head.editable);
  }

  get broken() {
    return Boolean(this.explorer.mask?.head.broken.length);
  }

  // A pointer draws a box or holds a boundary.
  get underWay() {
    return !this.sent && Boolean((this.box && !this.box.keys) || (this.move && !this.move.keys));
  }

  destroy() {
    clearTimeout(this.giveUp);
  }

  // A mask that is another one than before answers what was sent. Painting goes on over what was painted or undone,
  // and ends with a mask that was chosen or written.
  renew() {
    clearTimeout(this.giveUp);
    Object.assign(this, { box: null, move: null, sent: null });
    const { painted_on } = this.explorer.mask?.head ?? {};
    if (!this.on || painted_on !== this.paintedOn) this.mode = null;
    this.paintedOn = painted_on;
    this.show();
  }

  setMode(mode) {
    if (!this.on) return;
    this.mode = this.mode === mode ? null : mode;
    this.cancel();
  }

  // What is under way ends without a trace; false if nothing was.
  cancel() {
    const something = Boolean(this.box || this.move);
    this.box = this.move = null;
    this.show();
    return something;
  }

  show() {
    const { explorer, mode } = this,
      { root } = explorer;
    for (const part of root.querySelectorAll(".paint")) part.hidden = !this.on;
    for (const button of root.querySelectorAll(".paint button"))
      button.ariaPressed = String(button.dataset.do === mode);
    if (mode) root.dataset.mode = mode;
    else delete root.dataset.mode;
    setText(this.status, this.words());
    this.status.hidden = !this.status.textContent;
    const { view, mask } = explorer,
      row = this.box?.to.q ?? (this.move?.cut && this.move.line + this.move.by - mask.offset);
    const low = row === undefined ? this.broken : row < view.r + view.h / 2; // not over what is drawn
    this.status.classList.toggle("low", low);
    root.dataset.edit = JSON.stringify(this.box ? this.cells() : this.move);
    explorer.request(1);
  }

  words() {
    const { mode, box, move } = this;
    const ends = move?.keys ? "Arrows move it, Enter sets it, Esc cancels" : "Esc cancels";
    if (move?.cut) return `${cutWords(move)}. ${ends}`;
    if (move) {
      const from = move.slope ? `moves ${move.by > 0 ? "down" : "up"} by ${grouped(Math.abs(move.by))} rows` : "";
      const to = from || `${grouped(move.line)} → ${grouped(move.line + move.by)}`;
      return `${move.name.toUpperCase()} ${to}, ${columnsText(move.c0, move.c1)}. ${ends}`;
    }
    if (!box && this.broken) return "The marked columns do not fit FlashMask";
    if (!mode) return "";
    if (!box) return `${PAINTS[mode]}: drag a box, or Enter at the selected cell begins one. Esc ends`;
    const { r0, r1, c0, c1 } = this.cells();
    return `${PAINTS[mode]} ${rowsText(r0, r1)} × ${columnsText(c0, c1)}. ${box.keys ? "Enter paints, " : ""}Esc cancels`;
  }

  // ---- the pointer ---------------------------------------------------------------------------------------------

  // True if the pointer that goes down here begins an edit and not a move of the view.
  begin(pane, spot, event) {
    if (!this.on || this.sent || event.button) return false;
    if (this.mode) {
      if (!spot.inside) return false;
      this.box = { from: spot, to: spot, keys: false };
    } else {
      const found = event.pointerType === "touch" ? null : this.found(pane, spot);
      if (!found) return false;
      this.move = { ...found, grabbed: [spot.fx, spot.fy] };
    }
    this.explorer.hover(null);
    this.show();
    return true;
  }

  drag(spot) {
    const { mask, view } = this.explorer;
    const inside = (v, n) => Math.min(n - 1, Math.max(0, v));
    if (this.box) this.box = { ...this.box, to: { q: inside(spot.q, mask.sq), k: inside(spot.k, mask.sk) } };
    else if (this.move?.cut) this.moveBy(cutSteps(this.move, view, spot));
    else if (this.move) this.moveBy(Math.round((spot.fy - this.move.grabbed[1]) * view.h));
    this.show();
  }

  // The cursor says that what is under it can be dragged.
  point(pane, spot) {
    const over = this.on && !this.mode && this.found(pane, spot);
    pane.over.style.cursor = over ? CURSORS[over.along ?? "row"] : "";
  }

  // A boundary of documents under the pointer, or else one of the vectors.
  found(pane, spot) {
    return cutAt(this.explorer, this.explorer.cssSize(), spot) ?? this.boundaryAt(pane, spot);
  }

  boundaryAt(pane, { k, fy, inside }) {
    if (pane.side !== "vectors" || !inside) return null;
    const { mask, view } = this.explorer,
      pixels = this.explorer.cssSize()[1];
    let best = null;
    for (const name of mask.names) {
      const away = Math.abs(((mask[name][k] - view.r) / view.h - fy) * pixels);
      if (away <= REACH && (!best || away < best.away)) best = { name, away };
    }
    return best && this.boundary(best.name, k);
  }

  // The columns beside k in which a vector goes on as it does there: level, or along a diagonal within [0, Sq].
  boundary(name, k) {
    const { mask } = this.explorer,
      { sq, sk } = mask,
      values = mask[name],
      v = values[k];
    const level = values[k - 1] === v || values[k + 1] === v;
    const slope = !level && (values[k + 1] === v + 1 || values[k - 1] === v - 1) ? 1 : 0;
    const line = v - slope * k;
    const goesOn = (j) => values[j] === Math.min(sq, Math.max(0, line + slope * j));
    let c0 = k,
      c1 = k + 1;
    while (c0 > 0 && goesOn(c0 - 1)) c0--;
    while (c1 < sk && goesOn(c1)) c1++;
    const starts = name.endsWith("s"),
      other = mask[name.slice(0, 2) + (starts ? "e" : "s")];
    let room = sq;
    for (let j = c0; j < c1; j++) {
      if (other[j] === (starts ? sq : 0)) continue; // the border of the matrix clips and does not stop it
      room = Math.min(room, Math.max(0, starts ? other[j] - values[j] : values[j] - other[j]));
    }
    const [low, high] = starts ? [-sq, room] : [-room, sq];
    const ends = slope ? [low, high] : [Math.max(low, -line), Math.min(high, sq - line)];
    return { name, c0, c1, slope, line, by: 0, low: ends[0], high: ends[1] };
  }

  moveBy(by) {
    this.move.by = Math.min(this.move.high, Math.max(this.move.low, by));
  }

  // ---- keys ----------------------------------------------------------------------------------------------------

  // True for a key that belongs to the edit.
  key(event) {
    const name = event.key.toLowerCase(),
      { explorer } = this;
    if (!this.on || this.sent) return false;
    if (name === "escape") {
      if (this.cancel()) return true;
      if (!this.mode) return false;
      this.setMode(this.mode);
      return true;
    }
    if (name === "h" || name === "v") this.setMode(name === "h" ? "hide" : "show");
    else if (name === "b") this.nextBoundary();
    else if (this.move?.keys && this.keyStep(event)) this.moveBy(this.move.by + this.keyStep(event));
    else if (name === "enter" && (this.box || this.move)) this.commit();
    else if (name === "enter" && this.mode) {
      const at = explorer.selected ?? { q: 0, k: 0 };
      this.box = { from: at, to: at, keys: true };
    } else if (this.mode && (ARROWS[event.key] || JUMPS[name])) {
      const [dk, dq] = ARROWS[event.key] ?? JUMPS[name],
        far = JUMPS[name] ? [explorer.mask.blockN, explorer.mask.blockM] : [1, 1];
      explorer.moveSelection(dk * far[0], dq * far[1]);
      if (this.box?.keys) this.box = { ...this.box, to: explorer.selected };
    } else return false;
    this.show();
    return true;
  }

  keyStep(event) {
    const [, dq] = ARROWS[event.key] ?? JUMPS[event.key.toLowerCase()] ?? [0, 0];
    return dq * (ARROWS[event.key] && !event.shiftKey ? 1 : this.explorer.mask.blockM);
  }

  // The boundaries of the selected column, one after the other.
  nextBoundary() {
    const { mask, selected } = this.explorer,
      { names } = mask;
    if (!selected) return;
    this.mode = null;
    this.box = null;
    const next = (names.indexOf(this.move?.name) + 1) % names.length;
    const found = this.boundary(names[next], selected.k);
    this.move = { ...(cutOfLine(mask, found) ?? found), keys: true };
  }

  // ---- the end -------------------------------------------------------------------------------------------------

  cells() {
    const { from, to } = this.box;
    return {
      r0: Math.min(from.q, to.q),
      r1: Math.max(from.q, to.q) + 1,
      c0: Math.min(from.k, to.k),
      c1: Math.max(from.k, to.k) + 1,
    };
  }

  // False if nothing was done.
  commit() {
    const { move, mode } = this;
    if (this.box) {
      const { r0, r1, c0, c1 } = this.cells();
      this.send({ paint: mode, box: [r0, r1, c0, c1] });
    } else if (move?.by && move.cut) this.send({ cut: [...move.cut, move.by] });
    else if (move?.by) this.send({ move: [move.name, move.c0, move.c1, move.slope, move.by] });
    else this.cancel();
    return Boolean(this.sent);
  }

  send(value) {
    this.sent = { ...value, told: Date.now() };
    this.explorer.report("edit", this.sent);
    this.giveUp = setTimeout(() => this.renew(), GIVE_UP_MS);
    this.show();
  }

  // ---- the picture of it ---------------------------------------------------------------------------------------

  draw(ctx) {
    const { box, move } = this,
      { view, palette, mask } = this.explorer;
    if (!box && !move) return;
    const { width, height } = ctx.canvas,
      s = scaleOf(view, width, height);
    const hides = box ? this.mode === "hide" : !move.cut && move.by < 0 === move.name.endsWith("s");
    ctx.beginPath();
    if (move?.cut) traceCut(ctx, move, s, mask.offset);
    else if (box) {
      const { r0, r1, c0, c1 } = this.cells();
      ctx.rect(s.x(c0), s.y(r0), s.x(c1) - s.x(c0), s.y(r1) - s.y(r0));
    } else {
      const row = (k, by) => s.y(Math.min(mask.sq, Math.max(0, move.line + move.slope * k + by)));
      const { c0, c1, by } = move;
      ctx.moveTo(s.x(c0), row(c0, 0));
      ctx.lineTo(s.x(c1), row(c1, 0));
      ctx.lineTo(s.x(c1), row(c1, by));
      ctx.lineTo(s.x(c0), row(c0, by));
      ctx.closePath();
    }
    ctx.globalAlpha = move?.cut ? 0.12 : 0.75;
    ctx.fillStyle = move?.cut ? palette.select : hides ? palette.empty : palette.full;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = palette.select;
    ctx.lineWidth = 2 * palette.scale;
    ctx.setLineDash(hides ? [4 * palette.scale, 3 * palette.scale] : []);
    ctx.stroke();
    ctx.setLineDash([]);
  }
}
