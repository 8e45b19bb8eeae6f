"""What is too large for a link: long mask texts and uploaded masks, kept by the server under a name from their content.

A link then carries the name. Where the server no longer has it (it was started anew, or the shelf was full), the link
opens the nearest screen and asks for the small file that holds the whole of it.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from threading import Lock

import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.compare import runs_of
from flashmask_core.masks.mask_json import mask_of_record, record_text

from .link import Screen, name_of
from .versus.place import MAX_TEXT, Other

MAX_ITEMS = 64
MAX_BYTES = 2**28
MAX_PASS_COLUMNS = 2**22  # of all the passes in a screen's small file
FORMAT, VERSION = "flashmask-screen", 1


@dataclass(frozen=True)
class Item:
    """A text, or a mask with the title it is shown under: MaskedRuns if it does not fit FlashMask.

    `given` has a mask's vectors as they were uploaded, of which `content` is the canonical packing.
    """

    content: "str | fm.ColumnMask | fm.MaskedRuns"
    title: str = ""
    given: "fm.ColumnMask | None" = None

    @property
    def nbytes(self) -> int:
        if isinstance(self.content, str):
            return len(self.content)
        if isinstance(self.content, fm.MaskedRuns):
            return 8 * (len(self.content.starts) + self.content.seqlen_k)
        return 32 * self.content.lts.numel()


class Shelf:
    """Items by name, the one used longest ago leaves first."""

    def __init__(self):
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._lock = Lock()

    def put(self, name: str, item: Item) -> None:
        """Keep an item. ValueError if it is larger than the whole shelf."""
        if item.nbytes > MAX_BYTES:
            raise ValueError(
                f"A mask of {item.nbytes / 2**20:,.0f} MiB as vectors is more than the {MAX_BYTES >> 20} MiB that are "
                "kept for a screen; upload fewer batch entries or heads."
            )
        with self._lock:
            self._items[name] = item
            self._items.move_to_end(name)
            while len(self._items) > MAX_ITEMS or sum(i.nbytes for i in self._items.values()) > MAX_BYTES:
                self._items.popitem(last=False)

    def get(self, name: str) -> Item | None:
        with self._lock:
            if name in self._items:
                self._items.move_to_end(name)
            return self._items.get(name)


@st.cache_resource(show_spinner=False)
def shelf() -> Shelf:
    """The shelf of this server."""
    return Shelf()


def keep_long_text(screen: Screen) -> None:
    """Put the text of a screen on the shelf if no link can carry it."""
    if screen.is_long:
        shelf().put(name_of(screen.mask.encode()), Item(screen.mask))
    if len(screen.other.text) > MAX_TEXT:
        shelf().put(screen.other.name, Item(screen.other.text))


def opened(screen: Screen) -> tuple[Screen, list[str]]:
    """The screen of a link with the files that it names, or without them and sentences that say what is missing."""
    screen, problems = _with_other(screen)
    if not screen.file:
        return screen, problems
    item = shelf().get(screen.file)
    if item is None:
        problem = f"file={screen.file!r} is not on this server (any more): open the screen's small file with Upload"
        return replace(screen, file="", plane=(0, 0)), [*problems, problem]
    if isinstance(item.content, str):
        return replace(screen, mask=item.content, file=""), problems
    return fitted_to(screen, item.content), problems


def _with_other(screen: Screen) -> tuple[Screen, list[str]]:
    other = screen.other
    if not other.file:
        return screen, []
    item = shelf().get(other.file)
    if item is None:
        problem = f"withfile={other.file!r} is not on this server (any more): upload it and swap the two masks"
        return replace(screen, other=Other()), [problem]
    if isinstance(item.content, str):
        return replace(screen, other=Other(item.content)), []
    batch, heads = planes_of(item.content)
    fits = other.plane[0] < batch and other.plane[1] < heads
    return screen if fits else replace(screen, other=replace(other, plane=(0, 0))), []


def planes_of(mask: "fm.ColumnMask | fm.MaskedRuns") -> tuple[int, int]:
    """Its batch entries and mask heads."""
    return (mask.batch, mask.heads) if isinstance(mask, fm.ColumnMask) else (1, 1)


def fitted_to(screen: Screen, mask: "fm.ColumnMask | fm.MaskedRuns") -> Screen:
    """The screen with the lengths of an uploaded mask, and a plane that it has."""
    batch, heads = planes_of(mask)
    plane = screen.plane if screen.plane[0] < batch and screen.plane[1] < heads else (0, 0)
    seqlen_k = None if mask.seqlen_k == mask.seqlen_q else mask.seqlen_k
    fitted = replace(screen, seqlen_q=mask.seqlen_q, seqlen_k=seqlen_k, plane=plane)
    if fitted.at and not fitted.holds(fitted.at):
        fitted = replace(fitted, at=None)
    return replace(fitted, view=fitted.nearest_view(fitted.view)) if fitted.view else fitted


def is_screen(data: bytes) -> bool:
    """Whether a file is the small file of a screen."""
    return data.lstrip()[:1] == b"{" and FORMAT.encode() in data[:200]


def put_upload(data: bytes, title: str, **options) -> Screen | str:
    """What an uploaded file holds: a Screen for a screen's small file, or the name of the mask on the shelf.

    Options go to `flashmask_core.load_mask`. Raises its ValueError or TypeError for a file that is no mask.
    """
    if is_screen(data):
        return _read_screen(data)
    mask = read_mask(data, **options)
    name = name_of(data + repr(sorted(options.items())).encode())
    given = mask if isinstance(mask, fm.ColumnMask) else None
    shelf().put(name, Item(mask.canonical() if given else mask, plain(title), given))
    return name


def read_mask(data: bytes, **options) -> "fm.ColumnMask | fm.MaskedRuns":
    """The mask that a file holds, as it was given; MaskedRuns for a single plane that does not fit.

    Raises as `load_mask`.
    """
    try:
        mask = fm.load_mask(data, **options)
    except fm.NotRepresentableError as error:
        if error.runs is None:
            raise
        mask = error.runs
    if not 0 < mask.seqlen_q or not 0 < mask.seqlen_k:
        raise ValueError(f"This mask is empty: {mask.seqlen_q} queries by {mask.seqlen_k} keys.")
    return mask


def plain(title: str) -> str:
    """A file's name without what Markdown or HTML would read."""
    return "".join(c if c.isalnum() or c in " .-_" else "·" for c in title[:80]) or "a mask"


