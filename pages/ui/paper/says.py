"""The page's words around its numbers, as HTML or Markdown."""

from __future__ import annotations

from flashmask_core.bench.reproduce import TOKENS, Block

from .facts import DocumentFinding, ExactFinding, Line

ESTIMATE = (
    "Compose tells a time for masks that nobody measured: rates for partial tiles, full tiles and blocks of rows, "
    "fitted to measured runs. Each family of masks, and each length where there are several, is left out in turn and "
    "told from the others; the largest error on it stands here, and the worst of a column is the error bar."
)
AGAIN = (
    "Every row goes to the file as it is measured and the same command goes on where it stopped; after each block the "
    "recording that this page reads is written. Where the authors’ samples are silent, one recipe: "
    "<code>share_question</code> splits a document into a question of length // 4 and three answers of equal length, "
    "the last with the rest; <code>random_eviction</code> begins at row N / 2 with seed 0."
)
COMMAND = """\
python -m flashmask_core bench --reproduce --out paper.jsonl                 # all of it, block by block
python -m flashmask_core bench --reproduce 8192x128 --out paper.jsonl        # one block"""
_COUNTED = "Counted now, over the five samples, in tiles of 128 × 128."


def about(block: Block, lines: list[Line]) -> str:
    """What the table's numbers are, and in what the measured ones differ from the paper's."""
    text = (
        f"B {block.batch}, H {block.heads}, N {block.seqlen:,}, D {block.head_dim}, bfloat16: {TOKENS:,} tokens. "
        "TFLOP/s count 4·B·H·N²·D·(1 − ρ), 2.5 times that backward, with ρ of 128 × 128 tiles. “ours” is the mean of "
        "the five samples by the paper’s rule; timed is the one with the median number of documents, whose ρ the TFLOP/s measured "
        "here count: point at the number under “ours”, or at the mask in the plot of times, to read it."
    )
    measured = [line.here["flashmask"] for line in lines if line.here["flashmask"]]
    batches = sorted({times.batch for times in measured} - {block.batch})
    if batches:
        text += f" Measured at B {', '.join(map(str, batches))}; times are scaled to B {block.batch}."
    split = next(line for line in lines if line.mask == "share_question")
    text += (
        f" How the paper splits the documents of share question was not published: its row stands for ρ = "
        f"{split.own_rho:.4f}, our recipe gives {split.rho:.4f}."
    )
    kernels = sorted({times.backend for times in measured} - {"hopper"})
    if kernels:
        text += f" FlashMask here: the portable kernels ({', '.join(kernels)}), not those for Hopper."
    return text


def document_card(found: DocumentFinding, elsewhere: list[DocumentFinding]) -> str:
    """The paper's document rows are those of another mask, at a length where this can be told."""
    near = " and ".join(
        f"{one.seqlen // 1024}K ({one.shifted:.4f} against {one.document:.4f}, its rows {_range(one)})"
        for one in elsewhere if not one.tells
    )  # fmt: skip
    return _card(
        f"At {found.seqlen // 1024}K the paper’s document rows are those of another mask.", found.shifted, found.document,
        f"The samples give ρ = {found.document:.4f} for the document mask. The table prints {found.printed:.2f}, and its "
        f"times and TFLOP/s stand for {_range(found)}. A mask whose upper end moves on by the <i>next</i> document’s length "
        f"gives {found.shifted:.4f}." + f" At {near} the two lie too near each other to tell." * bool(near),
    )  # fmt: skip


def _range(found: DocumentFinding) -> str:
    low, high = found.paper
    return f"{low:.4f} to {high:.4f}"


def exact_card(found: ExactFinding) -> str:
    """The exact rule sees more than minima and maxima."""
    return _card(
        "The exact rule skips tiles that minimum and maximum cannot see.", found.exact, found.minmax,
        f"QK-sparse at {found.seqlen // 1024}K: on the diagonal of a masked document the causal triangle and the interval "
        "cover a tile <i>together</i>, and equation 4 looks at each alone. The paper’s own rows show it: those of "
        f"FlexAttention stand for {found.paper_flex:.4f}, those of FlashMask for {found.paper_flashmask:.4f}.",
    )  # fmt: skip


def _card(title: str, big: float, other: float, text: str) -> str:
    return (
        f'<div class="fm-card"><b>{title}</b><div class="big">{big:.4f} <small>against {other:.4f}</small></div>'
        f'{text}<div class="foot">{_COUNTED}</div></div>'
    )
