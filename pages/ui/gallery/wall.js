// The wall: cards with two small pictures each, drawn when they come into sight. A click tells the server which card it
// was, so that the page changes without loading again; the link itself works in a new tab as well.

class Wall {
  constructor(root) {
    this.root = root;
    this.list = root.querySelector("ul");
    this.probe = root.querySelector(".probe");
    this.sizes = new ResizeObserver(() => this.redraw());
    this.sizes.observe(root);
    this.sight = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "400px" });
    this.themes = () => this.recolor();
    this.probe.addEventListener("transitionend", this.themes);
    this.cards = [];
  }

  destroy() {
    this.sizes.disconnect();
    this.sight.disconnect();
    this.probe.removeEventListener("transitionend", this.themes);
    cancelAnimationFrame(this.frame);
  }

  update(bytes, tell) {
    this.tell = tell;
    const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true),
      text = new TextDecoder().decode(bytes.subarray(4, 4 + length));
    if (text !== this.told) {
      this.told = text;
      this.sight.disconnect();
      let at = 4 + length;
      this.cards = JSON.parse(text).cards.map((said, number) => {
        const mask = new MaskVectors(decodePayload(bytes.subarray(at, (at += said.bytes))));
        return new Card(said, mask, (event) => this.choose(event, number));
      });
      this.list.replaceChildren(...this.cards.map((card) => card.element));
      for (const card of this.cards) this.sight.observe(card.element);
    }
    this.recolor();
  }

  choose(event, number) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // a new tab, a new window
    event.preventDefault();
    this.tell("chosen", number);
  }

  seen(entries) {
    for (const { target, isIntersecting } of entries)
      this.cards.find((card) => card.element === target).inSight = isIntersecting;
    this.request();
  }

  recolor() {
    this.palette = readPalette(this.probe.firstElementChild, Math.min(2, window.devicePixelRatio || 1));
    this.root.dataset.theme = this.palette.dark ? "dark" : "light";
    for (const card of this.cards) card.drawn = "";
    this.redraw();
  }

  redraw() {
    this.width = this.cards[0]?.stages[0].clientWidth;
    this.request();
  }

  // One card a frame, so that scrolling stays smooth.
  request() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      const next = this.cards.find((card) => card.inSight && card.drawn !== `${this.width}`);
      if (!next || !this.width) return;
      next.draw(this.palette);
      next.drawn = `${this.width}`;
      this.request();
    });
  }
}

class Card {
  constructor(said, mask, choose) {
    this.mask = mask;
    this.element = document.createElement("li");
    const link = made("a", "open"),
      pictures = made("span", "pictures");
    Object.assign(link, { href: said.compose, onclick: choose });
    this.stages = ["matrix", "vectors"].map((side) => {
      const canvas = made("canvas", side);
      canvas.setAttribute("aria-hidden", "true");
      canvas.style.aspectRatio = String(1 / Math.min(1.25, Math.max(0.3, mask.sq / mask.sk)));
      return canvas;
    });
    pictures.append(...this.stages);
    link.append(made("b", "title", said.title), pictures, made("span", "hint", "Open in Compose"));
    const facts = made("dl", "");
    for (const [name, value, title] of [
      ["density", said.density, "Visible pairs of all pairs"],
      ["skipped, ρ", said.rho, "Tiles that the kernel never computes, of all tiles"],
      [said.causal ? "vectors, causal" : "vectors, not causal", said.vectors, "The numbers that are stored for a key"],
    ]) {
      const fact = made("div", "");
      fact.title = title;
      fact.append(made("dt", "", name), made("dd", "", value));
      facts.append(fact);
    }
    const text = made("code", "", said.mask);
    text.title = said.mask;
    this.element.append(link, made("p", "about", said.about), text, facts);
    if (said.size) this.element.append(made("p", "size", said.size));
    this.element.dataset.title = said.title;
  }

  draw(palette) {
    const { mask, element } = this,
      view = wholeView(mask);
    for (const canvas of this.stages) {
      const width = Math.round(canvas.clientWidth * palette.scale),
        height = Math.round(canvas.clientHeight * palette.scale);
      if (width < 2 || height < 2) return;
      Object.assign(canvas, { width, height });
      const ctx = canvas.getContext("2d"),
        image = ctx.createImageData(width, height),
        raster = rasterise(mask, view, width, height);
      const { cellX, cellY } = scaleOf(view, width, height);
      if (canvas.className === "matrix")
        paintMatrix(image, raster, mask, palette, Math.min(cellX * mask.blockN, cellY * mask.blockM) >= 3);
      else paintArea(image, raster, palette);
      ctx.putImageData(image, 0, 0);
      if (canvas.className === "vectors") strokeVectors(ctx, mask, view, raster, palette);
    }
    element.dataset.drawn = palette.dark ? "dark" : "light";
  }
}

function made(tag, className, text = "") {
  const element = Object.assign(document.createElement(tag), { className });
  element.textContent = text;
  return element;
}

export default function (given) {
  return mount(given, ".fm-wall", Wall, (wall, tell) => wall.update(given.data, tell));
}
