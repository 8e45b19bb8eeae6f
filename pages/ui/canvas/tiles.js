// Below the pictures: the map of all tiles, the two loops that go through the chosen tile, and the comparison that
// decided its kind. They light up with the pictures, and a click on them chooses a tile everywhere.

const MOST_SQUARES = 512; // a side of the map

class TileViews {
  constructor(root, explorer) {
    Object.assign(this, { root, explorer, image: null, key: "" });
    this.map = root.querySelector(".tilemap");
    this.loops = Object.fromEntries([...root.querySelectorAll(".loop")].map((c) => [c.dataset.loop, c]));
    this.point(this.map, (fx, fy) => {
      const { mask } = explorer;
      return [Math.floor((fy * mask.sq) / mask.blockM), Math.floor((fx * mask.sk) / mask.blockN)];
    });
    this.point(this.loops.row, (fx) => [this.tile[0], Math.floor(fx * explorer.mask.tilesN)]);
    this.point(this.loops.column, (fx) => [Math.floor(fx * explorer.mask.tilesM), this.tile[1]]);
  }

  // Pointing at a tile hovers the cell in its middle, a click chooses it.
  point(canvas, tileAt) {
    const spotOf = (event) => {
      const box = canvas.getBoundingClientRect(),
        at = (v, size) => Math.min(0.999999, Math.max(0, v / size));
      const [i, j] = tileAt(at(event.clientX - box.left, box.width), at(event.clientY - box.top, box.height));
      return this.explorer.mask.middleOf(i, j);
    };
    canvas.addEventListener("pointermove", (event) => event.buttons || this.explorer.hover(spotOf(event)));
    canvas.addEventListener("pointerleave", () => this.explorer.hover(null));
    canvas.addEventListener("click", (event) => this.explorer.select(spotOf(event)));
  }

  forget() {
    this.image = null;
    this.key = "";
  }

  draw(spot) {
    const { mask, view, palette, scale } = this.explorer,
      at = spot ?? mask.middleOf(0, 0);
    this.tile = [Math.floor(at.q / mask.blockM), Math.floor(at.k / mask.blockN)];
    this.drawMap(mask, view, palette, scale);
    const key = [mask.head.id, mask.tileKey, ...this.tile].join();
    if (key === this.key) return;
    this.key = key;
    const [i, j] = this.tile;
    this.drawLoop("row", mask.kindsOfRow(i), j, palette, scale);
    this.drawLoop("column", mask.kindsOfBlock(j), i, palette, scale);
    this.write("row", `Forward: the loop of row tile ${grouped(i)} over key tiles`, mask.kindsOfRow(i));
    this.write("column", `Backward: the loop of key tile ${grouped(j)} over row tiles`, mask.kindsOfBlock(j));
    this.writeWhy(mask, i, j);
  }

