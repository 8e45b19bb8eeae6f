// Undo and redo by button, Ctrl+Z and Ctrl+Shift+Z (or Ctrl+Y); in a field that is typed in, the keys are the field's.

const SAID_MS = 10_000; // for so long it is said what was replaced, and longer under the pointer or in focus
let lastSaid = 0;

class UndoButtons {
  constructor(root) {
    this.buttons = [...root.querySelectorAll("button")];
    this.replaced = root.querySelector(".replaced");
    for (const button of this.buttons) button.addEventListener("click", () => this.tell(button.dataset.do, true));
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  destroy() {
    document.removeEventListener("keydown", this.onKey);
    clearTimeout(this.ending);
  }

  update(data, tell) {
    Object.assign(this, { tell, heard: data.heard });
    for (const button of this.buttons) button.disabled = !data[button.dataset.do];
    if (!data.replaced) this.silence();
    else if (data.replaced.number !== lastSaid) this.say(data.replaced);
  }

  say({ number, says }) {
    lastSaid = number;
    this.replaced.showPopover();
    this.replaced.firstElementChild.textContent = says;
    const end = () => {
      if (this.replaced.matches(":hover, :focus-within")) this.ending = setTimeout(end, SAID_MS / 4);
      else this.silence();
    };
    clearTimeout(this.ending);
    this.ending = setTimeout(end, SAID_MS);
  }

  silence() {
    clearTimeout(this.ending);
    this.replaced.hidePopover();
  }

  key(event) {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !["z", "y"].includes(key) || isTypedIn(event)) return;
    event.preventDefault();
    this.tell(key === "y" || event.shiftKey ? "redo" : "undo", true);
  }
}

function isTypedIn(event) {
  const [at] = event.composedPath();
  return at.isContentEditable || at.tagName === "TEXTAREA" || (at.tagName === "INPUT" && !/checkbox|range/.test(at.type));
}

export default function (given) {
  return mount(given, ".fm-undo", UndoButtons, (buttons, tell) => buttons.update(given.data, tell));
}
