"""What is shown can be read, in both themes and on every page: contrast as computed by the browser, and the focus."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8").rstrip().removesuffix(";")
PAGES = {"gallery": 250, "compare": 40, "walk": 100, "train": 60, "measure": 60, "paper": 100, "learn": 30}
# The element in focus shows it, by an outline or a shadow of its own or of the box around it.
SHOWS_FOCUS = """() => {
  let e = document.activeElement;
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
  const shows = (s) => (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1) || s.boxShadow !== "none";
  for (let at = e, up = 0; at && up < 4; at = at.parentElement, up++)
    if (shows(getComputedStyle(at))) return "";
  return `${e.tagName} ${e.ariaLabel} ${e.textContent.slice(0, 30)}`;
}"""


def assert_readable(tab, least: int):
    for _ in range(20):  # what is drawn late, or still fades in
        told = tab.page.evaluate(CONTRAST)
        if told["many"] >= least and not told["found"]:
            break
        tab.page.wait_for_timeout(200)
    assert told["found"] == [] and told["many"] >= least, (told["many"], tab.page.url)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_can_be_read(screen, theme):
    tab = screen(theme).open()
    tab.page.locator(".js-plotly-plot").wait_for()
    assert_readable(tab, 100)
    text = tab.page.get_by_label("Mask", exact=True)
    text.fill("causal & ~rect(90, 99, 0, 9) & ~rect(70, 79, 0, 9)")  # the ways on
    text.press("Enter")
    tab.page.get_by_role("alert").filter(has_text="does not fit").wait_for()
    tab.settled()
    assert_readable(tab, 150)
    tab.page.get_by_role("button", name="Language").click()
    tab.page.locator(".fm-language").wait_for()
    tab.settled()
    assert_readable(tab, 300)
    tab.page.keyboard.press("Escape")
    text.fill("causal &")  # layers that stand still
    text.press("Enter")
    tab.page.get_by_text("Layers of the last text").wait_for()
    tab.settled()
    assert_readable(tab, 100)
    text.fill("causal & document(60, 40)")
    text.press("Enter")
    tab.shows("causal & document(60, 40)", 8192)
    for name, least in PAGES.items():
        tab.page.locator(f"[data-testid=stPageLink-NavLink][href*={name}]").click()
        tab.page.wait_for_url(f"**/{name}**")
        expect(tab.page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_visible()
        assert_readable(tab, least)


def test_the_focus_is_seen_wherever_it_goes(screen):
    tab = screen().open(mask="(abs(q - k) < 30) | causal & document(60, 40)", n=100)
    unseen = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        unseen.append(tab.page.evaluate(SHOWS_FOCUS))
    assert set(unseen) == {""}