  drawMap(mask, view, palette, scale) {
    const { map } = this;
    if (!fitCanvas(map, scale)) return;
    const ctx = map.getContext("2d"),
      { width, height } = map;
    const merged = Math.ceil(Math.max(mask.tilesM, mask.tilesN) / Math.min(MOST_SQUARES, width, height));
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = ctx.createImageData(width, height);
      paintKinds(this.image, mask, merged, palette);
      const size = `${grouped(mask.tilesM)} × ${grouped(mask.tilesN)} tiles`;
      const rule = mask.rule === "paper" ? ", judged by the exact rule" : "";
      this.root.querySelector("[data-side=tiles] small").textContent =
        merged === 1 ? size : `${size} · 1 square = ${merged} × ${merged} of them${rule}`;
    }
    ctx.putImageData(this.image, 0, 0);
    const x = (k) => (k / mask.sk) * width,
      y = (q) => (q / mask.sq) * height;
    const t = mask.tileRange(...this.tile);
    ctx.strokeStyle = palette.select;
    ctx.lineWidth = 2 * scale;
    const edge = 5 * scale;
    ctx.strokeRect(x(t.c0), y(t.r0), Math.max(edge, x(t.c1 - t.c0)), Math.max(edge, y(t.r1 - t.r0)));
    if (!showsWhole(view, mask)) {
      ctx.lineWidth = scale;
      ctx.setLineDash([3 * scale, 2 * scale]);
      ctx.strokeStyle = palette.text;
      ctx.strokeRect(x(view.c), y(view.r), Math.max(edge, x(view.w)), Math.max(edge, y(view.h)));
      ctx.setLineDash([]);
    }
  }

  drawLoop(which, kinds, chosen, palette, scale) {
    const canvas = this.loops[which];
    if (!fitCanvas(canvas, scale)) return;
    const ctx = canvas.getContext("2d"),
      { width, height } = canvas,
      image = ctx.createImageData(width, height);
    const shades = kindShades(palette),
      cell = width / kinds.length,
      pixels = new Uint32Array(image.data.buffer);
    for (let x = 0; x < width; x++) {
      const from = Math.floor(x / cell),
        kind = joinedKind(kinds, from, Math.max(from + 1, Math.ceil((x + 1) / cell)));
      const border = cell >= 5 * scale && from !== Math.floor((x - 1) / cell);
      for (let y = 0, p = x; y < height; y++, p += width)
        pixels[p] = border ? palette.packed.ground : shades(kind, x, y);
    }
    ctx.putImageData(image, 0, 0);
    ctx.strokeStyle = palette.select;
    ctx.lineWidth = 2 * scale;
    ctx.strokeRect(Math.min(chosen * cell, width - 5 * scale), scale, Math.max(4 * scale, cell), height - 2 * scale);
  }

  write(which, title, kinds) {
    const counts = [0, 0, 0];
    for (const kind of kinds) counts[kind]++;
    const [empty, partial, full] = counts.map(grouped);
    const header = this.root.querySelector(`[data-says=${which}]`);
    header.querySelector("b").textContent = title;
    header.querySelector("small").textContent =
      `computes ${grouped(counts[1] + counts[2])} of ${grouped(kinds.length)}: ${partial} partial, ${full} full; ` +
      `skips ${empty}`;
    this.loops[which].setAttribute("aria-label", `${title}: ${header.querySelector("small").textContent}`);
  }

  writeWhy(mask, i, j) {
    const { r0, r1, c0, c1 } = mask.tileRange(i, j);
    const section = this.root.querySelector(".why");
    section.querySelector("b").textContent = `Tile (${grouped(i)}, ${grouped(j)}) is ${KIND_WORDS[mask.kind(i, j)]}`;
    section.querySelector("small").textContent = `${columnsText(c0, c1)} against ${rowsText(r0, r1)}`;
    const table = document.createElement("table");
    const line = (cells, tag) => {
      const row = table.insertRow();
      cells.forEach((text, n) => {
        const cell = document.createElement(n ? tag : "th");
        cell.textContent = text;
        if (!n || tag === "th") cell.scope = n ? "col" : "row";
        row.append(cell);
      });
      return row;
    };
    line(["", "smallest", "largest", "so it"], "th");
    for (const [name, low, high, says] of boundsOfTile(mask, i, j)) {
      const row = line([name, grouped(low), grouped(high), says], "td");
      row.className = /^[LU]/.test(name) ? name.toLowerCase() : "ute";
    }
    section.querySelector("table").replaceWith(table);
  }
}

function fitCanvas(canvas, scale) {
  const width = Math.round(canvas.clientWidth * scale),
    height = Math.round(canvas.clientHeight * scale);
  if (width < 2 || height < 2) return false;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  return true;
}

// Several tiles as one: skipped or full only if all of them are.
function joinedKind(kinds, from, to) {
  const first = kinds[Math.min(from, kinds.length - 1)];
  for (let n = from + 1; n < Math.min(to, kinds.length); n++) if (kinds[n] !== first) return PARTIAL;
  return first;
}

function kindShades({ packed, hatchPitch }) {
  const dark = Math.max(1, Math.round(hatchPitch * 0.3));
  return (kind, x, y) =>
    kind === EMPTY
      ? packed.empty
      : kind === FULL
        ? packed.full
        : (x + y) % hatchPitch < dark
          ? packed.partialDark
          : packed.partial;
}

// Squares of many tiles are the pixels of a small picture: none, some or all of their cells visible.
function joinedKinds(mask, tokensM, tokensN) {
  const rows = Math.ceil(mask.sq / tokensM),
    columns = Math.ceil(mask.sk / tokensN);
  const view = { c: 0, w: columns * tokensN, r: 0, h: rows * tokensM },
    { states } = rasterise(mask, view, columns, rows);
  return (j) => states.subarray(j * rows, (j + 1) * rows);
}

// The map: a square a tile, or `merged` x `merged` tiles a square.
function paintKinds(image, mask, merged, palette) {
  const { width, height } = image,
    out = new Uint32Array(image.data.buffer),
    shades = kindShades(palette);
  const tokensM = mask.blockM * merged,
    tokensN = mask.blockN * merged,
    joined = merged === 1 ? null : joinedKinds(mask, tokensM, tokensN);
  let kinds = null,
    before = -1;
  const line = Math.min((tokensN / mask.sk) * width, (tokensM / mask.sq) * height) >= 6;
  const tileOf = (p, pixels, length, tokens) => Math.floor((((p + 0.5) / pixels) * length) / tokens);
  for (let x = 0; x < width; x++) {
    const j = tileOf(x, width, mask.sk, tokensN);
    const edge = line && x > 0 && j !== before;
    if (j !== before) kinds = joined ? joined(j) : mask.kindsOfBlock(j);
    before = j;
    for (let y = 0, p = x, last = 0; y < height; y++, p += width) {
      const i = tileOf(y, height, mask.sq, tokensM);
      out[p] = edge || (line && i !== last) ? palette.packed.ground : shades(kinds[i], x, y);
      last = i;
    }
  }
}
