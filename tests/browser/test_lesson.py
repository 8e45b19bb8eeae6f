"""The lesson in a real browser: every step answered wrong and right, by keys and clicks, on a desk and a phone."""

import random

import pytest
from playwright.sync_api import expect

from pages.ui.lesson.steps import STEPS, TASKS, practice

pytestmark = pytest.mark.browser

WIDTHS = pytest.mark.parametrize("theme, width", [("light", 1440), ("dark", 390)])


class Lesson:
    """Drives the board of a tab."""

    def __init__(self, tab):
        self.tab, self.page = tab, tab.page
        self.root = tab.page.locator(".fm-board")

    def open(self, step: int = 1):
        self.tab.open("learn", lesson=step)
        self.at(step)
        return self

    def at(self, step: int | str):
        self.page.wait_for_selector(f".fm-board[data-ready='{step}']", timeout=30_000)
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=30_000)

    def check(self) -> str:
        """Ask the library; what it says."""
        before = int(self.root.get_attribute("data-checks"))
        self.root.get_by_role("button", name="Check").click()
        self.page.wait_for_selector(f".fm-board[data-checks='{before + 1}']")
        return self.root.locator("[role=status]").inner_text()

    def numbers(self, values):
        """Type numbers with the keyboard alone, from the first field on."""
        self.root.locator("input.number").first.focus()
        for value in values:
            self.page.keyboard.type(str(value))
            self.page.keyboard.press("Tab")

    def answer(self, exercise, answer: list[int]):
        task = exercise.task()
        if task["kind"] == "row":
            for k, mark in enumerate(answer):
                button = self.root.locator("button.cell").nth(k)
                if (button.get_attribute("aria-pressed") == "true") != bool(mark):
                    button.focus()
                    self.page.keyboard.press("Space")
        elif task["kind"] == "vectors":
            order = {name: i for i, name in enumerate(task["names"])}
            fields = sorted(zip(task["numbers"], answer), key=lambda x: (order[x[0][0]], x[0][1]))
            self.numbers([value for _, value in fields])
        elif task["kind"] == "tiles":
            for tile, kind in enumerate(answer):
                self.root.locator("[role=radiogroup]").nth(tile).locator("input").nth(kind).check()
        elif task["kind"] == "free":
            self.root.get_by_label("Packed as").select_option(str(answer[0]))
            packed = (task["options"][answer[0]] or [False, []])[1]
            places = [1 + 8 * task["names"].index(name) for name in packed]
            if packed:
                self.numbers([x for at in places for x in answer[at : at + 8]])
        else:
            self.root.locator("[name=choice]").nth(answer[0]).check()
            self.numbers([answer[1]])


@WIDTHS
def test_the_whole_lesson_wrong_and_right(screen, theme, width):
    it = Lesson(screen(theme, width)).open()
    for number, step in enumerate(STEPS, 1):
        it.at(number)
        right = step.exercise.solution()
        wrong = [(x + 1) % 2 if step.exercise.task()["kind"] == "row" else max(0, x - 1) for x in right]
        it.answer(step.exercise, wrong)
        assert it.check().startswith(("Not yet", "That is the one")), step.title
        it.answer(step.exercise, right)
        assert it.check().startswith("✓ Right"), step.title
        assert it.page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
        expect(it.page.locator(".fm-lesson.after")).to_be_visible()
        it.page.get_by_role("button", name="Next" if number < len(STEPS) else "Practice").click()
    it.page.wait_for_selector(".fm-board[data-ready^='11: ']")
    it.page.reload()
    for number in range(1, len(STEPS) + 1):
        expect(it.page.get_by_role("radio", name=f"{number} ✓")).to_be_visible()


def test_practice_of_tasks_and_of_a_text_of_ones_own(screen):
    it = Lesson(screen())
    it.tab.open("learn", lesson=11)
    for number in (2, 5, 7):  # two vectors, none that fit, all four
        task = list(TASKS)[number - 1]
        it.page.get_by_label("Task").click()
        it.page.get_by_role("option", name=f"Task {number}").click()
        it.at(f"11: {task}")
        expect(it.page.locator(".fm-lesson .task")).to_have_text(TASKS[task])
        exercise = practice(task)
        assert it.check().startswith("Not yet")
        it.answer(exercise, exercise.solution())
        assert it.check().startswith("✓ Right"), task
    it.page.wait_for_url("**done=13%2C16%2C18*")
    it.page.reload()
    it.at(f"11: {task}")
    it.page.get_by_label("Task").click()
    for number in (2, 5, 7):
        expect(it.page.get_by_role("option", name=f"Task {number} ✓")).to_be_visible()
    it.page.keyboard.press("Escape")
    goal = it.page.get_by_label("Goal")
    it.page.get_by_label("Task").click()
    it.page.get_by_role("option", name="My own mask").click()
    goal.fill("causal & documnt(3, 5)")
    goal.press("Enter")
    expect(it.page.get_by_role("alert")).to_contain_text("documnt")
    goal.fill("prefix_lm(2)")
    goal.press("Enter")
    it.at("11: prefix_lm(2)")
    exercise = practice("prefix_lm(2)")
    it.answer(exercise, exercise.solution())
    assert it.check().startswith("✓ Right")
    it.page.get_by_role("link", name="Open it in Compose").click()
    it.page.wait_for_selector("h1:has-text('Compose')")
    expect(it.page.get_by_label("Mask", exact=True)).to_have_value("prefix_lm(2)")
    it.page.wait_for_function("/n=8/.test(location.search) && !/lesson|goal/.test(location.search)")


