"""The HTML file that starts the app: our style and address are in its head, and nothing else is touched."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pages.ui.index_html import OwnIndex

PAGE = b"<!DOCTYPE html><html><head><title>Streamlit</title></head><body></body></html>"


def answer(path: str, *, kind: bytes = b"text/html; charset=utf-8", status: int = 200, method: str = "GET"):
    """(headers, body, headers that the app behind was asked with) of a request through the middleware."""
    asked, sent = {}, []

    async def app(scope, receive, send):
        asked.update(scope["headers"])
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(PAGE)), (b"etag", b'"1"')]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": PAGE[:20], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[20:]})

    async def send(message):
        sent.append(message)

    headers = [(b"accept-encoding", b"gzip"), (b"if-none-match", b'"1"'), (b"host", b"here")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    with ThreadPoolExecutor(1) as own_thread:  # this one may hold the event loop of a browser test
        own_thread.submit(asyncio.run, OwnIndex(app)(scope, None, send)).result()
    body = b"".join(message.get("body", b"") for message in sent)
    return dict(sent[0]["headers"]), body, asked


@pytest.mark.parametrize("path", ["/", "/measure", "/under/a/prefix/walk"])
def test_a_page_gets_our_head(path):
    headers, body, asked = answer(path)
    assert b"<title>FlashMask explorer</title>" in body and b"BACKEND_BASE_URL" in body and b"--fm-full" in body
    assert body.count(b"</head>") == 1 and body.index(b"--fm-full") < body.index(b"</head>")
    assert headers[b"content-length"] == b"%d" % len(body) and b"etag" not in headers
    assert asked == {b"host": b"here"}


@pytest.mark.parametrize(
    "request_",
    [
        {"path": "/static/js/index.abc.js"},
        {"path": "/_stcore/health"},
        {"path": "/", "method": "POST"},
    ],
    ids=["a file", "an endpoint", "no GET"],
)
def test_all_else_passes_through(request_):
    headers, body, asked = answer(**request_)
    assert body == PAGE and b"etag" in headers and b"if-none-match" in asked


@pytest.mark.parametrize("answered", [{"kind": b"application/json"}, {"status": 404}])
def test_an_answer_that_is_no_page_stays_as_it_is(answered):
    headers, body, _ = answer("/somewhere", **answered)
    assert body == PAGE and headers[b"etag"] == b'"1"'
