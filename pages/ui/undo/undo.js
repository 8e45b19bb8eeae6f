// Undo and redo by button, Ctrl+Z and Ctrl+Shift+Z (or Ctrl+Y); in a field that is typed in, the keys are the field's.

class UndoButtons {
  constructor(root) {
    this.buttons = [...root.querySelectorAll("button")];
    for (const button of this.buttons) button.addEventListener("click", () => this.tell(button.dataset.do, true));
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  destroy() {
    document.removeEventListener("keydown", this.onKey);
  }

  update(data, tell) {
    Object.assign(this, { tell, heard: data.heard });
    for (const button of this.buttons) button.disabled = !data[button.dataset.do];
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
