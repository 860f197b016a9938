"""Functions of at most 60 lines and 10 parameters, records of at most 12 fields.

`test_architecture.py` holds the length of modules. The list names the records that exceed the limit
today. It only shrinks: a name that no longer exceeds, or that is gone, fails the test until it is taken
out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "aegis"
LINES = 60
"""Lines of a function, with its docstring and without its decorators."""
PARAMETERS = 10
"""Parameters of a function, without `self`."""
FIELDS = 12
"""Fields that one dataclass declares."""

WIDE_RECORDS: frozenset[str] = frozenset(
    {
        "advisor/advice.py:Advice",
        "advisor/ranked.py:Ranked",
        "anonymizers/base.py:Anonymizer",
        "papers/evaluation/result.py:Evaluation",
        "measures/cooccurrence.py:Measure",
        "policy/suggest/facts.py:ColumnFacts",
        "privacy/model.py:PrivacyModel",
        "records/hybrid.py:HybridOptions",
        "release/released.py:Released",
        "safe/protect/model.py:Protection",
        "sources/dialect.py:Reading",
        "summary/model.py:Summary",
    }
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def defined(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.AST, ast.AST]]:
    """Yield each function and class by its qualified name, with what holds it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield f"{inside}{node.name}", node, tree
            yield from defined(node, f"{inside}{node.name}.")
        else:
            yield from ((name, below, tree) for name, below, _ in defined(node, inside))


def lines(node: ast.AST) -> int:
    """Return the lines of a function."""
    if not isinstance(node, Function):
        return 0
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(node: ast.AST, holder: ast.AST) -> int:
    """Return how many parameters a function names."""
    if not isinstance(node, Function):
        return 0
    given = node.args
    names = [p.arg for p in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    own = isinstance(holder, ast.ClassDef) and names[:1] in (["self"], ["cls"])
    return len(names) - own


def fields(node: ast.AST) -> int:
    """Return how many fields a dataclass declares."""
    if not isinstance(node, ast.ClassDef):
        return 0
    if not any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return 0
    return sum(
        isinstance(line, ast.AnnAssign) and "ClassVar" not in ast.unparse(line.annotation)
        for line in node.body
    )


@cache
def exceeding() -> tuple[set[str], set[str], set[str]]:
    """Return the long functions, those of many parameters, and the wide records of the package."""
    long, many, wide = set(), set(), set()
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE)
        for name, node, holder in defined(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{module.as_posix()}:{name}"
            if lines(node) > LINES:
                long.add(place)
            if parameters(node, holder) > PARAMETERS:
                many.add(place)
            if fields(node) > FIELDS:
                wide.add(place)
    return long, many, wide


def test_functions_are_short() -> None:
    assert not exceeding()[0], f"at most {LINES} lines"


def test_functions_take_few_parameters() -> None:
    assert not exceeding()[1], f"at most {PARAMETERS}"


def test_records_have_few_fields() -> None:
    assert exceeding()[2] == WIDE_RECORDS, f"at most {FIELDS} fields; the list only shrinks"


def test_what_exceeds_is_seen() -> None:
    body = "\n".join("        pass" for _ in range(LINES))
    given = ", ".join(f"p{i}" for i in range(PARAMETERS + 1))
    declared = "\n".join(f"    f{i}: int" for i in range(FIELDS + 1))
    source = (
        f"class A:\n    def long(self, {given}):\n{body}\n"
        f"@dataclass(frozen=True)\nclass Wide:\n    x: ClassVar[int]\n{declared}\n"
    )
    seen = {name: (node, holder) for name, node, holder in defined(ast.parse(source))}
    assert lines(seen["A.long"][0]) == LINES + 1
    assert parameters(*seen["A.long"]) == PARAMETERS + 1
    assert fields(seen["Wide"][0]) == FIELDS + 1
