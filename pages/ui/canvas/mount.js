// One object for the mounted element of a component: `Kind` is made of the element that `selector` names, again when
// Streamlit has put another one there, and `update` gives it what is new, and a function that tells the server of a
// press and returns its number; `whole(said)` tells which values of earlier presses of that name this one makes
// superfluous. Returns what Streamlit calls at the end.
//
// Streamlit loses triggers: of two that wait for one run the later replaces the earlier, and a run that another one stops
// has not called everybody. So the presses stay in the component's state, numbered, and go along with whatever request
// comes next; the server (presses.py) hears each number once, in order.
const mounted = new WeakMap();
const MOST_PRESSES = 64; // that are kept for a server that is busy
const PLACES = ["selection", "view", "step"]; // where a picture stands, told with the number of the screen (`opened`)
const ARRIVES_MS = 10_000; // the server has answered another address by then
let lastPress = 0,
  movedAt = -Infinity;

// Back, Forward and links ask for another address before the server has answered. Until then a picture shows what nobody
// asks for any more: its places are not to be mixed into the new address, and a request that tells them would call the
// old page back.
window.addEventListener("popstate", () => (movedAt = Date.now()));
window.addEventListener("click", (event) => leadsElsewhere(event) && (movedAt = Date.now()), { capture: true });
const elsewhere = () => Date.now() - movedAt < ARRIVES_MS;
const arrived = () => (movedAt = -Infinity);

function leadsElsewhere(event) {
  const link = event.composedPath().find((element) => element.tagName === "A" && element.href);
  if (!link || link.target || link.hasAttribute("download") || event.ctrlKey || event.metaKey) return false;
  return new URL(link.href).pathname !== window.location.pathname || new URL(link.href).search !== window.location.search;
}

function mount({ parentElement, setStateValue }, selector, Kind, update) {
  const root = parentElement.querySelector(selector);
  let here = mounted.get(parentElement);
  if (!here || here.root !== root) {
    here?.it.destroy();
    here = { root, it: new Kind(root), presses: here?.presses ?? [] };
    mounted.set(parentElement, here);
  }
  here.send = setStateValue;
  update(here.it, (name, value, { whole = null } = {}) => {
    if (PLACES.includes(name)) {
      if (elsewhere()) return lastPress;
      value = { place: value, opened: here.it.opened };
    }
    lastPress = Math.max(lastPress + 1, Date.now());
    const { heard = 0 } = here.it; // the highest number that the server is known to have heard
    const kept = here.presses.filter(([n, other, said]) => n > heard && !(other === name && whole?.(said)));
    here.presses = [...kept, [lastPress, name, value]].slice(-MOST_PRESSES);
    here.send("presses", here.presses);
    return lastPress;
  });
  return () => {
    mounted.get(parentElement)?.it.destroy();
    mounted.delete(parentElement);
  };
}
