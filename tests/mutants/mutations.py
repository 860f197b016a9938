"""The small changes: each is an edit of one node of a module's syntax tree."""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
CALLS = {"min": "max", "max": "min", "all": "any", "any": "all"}


@dataclass(frozen=True)
class Mutation:
    """One edit: the text of a node, and what stands there instead."""

    path: str
    line: int
    column: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}:{self.column}: {_short(self.before)} -> {_short(self.after)}"
        )

    def apply(self, source: bytes) -> bytes:
        """Return the module with the edit; a ValueError where the text is another by now."""
        if source[self.start : self.end] != self.before.encode():
            raise ValueError(f"{self.path} has changed at line {self.line}")
        return source[: self.start] + self.after.encode() + source[self.end :]


def _short(text: str) -> str:
    return textwrap.shorten(text, 70, placeholder=" ...")


def mutations(path: Path, name: str) -> list[Mutation]:
    """Return every mutation of one module, in the order of its text.

    Parameters
    ----------
    path
        The module.
    name
        What a mutation calls it: its path below the root of the project.
    """
    source = path.read_bytes()
    module = _Module(name, source)
    tree = ast.parse(source)
    skipped = _not_executed(tree)
    edits = [
        edit
        for node in ast.walk(tree)
        if node not in skipped and hasattr(node, "lineno")
        for edit in module.edits(node)
    ]
    return sorted(set(edits), key=lambda edit: (edit.start, edit.end, edit.after))


def named_equivalent(path: Path, root: Path) -> set[tuple[str, str, str]]:
    """Return the mutations that a file names as changing nothing: module, source line, edit.

    Each line of the file has these three and the reason, with ` | ` between them. A ValueError
    where one names no mutation of the source as it is.

    Parameters
    ----------
    path
        The file.
    root
        The project.
    """
    lines = path.read_text("utf-8").splitlines()
    entries = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    named = {(module, line, edit) for module, line, edit, _ in entries}
    modules = sorted({module for module, _, _ in named})
    there = {key(edit, root) for module in modules for edit in mutations(root / module, module)}
    if stale := sorted(named - there):
        raise ValueError(f"{path.name} names mutations that the source does not have: {stale}")
    return named


def key(mutation: Mutation, root: Path) -> tuple[str, str, str]:
    """Return what names a mutation whatever stands above it: module, source line, edit."""
    line = (root / mutation.path).read_text("utf-8").splitlines()[mutation.line - 1]
    return mutation.path, line.strip(), f"{mutation.before} -> {mutation.after}"


def draw(candidates: list[Mutation], number: int, seed: int) -> list[Mutation]:
    """Return that many of them at random, at most one of a line."""
    shuffled = list(candidates)
    random.Random(seed).shuffle(shuffled)
    by_line = {(edit.path, edit.line): edit for edit in reversed(shuffled)}
    drawn = [edit for edit in shuffled if by_line[edit.path, edit.line] is edit]
    return drawn[:number]


def _not_executed(tree: ast.Module) -> set[ast.AST]:
    """Return nodes whose change no test could see: annotations, docstrings, messages of errors.

    Also that what `zip` joins must be equally long, which it always is.
    """
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign() | ast.arg():
                roots.append(node.annotation)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                roots.append(node.returns)
            case ast.Raise():
                roots.append(node.exc)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.JoinedStr():
                roots.append(node)
            case ast.Call(func=ast.Name(id="field" | "dataclass" | "zip")):
                roots += node.keywords
    return {below for root in roots if root is not None for below in ast.walk(root)}


class _Module:
    """The text of one module, by byte."""

    def __init__(self, name: str, source: bytes) -> None:
        self.name, self.source = name, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def edits(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the mutations of one node, without those of what it holds."""
        match node:
            case ast.Compare(ops=[operator]):
                yield from self._between(
                    node.left, node.comparators[0], COMPARISONS[type(operator)]
                )
            case ast.BinOp() if type(node.op) in OPERATORS and not _of_text(node):
                yield from self._between(node.left, node.right, OPERATORS[type(node.op)])
            case ast.BoolOp(values=[first, second, *_]):
                yield from self._between(first, second, _other_word(node.op))
            case ast.UnaryOp(op=ast.Not()):
                yield self._whole(node, f"({ast.unparse(node.operand)})")
            case ast.Constant():
                yield from self._constant(node)
            case ast.If() | ast.While() | ast.IfExp():
                yield self._whole(node.test, f"(not ({self._text(node.test)}))")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield self._whole(node.func, CALLS[name])
            case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()):
                yield self._whole(node, "pass")

    def _constant(self, node: ast.Constant) -> Iterator[Mutation]:
        if isinstance(node.value, bool):
            yield self._whole(node, str(not node.value))
        elif isinstance(node.value, int):
            yield self._whole(node, str(node.value + 1))
        elif isinstance(node.value, float) and node.value not in (float("inf"), float("-inf")):
            yield self._whole(node, repr(node.value * 2 if node.value else 1.0))

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self.starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self.starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def _whole(self, node: ast.AST, after: str) -> Mutation:
        start, end = self._span(node)
        return self._edit(start, end, after)

    def _between(self, left: ast.expr, right: ast.expr, after: str) -> Iterator[Mutation]:
        """Yield the edit of an operator, where nothing but it stands between its operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        text = self.source[start:end].decode()
        word = text.strip(" ()\n\\")
        if word and "#" not in word and "\n" not in word:
            at = start + text.encode().index(word.encode())
            yield self._edit(at, at + len(word.encode()), after)

    def _edit(self, start: int, end: int, after: str) -> Mutation:
        line = self.source.count(b"\n", 0, start) + 1
        column = start - self.starts[line - 1] + 1
        return Mutation(self.name, line, column, start, end, self.source[start:end].decode(), after)


def _other_word(operator: ast.boolop) -> str:
    return "or" if isinstance(operator, ast.And) else "and"


def _of_text(node: ast.BinOp) -> bool:
    """Say whether an operator joins or fills a text, which only messages do."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
