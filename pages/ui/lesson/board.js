// The board of one exercise: figures, a button that asks the library, what it says. What is typed shows at once.

const KEEP_MS = 400;

class Board {
  constructor(root) {
    this.root = root;
    this.status = root.querySelector("[role=status]");
    this.reveal = root.querySelector(".reveal");
    root.querySelector(".check").addEventListener("click", () => this.ask("check"));
    this.reveal.addEventListener("click", () => this.ask("reveal"));
    root.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input")) this.ask("check");
    });
  }

  destroy() {
    clearTimeout(this.keeping);
  }

  update(data, tell) {
    this.tell = tell;
    const fresh = data.id !== this.id;
    const typed = fresh ? remembered(data) : null;
    if (fresh || data.reveals !== this.reveals) this.answer = typed ?? [...data.answer];
    if (fresh) {
      clearTimeout(this.keeping);
      this.kind = BOARDS[data.task.kind](this, data.task);
      this.root.querySelector(".figures").replaceChildren(...this.kind.elements);
      if (this.id) toTheTop();
    }
    if (fresh || data.checks !== this.checks) this.verdict = data.verdict;
    Object.assign(this, { id: data.id, checks: data.checks, reveals: data.reveals });
    if (String(this.answer) === String(data.answer)) remember(this.id, this.answer);
    else if (fresh) this.set(0, this.answer[0]);
    this.reveal.hidden = data.tries < 2 || data.solved;
    this.paint();
    Object.assign(this.root.dataset, { ready: data.id, checks: data.checks });
  }

  set(index, value) {
    this.answer[index] = value;
    this.verdict = null;
    this.paint();
    remember(this.id, this.answer);
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.tell("answer", this.told()), KEEP_MS);
  }

  told() {
    return { id: this.id, answer: this.answer };
  }

  ask(what) {
    clearTimeout(this.keeping);
    this.tell(what, this.told());
  }

  paint() {
    const { verdict } = this,
      wrong = new Set((verdict?.wrong ?? []).map(([q, k]) => `${q},${k}`));
    this.kind.paint(this.answer, wrong, verdict?.right);
    this.status.className = verdict?.right ? "right" : "";
    this.status.textContent = verdict ? `${verdict.right ? "✓ " : ""}${verdict.says}` : "";
    this.root.dataset.right = verdict ? String(verdict.right) : "";
  }
}

// What was typed is kept by the tab itself, so that it outlives a quick way out, a page that is loaded again and a
// server that is started again; where a browser keeps nothing, the server's memory stands.
const place = (id) => `flashmask lesson ${id}`;

function remember(id, answer) {
  try {
    sessionStorage.setItem(place(id), JSON.stringify(answer));
  } catch {}
}

function remembered({ id, answer }) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(place(id)));
    return Array.isArray(kept) && kept.length === answer.length ? kept : null;
  } catch {
    return null;
  }
}

// Another step begins with its words: on a phone they are far above the button that leads there.
function toTheTop() {
  document.querySelector("[data-testid=stMain]")?.scrollTo({ top: 0 });
  document.querySelector(".fm-lesson h2")?.focus({ preventScroll: true });
}

export default function (given) {
  return mount(given, ".fm-board", Board, (board, tell) => board.update(given.data, tell));
}
