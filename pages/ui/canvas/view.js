// The part of the matrix that is shown: {c, w, r, h}, first column and columns shown, first row and rows shown.

const LARGEST_CELL = 48; // CSS pixels

const wholeView = (mask) => ({ c: 0, w: mask.sk, r: 0, h: mask.sq });

const showsWhole = (view, mask) => view.w >= mask.sk && view.h >= mask.sq;

// The nearest view that can be shown in pictures of width x height CSS pixels.
function fittedView(view, mask, width, height) {
  const along = (start, span, length, pixels) => {
    const shown = Math.min(length, Math.max(Math.min(length, pixels / LARGEST_CELL), span));
    return [Math.min(length - shown, Math.max(0, start)), shown];
  };
  const [c, w] = along(view.c, view.w, mask.sk, width),
    [r, h] = along(view.r, view.h, mask.sq, height);
  return { c, w, r, h };
}

// Factor below 1 goes closer; what lies at (fx, fy), fractions of the picture, stays there.
function zoomedView(view, mask, width, height, factor, fx, fy) {
  const { w, h } = fittedView({ ...view, w: view.w * factor, h: view.h * factor }, mask, width, height);
  return fittedView({ c: view.c + (view.w - w) * fx, w, r: view.r + (view.h - h) * fy, h }, mask, width, height);
}

// As it stands in the address: "column,columns,row,rows".
const viewText = (view) => [view.c, view.w, view.r, view.h].map((v) => +v.toFixed(2)).join(",");

// The address follows the picture at once and without the server; an earlier place is not worth a step of "back".
function writeAddress(name, value) {
  if (elsewhere()) return;
  const url = new URL(window.location.href);
  if (value === null) url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  window.history.replaceState(window.history.state, "", url);
}
