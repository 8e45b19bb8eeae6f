"""The HTML file that starts the app in a browser: Streamlit's own, with our style and our address in its head.

A style that came with the first run of the script would come after the first elements, and they would jump. And on any
page but the first, the front end would look for the server below the page's own path first, and log two errors.
"""

from __future__ import annotations

import re
from pathlib import Path

import streamlit
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import style

PAGE_TITLE = "FlashMask explorer"

_PAGE_NAMES = sorted(path.stem for path in Path(__file__).parents[1].glob("*.py") if path.stem != "__init__")
# The app's address is the page's without the page's name, under whatever prefix a proxy has put it.
_ADDRESS = (
    "<script>window.__streamlit = {BACKEND_BASE_URL: location.origin + "
    f"location.pathname.replace(/\\/({'|'.join(_PAGE_NAMES)})\\/?$/, '/')}}</script>"
)
# Pieces of the front end that every screen needs, otherwise asked for one after another as elements arrive.
_EARLY = ("BidiComponent", "ButtonGroup", "Html", "NumberInput", "Selectbox", "StreamlitMarkdown", "TextInput")


def _head() -> str:
    scripts = Path(streamlit.__file__).parent / "static" / "static" / "js"
    early = "".join(
        f'<link rel="modulepreload" crossorigin href="./static/js/{path.name}">'
        for name in _EARLY
        for path in scripts.glob(f"{name}.*.js")
    )
    return f"{_ADDRESS}<style>{style.page_css()}</style>{early}"


class OwnIndex:
    """ASGI middleware that writes our head into the HTML file; everything else passes through as it is."""

    def __init__(self, app: ASGIApp):
        self.app, self.head = app, _head().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _asks_for_a_page(scope):
            await self.app(scope, receive, send)
            return
        # The whole file, neither packed nor "as you have it".
        skipped = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0].lower() not in skipped]}
        start: Message = {}
        body = bytearray()

        async def changed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body"):
                headers = dict(start["headers"])
                if headers.get(b"content-type", b"").startswith(b"text/html") and start["status"] == 200:
                    body[:] = self.with_head(bytes(body))
                    for name in (b"etag", b"last-modified"):
                        headers.pop(name, None)
                    headers[b"content-length"] = str(len(body)).encode()
                await send({**start, "headers": list(headers.items())})
                await send({"type": "http.response.body", "body": bytes(body)})

        await self.app(scope, receive, changed)

    def with_head(self, html: bytes) -> bytes:
        """The file with our title and our head."""
        html = re.sub(rb"<title>.*?</title>", f"<title>{PAGE_TITLE}</title>".encode(), html, count=1)
        return html.replace(b"</title>", b"</title>" + self.head, 1)


def _asks_for_a_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    path = scope["path"]
    return "." not in path and "/_stcore" not in path


MIDDLEWARE = [Middleware(OwnIndex)]