def screen_file(screen: Screen) -> bytes:
    """The small file of a screen: its link with the mask in full."""
    item = shelf().get(screen.file) if screen.file else None
    record = _record(item.content) if item else None
    query = {**screen.to_query(), "mask": screen.mask}
    query.pop("file", None)
    told = {"format": FORMAT, "version": VERSION, "screen": query, "title": item.title if item else "", "mask": record}
    return (json.dumps(told) + "\n").encode()


def _record(mask: "fm.ColumnMask | fm.MaskedRuns") -> dict | list[dict]:
    """A mask as JSON; one that does not fit as the records of its passes."""
    if isinstance(mask, fm.MaskedRuns):
        fit = fm.fit(mask)
        if fit.pass_count * mask.seqlen_k > MAX_PASS_COLUMNS:
            raise ValueError(f"{fit.pass_count:,} passes over {mask.seqlen_k:,} columns are too many for a file.")
        return [json.loads(record_text(one)) for one in fit.passes]
    return json.loads(record_text(mask))


def _mask_of(record: dict | list[dict]) -> "fm.ColumnMask | fm.MaskedRuns":
    if isinstance(record, dict):
        return mask_of_record(record)
    names = ("batch", "heads", "seqlen_q", "seqlen_k")
    shapes = {tuple(one.get(name) for name in names) if isinstance(one, dict) else None for one in record}
    shape = shapes.pop()
    if shapes or shape is None or not all(type(n) is int for n in shape) or len(record) * shape[3] > MAX_PASS_COLUMNS:
        raise ValueError("mask: wanted the passes of one mask, all of the same lengths, and not too many.")
    runs = [runs_of(mask_of_record(one)) for one in record]
    return runs[0].hidden_intersection(*runs[1:]) if len(runs) > 1 else runs[0]


def _read_screen(data: bytes) -> Screen:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This file is no JSON: {str(error)[:100]}") from None
    query = told.get("screen")
    if told.get("format") != FORMAT or told.get("version") != VERSION or type(query) is not dict:
        raise ValueError(f'format, version: wanted "{FORMAT}" and {VERSION} with a screen.')
    screen, problems = Screen.from_query({str(name): str(value) for name, value in query.items()})
    if problems:
        raise ValueError("; ".join(problems))
    if type(told.get("mask")) in (dict, list) and told["mask"]:
        mask = _mask_of(told["mask"])
        name = name_of(json.dumps(told["mask"], sort_keys=True).encode())
        shelf().put(name, Item(mask, plain(str(told.get("title")))))
        screen = fitted_to(replace(screen, file=name), mask)
    return screen
