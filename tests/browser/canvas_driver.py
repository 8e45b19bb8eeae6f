"""Drives the canvas of a page and reads back what it says."""

import json
from urllib.parse import urlencode, urlsplit
from zlib import crc32

_ROOT = """(() =>
    [...document.querySelectorAll("*")].map((e) => e.shadowRoot?.querySelector(".fm-canvas")).find(Boolean))()"""


class Screen:
    """One tab of the app."""

    def __init__(self, page, address: str):
        self.page, self.address, self.errors, self.foreign = page, address, [], []
        page.on("console", lambda m: m.type == "error" and self.errors.append(f"{m.text} {m.location}"))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._note_request)

    def _note_request(self, request):
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.foreign.append(request.url)

    def open(self, path: str = "", **query):
        """Go to a page; on the Compose page, wait until the canvas shows its mask."""
        self.page.goto(f"{self.address}/{path}?{urlencode(query)}")
        if not path:
            self.settled()
        return self

    def go(self, **query):
        """Move to another screen of the Compose page without loading it again, as the Back button does."""
        self.settled()
        before = self.word("opened")
        self.page.evaluate(
            "(q) => { history.pushState({}, '', '?' + q); dispatchEvent(new PopStateEvent('popstate')); }",
            urlencode(query),
        )
        self.page.wait_for_function(f"(before) => {_ROOT}?.dataset.opened !== before", arg=before, timeout=30_000)
        return self.shows(query["mask"], query["n"], query.get("nk"))

    def shows(self, mask: str, n: int, nk: int | None = None):
        """Wait until the canvas shows this mask."""
        shown = f"{n}x{nk or n}::{crc32(mask.encode()):08x}"
        self.page.wait_for_function(f"(id) => {_ROOT}?.dataset.ready === id", arg=shown, timeout=30_000)
        self.settled()
        return self

    def settled(self):
        """Wait until the canvas is there and no script runs."""
        self.page.wait_for_selector(".fm-canvas[data-ready]", timeout=30_000)
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=30_000)
        self.frames()

    def frames(self, count: int = 3):
        """Let the canvas draw."""
        self.page.evaluate(
            "(n) => new Promise((done) => { const f = () => (n-- ? requestAnimationFrame(f) : done()); f(); })", count
        )

    def told(self, name: str):
        """A data attribute of the canvas, as JSON."""
        return json.loads(self.page.evaluate(f"{_ROOT}.dataset.{name}"))

    def word(self, name: str) -> str:
        return self.page.evaluate(f"{_ROOT}.dataset.{name}")

    def box(self, side: str = "matrix") -> dict:
        self.page.locator(f".pane[data-side={side}] canvas.over").scroll_into_view_if_needed()
        return self.page.locator(f".pane[data-side={side}] canvas.over").bounding_box()

    def point(self, fx: float, fy: float, side: str = "matrix") -> dict:
        """Move the pointer to a place of a pane, given as fractions; what the canvas then says."""
        box = self.box(side)
        self.page.mouse.move(box["x"] + fx * box["width"], box["y"] + fy * box["height"])
        self.frames()
        return self.told("says")

    def sweep(self, places: list[tuple[float, float, str]]) -> list[dict]:
        """What the canvas says, and its line of text, with the pointer at each (fx, fy, side) in turn."""
        return self.page.evaluate(
            f"""async (places) => {{
                const root = {_ROOT}, out = [];
                for (const [fx, fy, side] of places) {{
                    const canvas = root.querySelector(`.pane[data-side=${{side}}] canvas.over`);
                    const box = canvas.getBoundingClientRect();
                    canvas.dispatchEvent(new PointerEvent("pointermove", {{
                        clientX: box.left + fx * box.width, clientY: box.top + fy * box.height }}));
                    await new Promise(requestAnimationFrame);
                    await new Promise(requestAnimationFrame);
                    out.push({{ ...JSON.parse(root.dataset.says), line: root.querySelector(".readout").innerText }});
                }}
                return out;
            }}""",
            places,
        )

    def rested(self):
        """Wait until the view is at rest, drawn exactly, and in the address."""
        self.page.wait_for_timeout(180)
        self.page.wait_for_function(f"() => {_ROOT}.dataset.moving === 'false'")
        self.frames()

    def frame_rate(self, seconds: float = 2.0, gesture: str = "zoom") -> float:
        """Frames a second while the pointer zooms in and out, or drags."""
        return self.page.evaluate(
            f"""async ([seconds, gesture]) => {{
                const canvas = {_ROOT}.querySelector("canvas.over"), box = canvas.getBoundingClientRect();
                const fire = (Kind, type, more) => canvas.dispatchEvent(new Kind(type, {{ cancelable: true,
                    bubbles: true, clientX: box.left + 150, clientY: box.top + 150, ...more }}));
                canvas.setPointerCapture = () => {{}};
                let frames = 0;
                const began = performance.now();
                if (gesture === "drag") fire(PointerEvent, "pointerdown", {{ pointerId: 7, buttons: 1 }});
                for (let i = 0; performance.now() - began < seconds * 1000; i++, frames++) {{
                    const there = i % 40 < 20 ? i % 40 : 40 - (i % 40);
                    if (gesture === "zoom") fire(WheelEvent, "wheel", {{ deltaY: i % 40 < 20 ? -60 : 60 }});
                    else fire(PointerEvent, "pointermove", {{ pointerId: 7, buttons: 1,
                        clientX: box.left + 150 + 5 * there, clientY: box.top + 150 + 5 * there }});
                    await new Promise(requestAnimationFrame);
                }}
                if (gesture === "drag") fire(PointerEvent, "pointerup", {{ pointerId: 7 }});
                return (frames * 1000) / (performance.now() - began);
            }}""",
            [seconds, gesture],
        )

    def keys(self, *names: str):
        self.page.locator(".pane[data-side=matrix] canvas.over").focus()
        for name in names:
            self.page.keyboard.press(name)
        self.rested()

    def pixel(self, fx: float, fy: float, side: str = "matrix", reach: int = 0) -> list[list[int]]:
        """Colours of the drawing at a place, `reach` pixels around it too."""
        return self.page.evaluate(
            f"""([fx, fy, side, reach]) => {{
                const c = {_ROOT}.querySelector(`.pane[data-side=${{side}}] canvas.base`);
                const x = Math.floor(fx * c.width), y = Math.floor(fy * c.height), n = 2 * reach + 1;
                const d = c.getContext("2d").getImageData(x - reach, y - reach, n, n).data, out = [];
                for (let i = 0; i < d.length; i += 4) out.push([d[i], d[i + 1], d[i + 2]]);
                return out;
            }}""",
            [fx, fy, side, reach],
        )
