// One object for the mounted element of a component: `Kind` is made of the element that `selector` names, again when
// Streamlit has put another one there, and `update` gives it what is new, and a function that tells the server of a
// press and returns its number; a press that says the whole of something takes the place of those before. Returns what Streamlit calls at the end.
//
// Streamlit loses triggers: of two that wait for one run the later replaces the earlier, and a run that another one stops
// has not called everybody. So the presses stay in the component's state, numbered, and go along with whatever request
// comes next; the server (presses.py) hears each number once, in order.
const mounted = new WeakMap();
const MOST_PRESSES = 64; // that are kept for a server that is busy
let lastPress = 0;

function mount({ parentElement, setStateValue }, selector, Kind, update) {
  const root = parentElement.querySelector(selector);
  let here = mounted.get(parentElement);
  if (!here || here.root !== root) {
    here?.it.destroy();
    here = { root, it: new Kind(root), presses: here?.presses ?? [] };
    mounted.set(parentElement, here);
  }
  here.send = setStateValue;
  update(here.it, (name, value, { whole = false } = {}) => {
    lastPress = Math.max(lastPress + 1, Date.now());
    const kept = whole ? here.presses.filter(([, other]) => other !== name) : here.presses;
    here.presses = [...kept, [lastPress, name, value]].slice(-MOST_PRESSES);
    here.send("presses", here.presses);
    return lastPress;
  });
  return () => {
    mounted.get(parentElement)?.it.destroy();
    mounted.delete(parentElement);
  };
}
