"""What the tests of the pages share."""

import io

import numpy as np
from streamlit.testing.v1 import AppTest


def html_of(app: AppTest) -> str:
    """All the HTML that the page shows, its style sheet left out."""
    return "\n".join(e.proto.body for e in app.get("html") if not e.proto.body.startswith("<style>"))


def link_of(app: AppTest) -> dict[str, str]:
    """The query parameters of the address."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def npy(array) -> bytes:
    """The array as a .npy file."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()
