"""The style sheet of the page around the canvas: Streamlit's elements as we want them, and the classes of our HTML."""

from __future__ import annotations

from functools import cache

from .theme import variables

_PAGE_CSS = """
[data-testid="stMainBlockContainer"] { padding: 1.4rem 1.5rem 3rem; max-width: 1440px; }
[data-testid="stHeader"] { background: transparent; height: 2.2rem; min-height: 2.2rem; pointer-events: none; }
[data-testid="stHeader"] * { pointer-events: auto; }
[data-testid="stSidebar"] { width: 200px !important; min-width: 200px !important; }
[data-testid="stSidebarContent"] { padding: 0 .7rem; }
[data-testid="stSidebarHeader"] { height: 2.4rem; padding-bottom: 0; margin-bottom: 0; }
[data-testid="stMainBlockContainer"] h1 { font-size: 1.3rem; padding: 0; }
[data-testid="stMainBlockContainer"] h3 { font-size: 1.05rem; padding: .6rem 0 0; }
[data-testid="stTextInput"] input { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
[data-testid="stSidebarUserContent"] { padding: 0 0 2rem; }
[data-testid="stButtonGroup"] button { min-height: 1.75rem; padding: 1px 10px; }
[data-testid="stButtonGroup"] button p { font-size: 12.5px; }
[data-testid="stBaseButton-primary"]:enabled, [data-testid="stBaseButton-primary"]:enabled p {
  color: var(--fm-ground); }
[data-testid="stMultiSelect"] [data-tag] :is(span, button) { color: var(--fm-ground); }
[data-testid="stElementContainer"]:has(> [data-testid="stSpinner"]) { position: fixed; top: 3px; left: 50%;
  width: auto; z-index: 1000; background: var(--fm-card); border-radius: 8px; padding: 2px 10px; }
.st-key-canvas { min-height: 640px; }
.st-key-stack { min-height: 120px; }
.st-key-cards { gap: .7rem; }
[data-testid="stElementContainer"]:has([data-testid="stHeading"]) + * > [data-testid="stSkeleton"] { height: 23px; }
.st-key-patterns { min-height: 1400px; }
.st-key-versus { min-height: 420px; }
.st-key-w_mask, .st-key-w_n, .st-key-w_tile, .st-key-w_rule { min-height: 64px; }
[data-testid="stLayoutWrapper"]:has(> .st-key-above):not(:has(.fm-error, .st-key-upload_bar)) { position: absolute; }
[data-testid="stLayoutWrapper"]:has(> .st-key-working) { position: fixed; top: 3px; left: 50%; width: 320px;
  transform: translateX(-50%); z-index: 1000; }
[data-testid="stLayoutWrapper"]:has(> .st-key-over):not(:has(.st-key-upload_bar)) { height: 0; margin-bottom: -1rem;
  position: relative; z-index: 20; }
.st-key-over:not(:has(.st-key-upload_bar)) .fm-error { max-width: max(100% - 350px, min(100%, 560px));
  min-height: 82px; border: solid var(--fm-line); border-width: 1px 1px 1px 3px; border-left-color: var(--fm-lower);
  box-shadow: 0 4px 18px rgba(0, 0, 0, .22); }
.st-key-working [data-testid="stProgress"] { background: var(--fm-card); border-radius: 8px; padding: 4px 12px 8px; }
.st-key-mask_field { position: relative; }
.st-key-language { position: absolute; top: -2px; right: 0; z-index: 3; width: auto; }
.st-key-language button { min-height: 24px; padding: 0 2px; }
.st-key-language button p { font-size: 13px; color: var(--fm-dim); }
.st-key-language button:hover p { color: var(--fm-full); }
.st-key-mask_bar [data-testid="InputInstructions"] { display: none; }
.st-key-mask_bar [data-testid="stNumberInputStepUp"], .st-key-mask_bar [data-testid="stNumberInputStepDown"] {
  display: none; }
.fm-brand { font-weight: 700; font-size: 15px; margin: 0 0 6px 8px; line-height: 1.3; }
:is([data-testid="stTextInputRootElement"], [data-testid="stNumberInputContainer"],
  [data-testid="stTextAreaRootElement"], [data-testid="stSelectbox"] > div:last-of-type > div,
  [data-testid="stMultiSelect"] > div:last-of-type > div) { border-color: var(--fm-edge);
  &:focus-within { border-color: var(--fm-full); box-shadow: 0 0 0 1px var(--fm-full); } }
:is([data-testid="stPageLink"] a, [data-testid="stMain"]):focus-visible { outline: 2px solid var(--fm-select);
  outline-offset: -2px; }
[data-testid="stSidebarCollapseButton"] span { color: var(--fm-dim); }
[data-testid="stCaptionContainer"] { color: var(--fm-dim); opacity: 1; }
[data-testid="stCaptionContainer"] :is(p, li, strong) { color: inherit; opacity: 1; }
[data-testid="stCode"] .token.comment { color: var(--fm-dim); }
[data-testid="stCode"] .token:is(.parameter, .variable, .number, .boolean, .builtin) { color: var(--fm-upper); }
.st-key-w_mask input { text-overflow: ellipsis; }
[data-testid="stLayoutWrapper"]:has(> :is(.st-key-mask_bar, .st-key-chips)), .st-key-desk {
  container-type: inline-size; }
.st-key-desk > [data-testid="stLayoutWrapper"] > [data-testid="stHorizontalBlock"] { flex-direction: row-reverse; }
@container (min-width: 1080px) {
  .st-key-mask_field > .st-key-w_mask { position: relative; z-index: 2; }
  .st-key-mask_field > .st-key-w_mask:focus-within [data-testid="stTextInputRootElement"] { width: max-content;
    min-width: 100%; max-width: min(860px, 100cqw); }
  .st-key-mask_field > .st-key-w_mask:focus-within input { field-sizing: content; }
}
@container (max-width: 1079px) {
  .st-key-mask_bar > :has(> .st-key-mask_field), .st-key-chips > .st-key-w_preset { flex: 1 1 100%; }
  .st-key-mask_bar > div { flex: 1 1 13%; min-width: 0; }
  .st-key-mask_bar [data-testid="stButton"], .st-key-mask_bar [data-testid="stButton"] button { width: 100%; }
  .st-key-chips > div:not(.st-key-w_preset, .st-key-undo_redo) { flex: 0 1 auto; }
}
@container (max-width: 760px) {
  .st-key-mask_bar > div { flex-basis: 30%; }
}
@container (max-width: 960px) { /* one column: layers, picture, what it costs, numbers */
  .st-key-desk > div > [data-testid="stHorizontalBlock"] { flex-flow: row wrap; }
  .st-key-desk > div > div > [data-testid="stColumn"], .st-key-desk > div > div > [data-testid="stColumn"] > div,
  .st-key-desk div:has(> div > .st-key-canvas), .st-key-desk div:has(> .st-key-canvas) { display: contents; }
  .st-key-desk > div > div > [data-testid="stColumn"]:first-child > div > * { order: 1; flex: 1 1 100%; }
  .st-key-desk div:has(> .st-key-canvas) > * { order: 2; flex: 1 1 100%; }
  .st-key-desk > div > div > [data-testid="stColumn"] > div > div:is(:has(> .st-key-repair), :has(.fm-error),
    .st-key-undo_repair) { order: 3; }
  .st-key-desk > div > div > [data-testid="stColumn"] > div > div:has(> .st-key-cards) { order: 4; }
  .st-key-desk div:has(> .st-key-canvas) > .st-key-panel_tabs { order: 5; }
  .st-key-stack { --fm-layers: 104px; min-height: 138px; } /* for any number of layers: the picture below stays put */
  .st-key-cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); }
}
:is(.st-key-repair, .st-key-versus_told) > div > [data-testid="stHorizontalBlock"] { flex-wrap: wrap; }
.st-key-repair > div > div > [data-testid="stColumn"] { flex: 1 1 190px; min-width: 190px; }
.st-key-versus_told > div > div > [data-testid="stColumn"] { min-width: min(100%, 360px); }
.st-key-repair > div > div > [data-testid="stColumn"] > div { gap: .4rem; }
.st-key-repair > div > div > [data-testid="stColumn"]:first-child { order: 1; }
@media (prefers-reduced-motion: reduce) {
  *, *::before, *::after { animation-duration: 1ms !important; animation-iteration-count: 1 !important;
    transition-duration: 1ms !important; scroll-behavior: auto !important; }
}
@media (min-width: 641px) {
  [data-testid="stAppViewContainer"]:not(:has([data-testid="stSidebar"])) > * { margin-left: 200px; }
  .st-key-w_preset { min-height: 66px; }
  .st-key-chips [role="radiogroup"] { flex-wrap: wrap; row-gap: 6px; overflow: visible; mask-image: none; }
  .st-key-chips [role="radiogroup"] button { flex-grow: 0; }
}
@media (max-width: 640px) {
  [data-testid="stHeader"] { position: absolute; }
  [data-testid="stMainBlockContainer"] { padding: 2.4rem .8rem 2rem; }
  .st-key-canvas { min-height: 100vh; }
  [data-testid="stElementContainer"]:has([data-testid="stHeading"]) + * > [data-testid="stSkeleton"] { height: 55px; }
  .st-key-mask_bar { gap: .45rem; }
  .st-key-mask_bar > div { flex: 1 1 24%; min-width: 0; }
  .st-key-mask_bar > .st-key-w_tile, .st-key-mask_bar > .st-key-w_rule { flex-basis: 31%; }
  .st-key-mask_bar > :has(> .st-key-mask_field), .st-key-chips > .st-key-w_preset,
  .st-key-other_bar > .st-key-w_other { flex-basis: 100%; }
  .st-key-mask_bar [data-testid="stButton"], .st-key-mask_bar [data-testid="stButton"] button { width: 100%; }
  .st-key-chips { gap: .45rem; }
  .st-key-chips > div:not(.st-key-w_preset, .st-key-undo_redo) { flex: 1 1 0; min-width: 0; }
  .st-key-chips > .st-key-undo_redo { flex: 0 0 76px; }
  .st-key-chips > div.st-key-examples_menu { flex-grow: 1.3; }
  .st-key-chips > div:not(.st-key-w_preset) button { padding-inline: 2px; width: 100%; min-width: 0; }
  .st-key-chips > div:not(.st-key-w_preset) button p { font-size: 13px; }
  .st-key-runs_bar > div:has([data-testid="stSelectbox"]), .st-key-engine_bar > div { flex: 1 1 100%; }
  .st-key-runs_bar > div { flex: 1 1 40%; }
  .fm-sub { font-size: 13px; line-height: 1.4; }
}
"""

