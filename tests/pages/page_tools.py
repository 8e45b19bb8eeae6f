"""What the tests of the pages share."""

import io
import json

import numpy as np
from streamlit.testing.v1 import AppTest


def html_of(app: AppTest) -> str:
    """All the HTML that the page shows, its style sheet left out."""
    return "\n".join(e.proto.body for e in app.get("html") if not e.proto.body.startswith("<style>"))


def link_of(app: AppTest) -> dict[str, str]:
    """The query parameters of the address."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def told(app: AppTest, component: str) -> dict:
    """What a component of ours was given, as JSON."""
    [element] = [e for e in app.get("bidi_component") if e.proto.component_name == f"flashmask_{component}"]
    return json.loads(element.proto.json)


def press(app: AppTest, name: str) -> None:
    """Press "undo" or "redo", as the browser tells it."""
    number = app.session_state["presses_heard"].get("undo", 0) + 1 if "presses_heard" in app.session_state else 1
    app.session_state["undo"] = {"presses": [[number, name, True]]}
    app.run()


def npy(array) -> bytes:
    """The array as a .npy file."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()
