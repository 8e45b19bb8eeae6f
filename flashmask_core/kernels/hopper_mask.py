"""The element test of a PARTIAL tile on Hopper.

Forward: a consumer's 64 query rows are 16 rows for each of its four warps, so what a column hides from a warp is a
16-bit field. One thread a column computes the four fields from the column's vectors (whatever the packing), they pass
through shared memory, and the test of an element is one AND: far less than a comparison or four for every element, and
it runs while the tile's scores are still being computed.

Backward: a thread holds 2 columns and 16 or 32 rows of a transposed tile; it makes the fields it needs itself.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

_TEST = "{ .reg .pred p; .reg .b32 t; and.b32 t, $2, $3; setp.ne.b32 p, t, 0; selp.f32 $0, %s, $1, p; }"
HIDE_BIT: gl.constexpr = gl.constexpr(_TEST % "0fFF800000")  # $2 & $3 ? -inf : $1; a plain `where` packs predicates into words
ZERO_BIT: gl.constexpr = gl.constexpr(_TEST % "0f00000000")
FIELDS: gl.constexpr = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))


@gluon.constexpr_function
def _one_column_a_thread(columns):
    """Layout of [4 warps' fields, columns] over 128 threads."""
    return gl.BlockedLayout([columns // 32, 1], [1, 32], [128 // columns, columns // 32], [1, 0])


@gluon.jit
def load_bounds(vectors, stride, start, CAUSAL: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr):
    """(columns, lts, second, third, fourth vector in use) of columns start ... start + COLUMNS - 1.

    `vectors` points to the mask's plane of the first vector, the others follow at multiples of `stride`.
    """
    L: gl.constexpr = _one_column_a_thread(COLUMNS)
    cols = start + gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, L))
    a = gl.load(vectors + cols)
    b = a
    c = a
    d = a
    if BOUNDS > 1:
        b = gl.load(vectors + stride + cols)
    if BOUNDS > 2:
        c = gl.load(vectors + 2 * stride + cols)
        d = gl.load(vectors + 3 * stride + cols)
    return cols, a, b, c, d


@gluon.jit
def _field(start, end, base):
    """Bits start - base ... end - base - 1 of a 16-bit field, as far as it has them."""
    low = gl.minimum(gl.maximum(start - base, 0), 16)
    high = gl.minimum(gl.maximum(end - base, 0), 16)
    return gl.maximum((1 << high) - (1 << low), 0)


@gluon.jit
def write_hidden_bits(fields, row, offset, cols, a, b, c, d,
                      CAUSAL: gl.constexpr, BOUNDS: gl.constexpr, COLUMNS: gl.constexpr):  # fmt: skip
    """fields int16 [4, COLUMNS] in shared memory: which of rows row + 16 w ... row + 16 w + 15 column j hides."""
    L: gl.constexpr = _one_column_a_thread(COLUMNS)
    base = gl.expand_dims(row + 16 * gl.arange(0, 4, layout=gl.SliceLayout(1, L)), 1)
    a = gl.expand_dims(a, 0)
    b = gl.expand_dims(b, 0)
    if BOUNDS == 4 or CAUSAL and BOUNDS == 2:
        hidden = _field(a, b, base)
    else:
        hidden = _field(a, base + 16, base)
    if CAUSAL:
        hidden = hidden | _field(base, gl.expand_dims(cols, 0) - offset, base)
    elif BOUNDS == 2:
        hidden = hidden | _field(base, b, base)
    else:
        hidden = hidden | _field(gl.expand_dims(c, 0), gl.expand_dims(d, 0), base)
    fields.store(hidden.to(gl.int16))


@gluon.jit
def hide_bits(s, fields):
    """s [64, columns], the accumulator of a product, with -inf where `fields` has its bit set."""
    S: gl.constexpr = s.type.layout
    COLUMNS: gl.constexpr = s.shape[1]
    x = s.reshape([4, 16, COLUMNS // 2, 2])  # (warp, row, pair of columns, which of the pair)
    X: gl.constexpr = x.type.layout
    pairs = fields._reinterpret(gl.int32, [4, COLUMNS // 2], FIELDS).load(gl.SliceLayout(1, gl.SliceLayout(3, X)))
    pairs = gl.expand_dims(gl.expand_dims(pairs, 1), 3)
    row = gl.arange(0, 16, layout=gl.SliceLayout(0, gl.SliceLayout(2, gl.SliceLayout(3, X))))
    which = gl.arange(0, 2, layout=gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, X))))
    row = gl.expand_dims(gl.expand_dims(gl.expand_dims(row, 0), 2), 3)
    which = gl.expand_dims(gl.expand_dims(gl.expand_dims(which, 0), 1), 2)
    x = gl.inline_asm_elementwise(
        HIDE_BIT, "=f,f,r,r", [x, pairs, 1 << (row + 16 * which)], dtype=gl.float32, is_pure=True, pack=1
    )
    return gl.convert_layout(x.reshape([64, COLUMNS]), S, assert_trivial=True)


@gluon.jit
def _word(start, end, base):
    """Bits start - base ... end - base - 1 of a 32-bit word, as far as it has them."""
    low = gl.maximum(start - base, 0)
    return gl.inline_asm_elementwise(
        "bmsk.clamp.b32 $0, $1, $2;", "=r,r,r", [low, gl.maximum(end - base - low, 0)],
        dtype=gl.int32, is_pure=True, pack=1,
    )  # fmt: skip


@gluon.jit
def zero_hidden(p, row, cols, vectors, stride, offset, CAUSAL: gl.constexpr, BOUNDS: gl.constexpr):
    """p [columns, rows], the accumulator of a product, with 0 where column `cols` hides row `row`, `row` + 1, ...

    A thread holds 2 columns and, of every 8 rows, 2: it makes a word for each column and 32 rows and shifts its rows'
    bits to fixed places. offset = Sk - Sq.
    """
    P: gl.constexpr = p.type.layout
    WORDS: gl.constexpr = p.shape[1] // 32
    x = p.reshape([p.shape[0], WORDS, 4, 4, 2])  # (column, word, eight rows, lane, row of the lane)
    X: gl.constexpr = x.type.layout
    L: gl.constexpr = gl.SliceLayout(2, gl.SliceLayout(3, gl.SliceLayout(4, X)))
    base = gl.expand_dims(row + 32 * gl.arange(0, WORDS, layout=gl.SliceLayout(0, L)), 0)
    cols = gl.expand_dims(gl.convert_layout(cols, gl.SliceLayout(1, L)), 1)
    a = gl.load(vectors + cols)
    if CAUSAL and BOUNDS == 2 or BOUNDS == 4:
        hidden = _word(a, gl.load(vectors + stride + cols), base)
    else:
        hidden = _word(a, base + 32, base)
    if CAUSAL:
        hidden = hidden | _word(base, cols - offset, base)
    elif BOUNDS == 2:
        hidden = hidden | _word(base, gl.load(vectors + stride + cols), base)
    else:
        c = gl.load(vectors + 2 * stride + cols)
        hidden = hidden | _word(c, gl.load(vectors + 3 * stride + cols), base)
    lane = gl.arange(0, 4, layout=gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(4, X)))))
    lane = gl.expand_dims(gl.expand_dims(gl.expand_dims(gl.expand_dims(lane, 0), 1), 2), 4)
    hidden = gl.expand_dims(gl.expand_dims(gl.expand_dims(hidden, 2), 3), 4) >> (2 * lane)
    eight = gl.arange(0, 4, layout=gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(3, gl.SliceLayout(4, X)))))
    eight = gl.expand_dims(gl.expand_dims(gl.expand_dims(gl.expand_dims(eight, 0), 1), 3), 4)
    which = gl.arange(0, 2, layout=gl.SliceLayout(0, gl.SliceLayout(1, gl.SliceLayout(2, gl.SliceLayout(3, X)))))
    which = gl.expand_dims(gl.expand_dims(gl.expand_dims(gl.expand_dims(which, 0), 1), 2), 3)
    x = gl.inline_asm_elementwise(
        ZERO_BIT, "=f,f,r,r", [x, hidden, 1 << (8 * eight + which)], dtype=gl.float32, is_pure=True, pack=1
    )
    return gl.convert_layout(x.reshape(p.shape), P, assert_trivial=True)
