// The reference of the language: what is pressed there is told to the server by its name.

class Language {
  constructor(root) {
    this.root = root;
    this.now = root.querySelector(".now code");
    this.join = root.querySelector("select");
    this.buttons = [...root.querySelectorAll("button")];
    for (const button of this.buttons)
      button.addEventListener("click", () => this.tell("add", { name: button.dataset.name, join: this.join.value }));
    // It stands at the end of the page: the focus that opened it comes along, or Tab would not reach it.
    if (document.activeElement?.closest(".st-key-language")) this.join.focus({ preventScroll: true });
  }

  destroy() {}

  update({ text, file, stale, examples, heard }, tell) {
    Object.assign(this, { tell, heard });
    const says = file ? "An uploaded mask: a press begins a new one in its place." : text;
    if (this.now.textContent !== says) this.now.textContent = says;
    this.root.dataset.stale = stale;
    for (const button of this.buttons) {
      button.textContent = examples[button.dataset.name];
      button.disabled = stale;
      button.title = stale ? "The text is not a mask yet: set it right first" : "Add it to the mask";
    }
  }
}

export default function (given) {
  return mount(given, ".fm-language", Language, (language, tell) => language.update(given.data, tell));
}
