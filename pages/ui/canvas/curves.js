// The chart of the vectors below the picture is Plotly's: pointing at it lights the column here.

class Curves {
  constructor(explorer) {
    this.explorer = explorer;
    this.known = new WeakSet();
    this.over = (event) => this.meet(event.target);
    document.addEventListener("pointerover", this.over);
  }

  destroy() {
    document.removeEventListener("pointerover", this.over);
  }

  // A chart is asked to tell when the pointer first comes to it; it may come and go with every rerun.
  meet(element) {
    const chart = element.closest?.(".st-key-curves .js-plotly-plot");
    if (!chart?.on || this.known.has(chart)) return;
    this.known.add(chart);
    chart.on("plotly_hover", ({ xvals }) => this.point(Math.floor(xvals[0])));
    chart.on("plotly_unhover", () => this.explorer.hover(null));
  }

  point(k) {
    const { mask } = this.explorer;
    if (k >= 0 && k < mask.sk) this.explorer.hover(this.explorer.inColumn(k));
  }
}
