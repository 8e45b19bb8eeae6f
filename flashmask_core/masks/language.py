"""The mask language: one line of text is a mask.

    causal & document(2481, 1388, 1978, 2345) & (q - k < 512) | causal & (k < 16)

A text is read by Python's own `ast` and walked through a whitelist; nothing in it is ever evaluated as code.
"""

from __future__ import annotations

import ast

from .arguments import Repeat, shortened
from .column_mask import ColumnMask
from .errors import MaskSyntaxError, pointed_at
from .expr import COMPARISONS, Comparison, Hidden, Joined, MaskExpr, PatternExpr
from .lexer import ALLOWED, FUNCTIONS, MAX_DEPTH, tokens_of
from .patterns import PATTERNS, Parameter, Pattern
from .terms import Chain, Function, Negative, Number, Term, Variable

__all__ = ["MaskExpr", "mask", "parse"]

MAX_LIST_ITEMS = 1 << 20
# A canonical text may be longer than what was written; in texts longer than this it is held against the limits too.
_CHECKED_AGAIN = 1000

ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_JOINING = {ast.BitAnd: "&", ast.BitOr: "|", ast.And: "&", ast.Or: "|"}
_COMPARING = dict(zip((ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq), COMPARISONS))


def mask(text: str | MaskExpr, seqlen_q: int, seqlen_k: int | None = None) -> ColumnMask:
    """The mask of a text for Sq queries and Sk keys (None: as many as queries), with B = Hm = 1.

    Raises MaskSyntaxError for a text that is not in the language or does not go with the lengths, and
    NotRepresentableError, with every column, where a column would need more than two masked runs; `fit` has the ways
    on. Both are ValueErrors.
    """
    expr = text if isinstance(text, MaskExpr) else parse(text)
    return ColumnMask.from_runs(expr.runs(seqlen_q, seqlen_k))


def parse(text: str) -> MaskExpr:
    """The expression that a text stands for; str() of it is the canonical text.

    Raises MaskSyntaxError, which points at the character and says what is allowed.
    """
    if not isinstance(text, str):
        raise TypeError(f"text: wanted a str in the mask language, got {type(text).__name__}")
    expr = _Parser(text, suggest=True).parse()
    if len(text) > _CHECKED_AGAIN:
        try:
            tokens_of(str(expr))
        except MaskSyntaxError as error:
            raise MaskSyntaxError(f"in canonical form, with its spaces and parentheses, {error}") from None
    return expr