def test_the_picture_follows_the_numbers_and_a_click_sets_one(screen):
    it = Lesson(screen()).open(3)
    cells = it.root.locator("figure").nth(1).locator(".cell")
    shown = lambda q, k: "seen" in cells.nth(8 * q + k).get_attribute("class")  # noqa: E731
    field = it.root.get_by_label("LTS of key 1")
    assert shown(5, 1)
    field.fill("4")
    assert not shown(5, 1) and shown(3, 1) and not shown(4, 1)
    field.press("ArrowDown")
    assert not shown(3, 1) and field.input_value() == "3"
    cells.nth(8 * 6 + 2).click()
    assert it.root.get_by_label("LTS of key 2").input_value() == "6"
    cells.nth(8 * 6 + 2).click()
    assert it.root.get_by_label("LTS of key 2").input_value() == "8"
    field.fill("")
    assert "0 to 8" in it.check()
    field.fill("3")
    it.root.get_by_label("LTS of key 0").fill("3")
    assert "key 2: rows 3 … 7" in it.check()
    assert it.root.locator(".wrong").count() == 5  # the five rows of key 2, and nothing that is right
    it.root.get_by_role("button", name="Show the answer").click()
    expect(it.root.get_by_label("LTS of key 2")).to_have_value("3")
    expect(it.root.locator(".wrong")).to_have_count(0)


def test_the_predicted_tiles_can_be_walked(screen):
    it = Lesson(screen()).open(7)
    exercise = STEPS[6].exercise
    it.answer(exercise, exercise.solution())
    assert it.check().startswith("✓ Right")
    it.page.get_by_role("link", name="Walk the kernel over these tiles").click()
    it.page.wait_for_selector(".fm-walk[data-owner='3']")
    tiles = it.page.locator(".fm-walk .strip li").all_inner_texts()
    assert [text.count("skipped:") + 2 * text.count("partial:") + 3 * text.count("full:") for text in tiles] == [
        kind + 1 for kind in exercise.solution()
    ]


def test_what_was_typed_is_there_again_and_links_name_the_step(screen):
    it = Lesson(screen()).open(2)
    it.numbers([6])
    it.page.get_by_role("radio", name="4").click()
    it.at(4)
    assert "lesson=4" in it.page.url
    it.page.get_by_role("radio", name="2").click()
    it.at(2)
    assert it.root.locator("input.number").input_value() == "6"
    it.page.keyboard.press("Enter")
    it.page.get_by_role("link", name="Measure").first.click()
    it.page.wait_for_selector("h1:has-text('Measure')")
    it.page.get_by_role("link", name="Learn").first.click()
    it.at(2)
    assert it.root.locator("input.number").input_value() == "6"
    it.page.reload()
    it.at(2)
    expect(it.root.locator("input.number").first).to_have_value("6")
    assert it.check().startswith("Not yet")
    it.root.locator(".cell").nth(64 + 8 * 5 + 2).click()
    it.page.get_by_role("button", name="Next").click()
    it.at(3)
    it.page.get_by_role("button", name="Back").click()
    it.at(2)
    assert it.root.locator("input.number").input_value() == "5"


def test_checks_and_steps_faster_than_the_server_all_count(screen):
    """Next and Back right behind a check or a number, at any moment of the answers that are still on their way."""
    it, dice = Lesson(screen()).open(2), random.Random(9)
    step, checks = 2, {2: 0, 3: 0}
    for _ in range(16):
        it.page.wait_for_timeout(dice.choice([0, 0, 30, 150, 400]))
        if dice.random() < 0.6:
            it.root.get_by_role("button", name="Check").click()
            checks[step] += 1
        else:
            it.root.locator("input.number").first.fill(str(dice.randint(0, 8)))
        it.page.wait_for_timeout(dice.choice([0, 0, 20, 150, 420]))
        it.page.get_by_role("button", name="Next" if step == 2 else "Back").click()
        step = 5 - step
        it.page.wait_for_selector(f".fm-board[data-ready='{step}'][data-checks='{checks[step]}']", timeout=10_000)
    assert f"lesson={step}" in it.page.url or it.page.wait_for_url(f"**lesson={step}*") is None
