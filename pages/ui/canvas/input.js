// Pointer, wheel and keys. Both panes share one view, so every handler works on the explorer and not on a pane.

const ZOOM_STEP = 1.25;

// In place of `Editing`, for pictures that cannot be painted on.
const READ_ONLY = { underWay: false, begin: () => false, point() {}, cancel() {}, key: () => false };

function listen(explorer) {
  const { root, panes, editing = READ_ONLY } = explorer,
    pointers = new Map();
  let pinch = null,
    moved = 0;

  const spotAt = (pane, event) => {
    const box = pane.over.getBoundingClientRect();
    const fx = (event.clientX - box.left) / box.width,
      fy = (event.clientY - box.top) / box.height;
    return { fx, fy, ...explorer.cellAt(fx, fy) };
  };

  for (const pane of panes) {
    const canvas = pane.over;
    canvas.addEventListener(
      "wheel",
      (event) => {
        const out = event.deltaY > 0;
        if (out && explorer.showsAll()) return;
        event.preventDefault();
        const lines = event.deltaMode === 1 ? 24 : 1;
        const { fx, fy } = spotAt(pane, event);
        explorer.zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0022), fx, fy);
      },
      { passive: false },
    );

    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event);
      if (pointers.size > 1) editing.cancel();
      else if (editing.begin(pane, spotAt(pane, event), event)) {
        moved = 99; // not a click, even if the edit is cancelled
        return;
      }
      moved = 0;
      pinch = pointers.size === 2 ? pinchOf(pointers, pane) : null;
    });

    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId),
        spot = spotAt(pane, event);
      if (!before) {
        explorer.hover(spot.inside ? spot : null);
        editing.point(pane, spot);
        return;
      }
      pointers.set(event.pointerId, event);
      if (editing.underWay) {
        editing.drag(spot);
        return;
      }
      if (pinch && pointers.size === 2) {
        const now = pinchOf(pointers, pane);
        explorer.panBy(pinch.fx - now.fx, pinch.fy - now.fy);
        explorer.zoom(pinch.distance / Math.max(8, now.distance), now.fx, now.fy);
        pinch = now;
        moved = 99;
        return;
      }
      const dx = event.clientX - before.clientX,
        dy = event.clientY - before.clientY;
      moved += Math.abs(dx) + Math.abs(dy);
      const box = canvas.getBoundingClientRect();
      if (moved > 4) {
        explorer.panBy(-dx / box.width, -dy / box.height);
        explorer.hover(null);
      }
    });

    const release = (event) => {
      const was = pointers.delete(event.pointerId);
      pinch = null;
      if (was && editing.underWay) {
        if (event.type !== "pointerup") editing.cancel();
        else if (!editing.commit()) moved = 0; // a click after all
        if (moved) return;
      }
      if (was && event.type === "pointerup" && moved <= 4 && pointers.size === 0) {
        const spot = spotAt(pane, event);
        if (spot.inside) explorer.select(spot);
      }
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => pointers.size || explorer.hover(null));
    canvas.addEventListener("dblclick", (event) => {
      event.preventDefault();
      explorer.reset();
    });
    canvas.addEventListener("keydown", (event) => onKey(explorer, event));
  }
  const strip = root.querySelector(".strip");
  strip?.addEventListener("pointermove", (event) => {
    const cell = event.target.closest("[data-k]");
    explorer.hover(cell && explorer.inColumn(Number(cell.dataset.k)));
  });
  strip?.addEventListener("pointerleave", () => explorer.hover(null));
  for (const button of root.querySelectorAll("button[data-do]"))
    button.addEventListener("click", () => press(explorer, button.dataset.do));
}

function pinchOf(pointers, pane) {
  const [a, b] = [...pointers.values()],
    box = pane.over.getBoundingClientRect();
  return {
    distance: Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY),
    fx: ((a.clientX + b.clientX) / 2 - box.left) / box.width,
    fy: ((a.clientY + b.clientY) / 2 - box.top) / box.height,
  };
}

function press(explorer, what) {
  if (what === "in") explorer.zoom(1 / ZOOM_STEP, 0.5, 0.5);
  if (what === "out") explorer.zoom(ZOOM_STEP, 0.5, 0.5);
  if (what === "reset") explorer.reset();
  if (what === "hide" || what === "show") explorer.editing.setMode(what);
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const JUMPS = { a: [-1, 0], d: [1, 0], w: [0, -1], s: [0, 1] }; // by a tile

function onKey(explorer, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ((explorer.editing ?? READ_ONLY).key(event)) {
    event.preventDefault();
    return;
  }
  const arrow = ARROWS[event.key];
  const jump = JUMPS[event.key.toLowerCase()];
  if (arrow && (event.shiftKey || explorer.showsAll())) explorer.moveSelection(arrow[0], arrow[1]);
  else if (jump) explorer.moveSelection(jump[0] * explorer.mask.blockN, jump[1] * explorer.mask.blockM);
  else if (arrow) explorer.panBy(arrow[0] * 0.1, arrow[1] * 0.1);
  else if (event.key === "+" || event.key === "=") press(explorer, "in");
  else if (event.key === "-" || event.key === "_") press(explorer, "out");
  else if (event.key === "0") press(explorer, "reset");
  else if (event.key === "Escape") explorer.select(null);
  else return;
  event.preventDefault();
}