class _Parser:
    """One text on its way to an expression."""

    def __init__(self, text: str, suggest: bool):
        self.text, self.suggest = text, suggest
        self.tokens = tokens_of(text)
        self.indent = self.tokens[0].start  # Python's parser gets the text without it
        self.list_items = 0

    def parse(self) -> MaskExpr:
        line = "".join(" " if c.isspace() else c for c in self.text[self.indent :])
        try:
            return self.mask(ast.parse(line, mode="eval").body, 0)
        except SyntaxError as error:
            position = self.indent + (error.offset or len(line) + 1) - 1
            raise self.error(f"this does not read on as a mask; {ALLOWED}", position) from None
        except (RecursionError, MemoryError):
            raise MaskSyntaxError("the text is nested too deeply") from None

    def error(self, message: str, at: ast.AST | int) -> MaskSyntaxError:
        position = at if isinstance(at, int) else self.indent + at.col_offset
        return pointed_at(MaskSyntaxError(message), (self.text, position))

    def check_depth(self, node: ast.AST, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self.error(f"this is nested more than {MAX_DEPTH} deep", node)

    def mask(self, node: ast.AST, depth: int) -> MaskExpr:
        self.check_depth(node, depth)
        match node:
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                operands = [operand for _, operand in _left_to_right(node, same=(type(node.op),))]
                return Joined.of(_JOINING[type(node.op)], [self.mask(operand, depth + 1) for operand in operands])
            case ast.BoolOp():
                return Joined.of(_JOINING[type(node.op)], [self.mask(value, depth + 1) for value in node.values])
            case ast.UnaryOp(op=ast.Invert() | ast.Not()):
                return Hidden(self.mask(node.operand, depth + 1))
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.Name(id=name) if name in PATTERNS:
                if PATTERNS[name].parameters:
                    raise self.error(f"{name} needs its arguments: {PATTERNS[name].signature}", node)
                return self.pattern(node, PATTERNS[name], [], [], depth)
            case ast.Call(func=ast.Name(id=name)) if name in PATTERNS:
                return self.pattern(node, PATTERNS[name], node.args, node.keywords, depth)
            case ast.Constant(value=bool()):
                full = PatternExpr("full", ())
                return full if node.value else Hidden(full)
            case ast.Name(id="repeat") | ast.Call(func=ast.Name(id="repeat")):
                raise self.error("repeat(length, count) stands inside a list of lengths", node)
            case ast.Tuple():
                raise self.error("a comma stands between arguments only; & or | joins two masks", node)
            case ast.Name() | ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Call(func=ast.Name()):
                self.term(node, depth)  # what is wrong inside comes first, such as arithmetic with masks
                raise self.error("a number is no mask: compare it with something, as in q - k < 512", node)
        raise self.error(f"this is not in the language; {ALLOWED}", node)

    def comparison(self, node: ast.Compare, depth: int) -> Comparison:
        operands = [node.left, *node.comparators]
        for operand in operands:
            if isinstance(operand, ast.BinOp) and isinstance(operand.op, (ast.BitAnd, ast.BitOr)):
                raise self.missing_parentheses(node)
            if isinstance(operand, ast.UnaryOp) and isinstance(operand.op, ast.Invert):
                raise self.missing_parentheses(node)
        for op in node.ops:
            if type(op) not in _COMPARING:
                raise self.error(f"numbers compare with {' '.join(COMPARISONS)}", node)
        return Comparison(
            tuple(self.term(operand, depth + 1) for operand in operands),
            tuple(_COMPARING[type(op)] for op in node.ops),
            (self.text, self.indent + node.col_offset),
        )

    def missing_parentheses(self, node: ast.Compare) -> MaskSyntaxError:
        """`causal & q - k < 512`: & and | bind tighter than a comparison, so the comparison needs parentheses."""
        first, last = self.indent + node.col_offset, self.indent + node.end_col_offset
        pieces, position, level = [], None, 0
        for token in (t for t in self.tokens if first <= t.start < last):
            level += (token.text == "(") - (token.text == ")")
            if level == 0 and token.text in ("&", "|", "~"):
                pieces.append(token.text)
            else:
                if not pieces or isinstance(pieces[-1], str):
                    pieces.append([])
                pieces[-1].append((token, level))
        rebuilt = []
        for piece in pieces:
            if isinstance(piece, str):
                rebuilt.append(piece if piece == "~" else f" {piece} ")
                continue
            words = self.text[piece[0][0].start : piece[-1][0].end]
            compares = any(token.compares and level == 0 for token, level in piece)
            rebuilt.append(f"({words})" if compares else words)
            if compares and position is None:
                position = piece[0][0].start
        advice = ""
        if self.suggest:
            try:
                suggestion = "".join(rebuilt)
                _Parser(suggestion, suggest=False).parse()
                advice = f": write {suggestion}" if len(suggestion) < 120 else ""
            except MaskSyntaxError:
                advice = "; & | ~ work on masks, not on numbers"
        message = f"& | ~ bind tighter than a comparison, so parentheses are missing here{advice}"
        return self.error(message, first if position is None else position)

    def term(self, node: ast.AST, depth: int) -> Term:
        self.check_depth(node, depth)
        match node:
            case ast.Constant(value=int()) if not isinstance(node.value, bool):
                return Number(node.value)
            case ast.Name(id="q" | "k"):
                return Variable(node.id)
            case ast.UnaryOp(op=ast.USub()):
                inner = self.term(node.operand, depth + 1)
                return Number(-inner.number) if isinstance(inner, Number) else Negative(inner)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.term(node.operand, depth + 1)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.chain(node, (ast.Add, ast.Sub), depth)
            case ast.BinOp(op=ast.Mult() | ast.FloorDiv() | ast.Mod()):
                return self.chain(node, (ast.Mult, ast.FloorDiv, ast.Mod), depth)
            case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
                fits = len(node.args) == 1 if name == "abs" else len(node.args) >= 2
                if not fits or node.keywords:
                    raise self.error(f"{name} takes {'one number' if name == 'abs' else 'two numbers or more'}", node)
                return Function(name, tuple(self.term(argument, depth + 1) for argument in node.args))
            case ast.Name(id=name) if name in FUNCTIONS:
                raise self.error(f"{name} needs its arguments in parentheses", node)
            case ast.Call(func=ast.Name(id="q" | "k" as name)):
                raise self.error(f"{name} is a position and takes no arguments", node)
            case ast.Name() | ast.Call(func=ast.Name()) | ast.Compare() | ast.BoolOp() | ast.Constant(value=bool()):
                raise self.error("this is a mask where a number belongs; masks go with & | ~ alone", node)
            case ast.UnaryOp() | ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                raise self.error("& | ~ work on masks, not on numbers", node)
        raise self.error(f"this is no number; {ALLOWED}", node)

    def chain(self, node: ast.BinOp, same: tuple[type, ...], depth: int) -> Chain:
        (_, first), *rest = _left_to_right(node, same)
        terms = []
        for op, operand in rest:
            term = self.term(operand, depth + 1)
            if term == Number(0) and isinstance(op, (ast.FloorDiv, ast.Mod)):
                raise self.error("this divides by zero", operand)
            terms.append((ARITHMETIC[type(op)], term))
        return Chain(self.term(first, depth + 1), tuple(terms))

    def pattern(self, node: ast.AST, pattern: Pattern, arguments, keywords, depth: int) -> PatternExpr:
        parameters = pattern.parameters
        if not parameters and (arguments or keywords):
            raise self.error(f"{pattern.name} takes nothing: write {pattern.name} alone", node)
        if parameters and parameters[0].variadic:
            if keywords or not arguments:
                raise self.error(f"wanted {pattern.signature}", node)
            read = shortened([self.argument(argument, parameters[0], depth + 1) for argument in arguments])
        else:
            given = dict(zip((p.name for p in parameters), arguments))
            for keyword in keywords:
                if keyword.arg in given:
                    raise self.error(f"{keyword.arg} is given twice: wanted {pattern.signature}", node)
                given[keyword.arg] = keyword.value
            missing = [p.name for p in parameters if p.default is None and p.name not in given]
            if len(arguments) > len(parameters) or missing:
                raise self.error(f"wanted {pattern.signature}, got {len(arguments) + len(keywords)} arguments", node)
            read = [
                self.argument(given[p.name], p, depth + 1) if p.name in given else p.default for p in parameters
            ]
        return PatternExpr(pattern.name, tuple(read), (self.text, self.indent + node.col_offset))

    def argument(self, node: ast.AST, parameter: Parameter, depth: int):
        """An int, a tuple, or a Repeat of them, as the parameter wants it."""
        self.check_depth(node, depth)
        if parameter.variadic and isinstance(node, ast.Call) and getattr(node.func, "id", "") == "repeat":
            return self.repeat(node, parameter, depth)
        if parameter.kind == "tuples":
            return self.fields(node, parameter, depth)
        if parameter.kind == "ints":
            items = node.elts if isinstance(node, ast.Tuple) else [node]
            return tuple(self.integer(item, parameter.minimum, parameter.name, depth) for item in items)
        if parameter.kind == "lengths" and isinstance(node, ast.Tuple):
            raise self.error("drop these inner parentheses: the lengths stand side by side, as in document(3, 4)", node)
        return self.integer(node, parameter.minimum, parameter.name, depth)

    def fields(self, node: ast.AST, parameter: Parameter, depth: int) -> tuple:
        """One tuple of a list of tuples; where its last field may be repeated, a Repeat among its items too."""
        wanted = f"({', '.join(parameter.fields)}{', …' if parameter.open_ended else ''})"
        if not isinstance(node, ast.Tuple):
            raise self.error(f"wanted {wanted}, a tuple in parentheses of its own", node)
        if len(node.elts) != len(parameter.fields) and not (parameter.open_ended and node.elts):
            raise self.error(f"wanted {wanted}, got {len(node.elts)} numbers", node)
        last = Parameter(parameter.fields[-1], "", "lengths")
        read = [
            self.argument(item, last, depth + 1)
            if parameter.open_ended and nth
            else self.integer(item, parameter.minimum, parameter.fields[nth], depth + 1)
            for nth, item in enumerate(node.elts)
        ]
        return (read[0], *shortened(read[1:]))

    def repeat(self, node: ast.Call, parameter: Parameter, depth: int) -> Repeat:
        if len(node.args) != 2 or node.keywords:
            raise self.error("wanted repeat(length, count)", node)
        before = self.list_items
        item = self.argument(node.args[0], parameter, depth + 1)
        count = self.integer(node.args[1], 0, "count", depth + 1, counted=False)
        self.list_items = before + (self.list_items - before) * count
        self.check_list_items(node)
        return Repeat(item, count)

    def integer(self, node: ast.AST, minimum: int | None, name: str, depth: int, counted: bool = True) -> int:
        """A whole number without q and k; arithmetic is worked out here."""
        term = self.term(node, depth)
        if term.variables:
            raise self.error(f"{name}: wanted a number, and q and k vary", node)
        try:
            term.checked_bounds((0, 0), (0, 0))
            value = int(term.value(0, 0))
        except MaskSyntaxError as error:
            raise self.error(str(error), node) from None
        if minimum is not None and value < minimum:
            raise self.error(f"{name}: wanted {minimum} or more, got {value}", node)
        self.list_items += counted
        self.check_list_items(node)
        return value

    def check_list_items(self, node: ast.AST) -> None:
        if self.list_items > MAX_LIST_ITEMS:
            raise self.error(f"lists may have {MAX_LIST_ITEMS:,} items in all, after repeat", node)


def _left_to_right(node: ast.BinOp, same: tuple[type, ...]) -> list[tuple[ast.operator | None, ast.AST]]:
    """(operator before it, operand) of a chain of operators of the types `same`; a loop, as chains may be long."""
    chain = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, same):
        chain.append((node.op, node.right))
        node = node.left
    return [(None, node), *reversed(chain)]
