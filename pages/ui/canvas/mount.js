// One object for the mounted element of a component: `Kind` is made of the element that `selector` names, again when
// Streamlit has put another one there, and `update` gives it what is new. Returns what Streamlit calls at the end.
const mounted = new WeakMap();

function mount(parentElement, selector, Kind, update) {
  const root = parentElement.querySelector(selector);
  let it = mounted.get(parentElement);
  if (!it || it.root !== root) {
    it?.destroy();
    it = new Kind(root);
    mounted.set(parentElement, it);
  }
  update(it);
  return () => {
    mounted.get(parentElement)?.destroy();
    mounted.delete(parentElement);
  };
}
