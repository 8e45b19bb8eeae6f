"""The explorer's picture of a mask as one HTML file that needs no server, no network and nothing beside it."""

from __future__ import annotations

from base64 import b64encode
from html import escape

from . import canvas, cards
from .build import Built, TileCounts
from .style import CARD_CSS
from .theme import variables

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
{variables}
{card_css}
body {{ margin: 0 auto; padding: 24px; max-width: 1440px; background: var(--fm-ground); color: var(--fm-text);
  font: 14px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 20px; margin: 0; }}
code {{ font: 14px/1.6 ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }}
.page {{ display: grid; grid-template-columns: minmax(0, 1fr) 240px; gap: 24px; align-items: start; margin-top: 12px; }}
.place {{ container-type: inline-size; }}
.cards {{ display: grid; gap: 12px; }}
@media (max-width: 900px) {{ body {{ padding: 14px; }} .page {{ grid-template-columns: minmax(0, 1fr); }} }}
{canvas_css}
</style>
</head>
<body>
<h1>An attention mask</h1>
<code>{text}</code>
<p class="fm-sub">{about}</p>
<div class="page"><div class="place">{canvas_html}</div><div class="cards">{cards}</div></div>
<script type="module">
history.replaceState = () => {{}};
{script}
const text = atob("{data}");
const data = Uint8Array.from(text, (c) => c.charCodeAt(0));
start({{ data, parentElement: document, setStateValue: () => {{}} }});
</script>
</body>
</html>
"""
_EXPORT = "export default function ("


def explorer_page(
    built: Built, counts: TileCounts, other: TileCounts, *, block, rule: str, heads: int, spot, view
) -> str:
    """The file's text: the canvas itself with its data, at the selection and the view of the screen."""
    html, css, script = canvas.parts()
    assert script.count(_EXPORT) == 1
    data = canvas.payload(
        built.mask, identity=built.identity, block=block, rule=rule, selection=spot, view=view, drawn=True
    )
    n = f"{built.seqlen_q:,} queries × {built.seqlen_k:,} keys"
    told = cards.tiles_card(counts, other, rule, small=cards.this_plane(built))
    told += cards.memory_card(built) + cards.work_card(built, heads)
    return _PAGE.format(
        title=escape(built.text[:80]),
        text=escape(built.text[:4000]),
        about=escape(f"{n}, {built.pairs:,} visible pairs. Made by the FlashMask explorer."),
        variables=variables(":root"),
        card_css=CARD_CSS,
        canvas_css=css.replace(":host", ".place"),
        canvas_html=html,
        cards=told,
        script=script.replace(_EXPORT, "function start(").replace("</script", "<\\/script"),
        data=b64encode(data).decode(),
    )
