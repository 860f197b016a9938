"""No module of the package depends on itself, by any path: type imports and late imports included.

Names that a package loads on first use (`aegis/__init__.py`) are texts there, and count as no import.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
Graph = dict[str, set[str]]


def import_graph(root: Path) -> Graph:
    """Return the modules that each module below `root` imports, anywhere in its text."""
    files = {_name(path, root): path for path in sorted(root.rglob("*.py"))}
    return {
        name: {m for m in _imported(name, path, files) if m in files} - {name}
        for name, path in files.items()
    }


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = [*name.split("."), *(["_"] if path.name == "__init__.py" else [])]
                base = ".".join([*parts[: -node.level], *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in files else base


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            start = stack.index(module)
            components.append(sorted(stack[start:]))
            del stack[start:]

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return [component for component in components if len(component) > 1]


def test_no_module_imports_itself_by_any_path() -> None:
    graph = import_graph(SOURCE)
    assert len(graph) > 300
    found = [
        "\n".join(f"{m} imports {', '.join(sorted(graph[m] & {*circle}))}" for m in circle)
        for circle in circles(graph)
    ]
    assert not found, "\n\n".join(found)


def test_a_circle_of_types_and_of_late_imports_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "example"
    package.mkdir()
    (package / "__init__.py").write_text('HOMES = {"three": "example.three"}\n')
    (package / "one.py").write_text("from example.two import TWO\n")
    (package / "two.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import three\n"
    )
    (package / "three.py").write_text("def late():\n    import example.one\n")
    graph = import_graph(tmp_path)
    assert circles(graph) == [["example.one", "example.three", "example.two"]]
    (package / "three.py").write_text("")
    assert circles(import_graph(tmp_path)) == []