CARD_CSS = """
.fm-skip { position: fixed; left: 8px; top: -60px; z-index: 1000001; padding: 8px 14px; border-radius: 8px;
  background: var(--fm-full); color: var(--fm-ground); font: 600 14px var(--st-font, system-ui, sans-serif); }
.fm-skip:focus { top: 8px; }
.fm-card { border: 1px solid var(--fm-line); border-radius: 10px; padding: 12px 14px; background: var(--fm-card);
  color: var(--fm-text); font-size: 14px; line-height: 1.45; }
.fm-card small { color: var(--fm-dim); font-size: 12px; }
.fm-card .big { font-size: 26px; font-weight: 700; line-height: 1.15; font-variant-numeric: tabular-nums; }
.fm-card .row { display: flex; justify-content: space-between; gap: 10px; margin-top: 4px; }
.fm-card .row span { color: var(--fm-dim); }
.fm-card .row b { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.fm-card .foot { margin-top: 8px; padding-top: 7px; border-top: 1px solid var(--fm-line);
  color: var(--fm-dim); font-size: 12px; }
.fm-stack { display: flex; height: 14px; border-radius: 4px; overflow: hidden; margin: 8px 0 6px;
  background: var(--fm-empty); }
.fm-key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; vertical-align: -1px;
  box-shadow: inset 0 0 0 1px var(--fm-line); }
.fm-empty { background: var(--fm-empty); }
.fm-full { background: var(--fm-full); }
.fm-partial { background:
  repeating-linear-gradient(45deg, transparent 0 3px, rgba(0, 0, 0, .34) 3px 4.5px) var(--fm-partial); }
.fm-sub a { color: inherit; }
.fm-sub { color: var(--fm-dim); margin: 0; font-size: 14px; }
.fm-lesson { color: var(--fm-text); font-size: 15px; line-height: 1.55; }
.fm-lesson h2 { font-size: 17px; font-weight: 600; margin: 0 0 .5em; padding: 0; }
.fm-lesson h2:focus { outline: none; }
.fm-lesson p { margin: 0 0 .7em; }
.fm-lesson ul { margin: 0 0 .7em; padding-left: 1.2em; }
.fm-lesson .task { border-left: 3px solid var(--fm-full); padding: 2px 0 2px 10px; font-weight: 600; }
.fm-lesson.after { border-left: 3px solid var(--fm-line); padding-left: 10px; }
.fm-error { border-left: 3px solid var(--fm-lower); background: var(--fm-card); border-radius: 6px; padding: 8px 12px;
  color: var(--fm-text); font-size: 13.5px; }
.fm-finding { display: flex; gap: 10px; align-items: flex-start; font-size: 14px; line-height: 1.45;
  color: var(--fm-text); }
.fm-finding i { flex: none; width: 18px; height: 18px; border-radius: 50%; color: var(--fm-ground); font-weight: 700;
  font-style: normal; font-size: 12px; line-height: 18px; text-align: center; margin-top: 1px; }
.fm-verdict { color: var(--fm-text); font-size: 15px; }
.fm-versus-table { border-collapse: collapse; width: 100%; color: var(--fm-text); font-size: 14px;
  font-variant-numeric: tabular-nums; }
.fm-versus-table :is(td, th) { border: 0; border-top: 1px solid var(--fm-line); padding: 4px 0 4px 12px;
  text-align: right; font-weight: 600; }
.fm-versus-table th { color: var(--fm-dim); font-weight: 400; }
.fm-versus-table th[scope="row"] { text-align: left; padding-left: 0; }
.fm-wide { overflow-x: auto; container-type: inline-size; }
.fm-wide :is(td, th) { white-space: nowrap; }
.fm-wide th[scope="row"], .fm-wide thead td { position: sticky; left: 0; background: var(--fm-ground); }
.fm-wide thead th[colspan] { text-align: center; }
.fm-wide .fm-versus-table .fm-apart { border-left: 1px solid var(--fm-line); }
.fm-wide .fm-versus-table .fm-nothing { text-align: center; vertical-align: middle; }
.fm-none { color: var(--fm-dim); font-weight: 400; font-style: italic; }
.fm-versus-table thead :is(td, th) { border-top: 0; font-weight: 600; }
@container (max-width: 860px) { /* of a mask three lines: its name and rho, then the times on a GPU each */
  .fm-stacks { display: grid; grid-template-columns: minmax(0, 1fr) repeat(3, auto); max-width: 640px; }
  .fm-stacks :is(thead, tbody, tr) { display: contents; }
  .fm-stacks thead :is(tr:first-child > *, th:nth-child(-n+3), th:nth-child(n+7)) { display: none; }
  .fm-stacks thead :is(td, th) { order: -2; }
  .fm-stacks .fm-nothing { order: -1; }
  .fm-stacks [data-of]::before { content: attr(data-of); color: var(--fm-dim); font-weight: 400; margin-right: .4em;
    text-align: left; }
  .fm-wide .fm-stacks thead td { padding-left: 0; text-align: left; }
  .fm-stacks tbody th { grid-column: span 2; color: var(--fm-text); font-weight: 600; }
  .fm-stacks tbody td:nth-child(n+4) { border-top: 0; padding-top: 0; }
  .fm-wide .fm-stacks .fm-apart { border-left: 0; }
  .fm-stacks td.fm-apart { grid-column: span 2; display: flex; justify-content: space-between; padding-left: 0; }
  .fm-stacks td.fm-apart[colspan] { grid-column: 1 / -1; }
}
@container (max-width: 480px) {
  .fm-wide .fm-versus-table { font-size: 12px; }
  .fm-wide :is(td, th) { padding-left: 6px; }
  .fm-wide th[scope="row"], .fm-stacks td.fm-apart { white-space: normal; }
}
[data-testid="stPopoverBody"]:has(:is(.st-key-stack, .st-key-language_list)) { width: min(760px, 94vw); }
.fm-thumb { margin: 0; }
.fm-thumb img { width: 100%; display: block; border-radius: 6px; image-rendering: pixelated; }
.st-key-examples .fm-thumb img { min-height: 10px; border: 1px solid var(--fm-line); }
.st-key-examples .fm-sub { font-size: 13px; line-height: 1.4; margin-top: -10px; }
.st-key-examples [data-testid="stColumn"]:first-child { min-width: 56px; max-width: 64px; flex: none; }
.st-key-examples [data-testid="stHorizontalBlock"] { flex-wrap: nowrap; }
.st-key-examples [data-testid="stColumn"]:last-child { min-width: 0; }
.st-key-repair .fm-thumb { max-width: 280px; }
.fm-thumb figcaption { color: var(--fm-dim); font-size: 12px; margin-top: 4px; }
.fm-error small { color: var(--fm-dim); }
.fm-error pre { margin: 0 0 4px; padding: 0; background: none; font: 13px/1.35 ui-monospace, Menlo, Consolas, monospace;
  white-space: pre; overflow-x: auto; color: var(--fm-text); }
.fm-error pre i { color: var(--fm-lower); font-style: normal; font-weight: 700; }
"""


@cache
def page_css() -> str:
    """All of it, with the palette's custom properties. Inside `body` it outweighs Streamlit's own that comes later."""
    return f"{variables(':root')}{CARD_CSS}body{{{_PAGE_CSS}}}"
