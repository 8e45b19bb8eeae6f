// The walk: one loop, one step, everything that shows it. Streamlit calls the default export on every rerun; what is
// shown changes only when another loop comes or a link names another step.

const PACE_MS = { decide: 420, load: 1200, scores: 900, hide: 1100, max: 1100, exp: 1100, sum: 1100, acc: 1300 };
const TELL_STEP_MS = 500,
  ANSWER_MS = 2000;

class Walker {
  constructor(root) {
    this.root = root;
    this.canvas = root.querySelector("canvas");
    this.probe = root.querySelector(".probe");
    this.find = (selector) => root.querySelector(selector);
    this.step = 0;
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.canvas);
    this.themes = () => this.recolor();
    this.probe.addEventListener("transitionend", this.themes);
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    this.listen();
  }

  destroy() {
    this.pause();
    this.sizes.disconnect();
    clearTimeout(this.telling);
    document.removeEventListener("keydown", this.onKey);
    this.probe.removeEventListener("transitionend", this.themes);
  }

  update(data, report) {
    this.report = report;
    const told = `${data.id} ${data.opened}`;
    if (told === this.told) return this.recolor();
    if (data.opened !== this.opened) {
      arrived();
      clearTimeout(this.telling);
    }
    this.opened = data.opened;
    const sameLoop = this.replay && data.id === this.replay.data.id;
    this.told = told;
    this.replay = new Replay(data);
    if (data.line === this.wanted) this.wanted = null;
    if (!sameLoop) {
      this.pause();
      clearTimeout(this.telling);
      this.follow = this.firstOwn();
      this.find(".code").replaceChildren(...codeLines(this.replay));
    }
    this.go(Math.min(data.step ?? this.replay.begin, this.replay.length - 1), false);
    this.recolor();
  }

  // The first owned row (or key) that has something to show.
  firstOwn() {
    const { mask, own, byColumn } = this.replay;
    for (let n = own[0]; n < own[1]; n++) if (byColumn ? mask.visibleRuns(n).length : mask.rowSees(n).count) return n;
    return own[0];
  }

  recolor() {
    const scale = Math.min(2, window.devicePixelRatio || 1);
    this.palette = readPalette(this.probe.firstElementChild, scale);
    this.root.dataset.theme = this.palette.dark ? "dark" : "light";
    this.draw();
  }

  resize() {
    const { width } = this.find(".cells").getBoundingClientRect();
    if (!this.replay || !width) return;
    const cell = (width - 30) / Math.min(this.replay.data.block_n, this.replay.mask.sk);
    digits = cell >= 35 ? 2 : cell >= 26 ? 1 : -1;
    this.root.style.setProperty("--walk-cell", `${Math.round(Math.max(12, Math.min(32, digits < 0 ? cell : 32)))}px`);
    this.recolor();
  }

  // ---- going ---------------------------------------------------------------------------------------------------

  go(n, tell = true) {
    this.step = Math.min(this.replay.length - 1, Math.max(0, n));
    this.draw();
    if (!tell) return;
    writeAddress("step", String(this.step));
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.report("step", this.step), TELL_STEP_MS);
  }

  // Keys may be faster than the server: the next press counts from the tile that was asked for.
  get heading() {
    return Date.now() - this.asked < ANSWER_MS ? (this.wanted ?? this.replay.data.line) : this.replay.data.line;
  }

  otherLine(line) {
    const { mask, byColumn } = this.replay,
      lines = byColumn ? mask.tilesN : mask.tilesM;
    if (line < 0 || line >= lines || line === this.heading) return;
    this.pause();
    clearTimeout(this.telling);
    Object.assign(this, { wanted: line, asked: Date.now() });
    this.report("line", line);
  }

  pause() {
    clearTimeout(this.playing);
    this.playing = null;
    this.sayPlaying();
  }

  play() {
    if (this.step === this.replay.length - 1) this.go(0);
    const next = () => {
      if (this.step >= this.replay.length - 1) return this.pause();
      const speed = Number(this.find("select").value);
      this.playing = setTimeout(
        () => {
          this.go(this.step + 1);
          next();
        },
        (PACE_MS[this.replay.steps[this.step].line] ?? 1100) / speed,
      );
    };
    next();
    this.sayPlaying();
  }

  sayPlaying() {
    this.find("[data-do=play]").textContent = this.playing ? "❚❚ pause" : "▶ play";
    this.find(".says").ariaLive = this.playing ? "off" : "polite";
  }

  press(what) {
    const { step } = this;
    if (what === "play") return this.playing ? this.pause() : this.play();
    this.pause();
    if (what === "start") this.go(0);
    if (what === "back") this.go(step - 1);
    if (what === "step") this.go(step + 1);
    if (what === "end") this.go(this.replay.length - 1);
    if (what === "above") this.otherLine(this.heading - 1);
    if (what === "below") this.otherLine(this.heading + 1);
  }

  // Left and right work wherever nothing else wants them; the other keys inside the walk.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !this.replay) return;
    const path = event.composedPath(),
      inside = path.includes(this.root),
      target = path[0];
    if (!inside && target !== document.body) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    const what = { ArrowLeft: "back", ArrowRight: "step" }[event.key];
    const more = { ArrowUp: "above", ArrowDown: "below", Home: "start", End: "end", " ": "play" }[event.key];
    if (!what && !(inside && more)) return;
    if (event.key === " " && /^(BUTTON|SUMMARY)$/.test(target.tagName)) return;
    event.preventDefault();
    this.press(what ?? more);
  }

  listen() {
    const { root } = this;
    root.addEventListener("click", (event) => {
      const target = event.target.closest("[data-do], [data-tile], [data-line], [data-q], [data-own]");
      if (!target || target === root) return;
      const { tile, line, q, k, own } = target.dataset;
      if (target.dataset.do) return this.press(target.dataset.do);
      if (own) return this.followOwn(Number(own));
      this.pause();
      if (tile) this.go(this.replay.entry(Number(tile)));
      else if (line) this.go(this.replay.nextOf(line, this.step));
      else this.followOwn(Number(this.replay.byColumn ? k : q));
    });
    this.find("[type=range]").addEventListener("input", (event) => {
      this.pause();
      this.go(Number(event.target.value));
    });
    this.find(".cells").addEventListener("pointerover", (event) => {
      const cell = event.target.closest("[data-q]");
      if (cell) this.sayCell(Number(cell.dataset.q), Number(cell.dataset.k));
    });
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect(),
        { mask, byColumn } = this.replay;
      const q = Math.floor(((event.clientY - box.top) / box.height) * mask.sq),
        k = Math.floor(((event.clientX - box.left) / box.width) * mask.sk);
      const [i, j] = [Math.floor(q / mask.blockM), Math.floor(k / mask.blockN)];
      const [line, tile] = byColumn ? [j, i] : [i, j];
      if (line === this.replay.data.line) {
        this.pause();
        this.go(this.replay.entry(Math.min(this.replay.decisions.length - 1, Math.max(0, tile))));
      } else this.otherLine(line);
    });
  }

  followOwn(n) {
    this.follow = n;
    this.draw();
  }

  // A pair that was pointed at is spoken of as long as its tile is shown.
  sayCell(q, k) {
    this.spoken = [q, k];
    const [bold, text] = pairWords(this.replay, this.now, q, k);
    this.find("p.cell").replaceChildren(element("b", bold), text);
  }

  // ---- drawing -------------------------------------------------------------------------------------------------

  draw() {
    const { replay, palette, step, follow } = this;
    if (!replay || !palette) return;
    const now = (this.now = replay.state(step)),
      before = step ? replay.state(step - 1) : null,
      { data, mask } = replay;
    drawWhere(this);
    this.canvas.setAttribute("aria-label", whereWords(replay));
    const [tile, kind] = [data.pass === "dkdv" ? "column" : "row", now.tile === null ? "" : now.tile];
    this.write(".where header", data.title, `${tile} tile ${data.line}`);
    this.find(".where .hint").textContent = `${mask.sq} × ${mask.sk}, tiles ${data.block_m} × ${data.block_n}`;
    const [title, small, grid] = gridOf(replay, now, follow);
    this.write(".tile header", title, small);
    this.find(".cells").replaceChildren(grid);
    const [kept, keptRows] = keptTable(replay, now, follow);
    this.write("header.kept", kept, "click a row to follow it");
    this.keepingFocus(".state", "own", keptRows);
    if (now.tile === null) this.find("p.cell").textContent = "Point at a score to see where it comes from.";
    else this.sayCell(...this.cellToSay(now));
    this.find(".says").textContent = stepWords(replay, now, before, follow);
    this.drawCode(now);
    this.drawStrip(now);
    this.drawCounts(now);
    const range = this.find("[type=range]");
    range.max = replay.length - 1;
    range.value = step;
    range.setAttribute("aria-valuetext", `step ${step + 1} of ${replay.length}`);
    this.find(".place").textContent = `step ${step + 1} of ${replay.length}`;
    for (const [what, off] of [
      ["start", step === 0],
      ["back", step === 0],
      ["step", step === replay.length - 1],
      ["end", step === replay.length - 1],
      ["above", data.line === 0],
      ["below", data.line === (replay.byColumn ? mask.tilesN : mask.tilesM) - 1],
    ])
      this.find(`[data-do=${what}]`).disabled = off;
    Object.assign(this.root.dataset, { step, line: now.step.line, tile: kind, owner: data.line, ready: data.id });
  }

  // The pair that is spoken of: the one before if it is in this tile and in the followed row, else the first visible
  // one of that row.
  cellToSay(now) {
    const { replay, follow } = this,
      { rows, keys } = replay.range(...replay.at(now.tile)),
      [q, k] = this.spoken ?? [-1, -1];
    const within = q >= rows[0] && q < rows[1] && k >= keys[0] && k < keys[1];
    if (within && (replay.byColumn ? k : q) === follow) return [q, k];
    const pairs = replay.byColumn
      ? Array.from({ length: rows[1] - rows[0] }, (_, n) => [rows[0] + n, follow])
      : Array.from({ length: keys[1] - keys[0] }, (_, n) => [follow, keys[0] + n]);
    return pairs.find(([q, k]) => replay.mask.visible(q, k)) ?? pairs[0];
  }

  write(selector, bold, small) {
    const header = this.find(selector);
    header.querySelector("b").textContent = bold;
    header.querySelector("small").textContent = small;
  }

  drawCode(now) {
    const line = LINE_OF(now.step);
    for (const e of this.find(".code").children) {
      const on = e.dataset.line === line;
      e.classList.toggle("now", on);
      if (on) e.setAttribute("aria-current", "step");
      else e.removeAttribute("aria-current");
    }
  }

  drawStrip(now) {
    this.keepingFocus(".strip", "tile", ...stripOf(this.replay, now));
  }

  // New contents; the button that had the focus, known by a data attribute, has it again.
  keepingFocus(selector, attribute, ...contents) {
    const place = this.find(selector),
      focused = place.querySelector(":focus")?.dataset[attribute];
    place.replaceChildren(...contents);
    if (focused !== undefined) place.querySelector(`[data-${attribute}="${focused}"]`)?.focus();
  }

  drawCounts(now) {
    const { replay } = this,
      total = replay.decisions.length,
      visits = replay.order.length;
    const done = now.visited.length;
    this.find("[data-count=visited]").textContent = `${done} of ${visits}`;
    this.find("[data-count=skipped]").textContent = total - visits;
    this.find("[data-count=dense]").textContent = total;
    const kinds = replay.data.kinds.flat(),
      computed = kinds.filter((k) => k !== EMPTY).length;
    const share = (100 * (1 - computed / kinds.length)).toFixed(1);
    this.find(".whole").textContent =
      `Over all ${replay.byColumn ? "column" : "row"} tiles: ${computed} of ${kinds.length} tiles computed, ` +
      `${share} % skipped.`;
  }
}

export default function (given) {
  return mount(given, ".fm-walk", Walker, (walker, tell) => walker.update(given.data, tell));
}
