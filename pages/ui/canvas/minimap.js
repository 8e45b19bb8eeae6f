// The whole mask in a corner while the picture shows a part of it: where one is, and a way to go elsewhere.

class Minimap {
  constructor(canvas, explorer) {
    Object.assign(this, { canvas, explorer, image: null });
    const go = (event) => {
      const box = canvas.getBoundingClientRect(),
        at = (v, size) => Math.min(1, Math.max(0, v / size));
      explorer.centerOn(at(event.clientX - box.left, box.width), at(event.clientY - box.top, box.height));
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      explorer.hover(null);
      go(event);
    });
    canvas.addEventListener("pointermove", (event) => canvas.hasPointerCapture(event.pointerId) && go(event));
  }

  forget() {
    this.image = null;
  }

  draw() {
    const { canvas, explorer } = this,
      { mask, view, palette, scale } = explorer;
    canvas.hidden = showsWhole(view, mask);
    if (canvas.hidden) return;
    const width = Math.round(canvas.clientWidth * scale),
      height = Math.round(canvas.clientHeight * scale);
    if (width < 2 || height < 2) return;
    if (canvas.width !== width || canvas.height !== height) {
      Object.assign(canvas, { width, height });
      this.image = null;
    }
    const ctx = canvas.getContext("2d");
    if (!this.image) {
      this.image = ctx.createImageData(width, height);
      paintMatrix(this.image, rasterise(mask, wholeView(mask), width, height), mask, palette, false);
    }
    ctx.putImageData(this.image, 0, 0);
    ctx.strokeStyle = palette.select;
    ctx.lineWidth = 2 * scale;
    const box = (start, span, length, size) => {
      const wide = Math.max(5 * scale, (span / length) * size);
      return [Math.min((start / length) * size, size - wide), wide];
    };
    const [x, w] = box(view.c, view.w, mask.sk, width),
      [y, h] = box(view.r, view.h, mask.sq, height);
    ctx.strokeRect(x, y, w, h);
  }
}
