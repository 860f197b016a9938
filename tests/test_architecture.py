"""The order of the rooms, and what importing the package must not load."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "aegis"
NEVER = ("altair", "opendp", "pandas", "polars", "psycopg", "pyspark", "sklearn", "vl_convert")
LIGHT = ("duckdb", "ibis", "numpy", "pyarrow", "scipy")


def test_rooms_import_downward(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_every_room_has_its_place() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    listed = config["importlinter:contract:rooms"]["layers"].replace("|", " ").replace(":", " ")
    rooms = {f"aegis.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    modules = {
        f"aegis.{path.stem}"
        for path in PACKAGE.glob("*.py")
        if path.stem not in ("__init__", "__main__")
    }
    assert set(listed.split()) == rooms | modules


def loaded_by(statement: str, names: tuple[str, ...]) -> str:
    """Return which of `names` a fresh interpreter has loaded after `statement`."""
    code = f"{statement}; import sys; print(*(n for n in {names!r} if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "statement",
    ["import aegis", "import aegis.cli.main", "from aegis import *", "import aegis.summary"],
)
def test_importing_loads_no_extra(statement: str) -> None:
    assert loaded_by(statement, NEVER) == ""


def test_importing_the_package_loads_no_engine() -> None:
    assert loaded_by("import aegis", LIGHT) == ""


def test_a_summary_loads_no_extra(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,x\n2,z\n3,x\n")
    policy = "{'version': 1, 'label': 'y', 'attributes': {'a': {'role': 'quasi-identifier'}}}"
    statement = (
        "from aegis.policy import load_policy; from aegis.summary import *; "
        f"s = summarize({str(tmp_path / 't.csv')!r}, load_policy({policy})); "
        f"save_bundle(s, {str(tmp_path / 's.aegis')!r}); load_bundle({str(tmp_path / 's.aegis')!r})"
    )
    # Ibis needs pandas to hand over results, and PyArrow loads it where it is installed.
    rest = tuple(name for name in NEVER if name != "pandas")
    assert loaded_by(statement, rest) == ""


LONGEST = 800
"""Lines of the longest module: one thought may need that many, two get a module each."""


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "experiments", "docs"])
def test_no_module_is_long(folder: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / folder).rglob("*.py")
    }
    assert lengths, folder
    long = {path: lines for path, lines in lengths.items() if lines > LONGEST}
    assert long == {}, f"longer than {LONGEST} lines: move one thing of it into a module of its own"


def modules() -> list[tuple[str, ast.Module]]:
    """Return the path and the syntax of every module of the package."""
    return [
        (str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def test_one_word_names_one_class() -> None:
    places = defaultdict(list)
    for path, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path)
    assert len(places) > 300
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


HOLLOW = {"found", "kept", "one"}
"""Names that say nothing of what bears them."""


def test_what_is_bound_is_named() -> None:
    hollow = {
        f"{path}:{node.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.arg) and node.arg in HOLLOW)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in HOLLOW)
    }
    assert hollow == set()


def test_nothing_unpacks_what_it_lists() -> None:
    """As `f(*(a, b))` or `[*(a, b), c]`, which only save lines."""
    unpacked = {
        f"{path}:{node.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List)
    }
    assert unpacked == set()


OWN_NAMES = {"Output": "shell", "Policy": "policy", "PrivacyRule": "rule"}
"""What a parameter of a type is called; a qualified name, as `new_policy`, may stand before it."""


def test_parameters_are_called_by_the_glossary() -> None:
    others = {
        f"{path}:{node.lineno} {node.arg}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation is not None
        for name in [OWN_NAMES.get(ast.unparse(node.annotation).removesuffix(" | None"), "")]
        if not node.arg.endswith(name)
    }
    assert others == set()


def test_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [name[:4] for name in records] == [f"{n:04}" for n in range(1, len(records) + 1)]
    listed = re.findall(r"\((\d{4}-[^)]+)\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert listed == records


ENGINE_NAMES = re.compile(
    r"is_spark|is_duckdb|is_postgres|backend\.name|ibis\.options|\bpyspark\b|import duckdb|psycopg\.",
)
"""What only `aegis.sources` may ask of an engine; the catalog's own database is another thing."""


def test_no_engine_is_named_outside_sources() -> None:
    naming = {
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ("sources", "catalog")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if ENGINE_NAMES.search(line)
    }
    assert naming == set()


def test_engines_are_alike() -> None:
    """Each known engine is one module, whose class answers what the protocol asks."""
    from aegis.sources import engines

    asked = {name for name in dir(engines.Engine) if not name.startswith("_")}
    asked |= set(engines.Engine.__annotations__)
    assert "upload" in asked
    assert "rows_stay" in asked
    modules = {path.stem for path in (PACKAGE / "sources" / "engines").glob("*.py")}
    assert modules - {"__init__", "engine"} == {"duckdb", "postgres", "spark"}
    for engine in (engines.AnyEngine, *engines.AnyEngine.__subclasses__()):
        assert asked <= set(dir(engine)) | {"name"}, engine
        public = {name for name in vars(engine) if not name.startswith("_")}
        assert public <= asked | {"steady", "turn"}, engine


def imported_by(path: Path, modules: set[str]) -> set[str]:
    """Return the modules of the package that a module imports, within functions as well.

    Imports that only type checkers see load nothing.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    named: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            listed = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from package import module` asks for the module, else for the package itself.
            named |= {name if name in modules else node.module for name in listed}
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    return named & modules


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that import each other, directly or through others."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    together: list[set[str]] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in numbers:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            members = set(stack[stack.index(module) :])
            del stack[stack.index(module) :]
            if len(members) > 1:
                together.append(members)

    for module in sorted(graph):
        if module not in numbers:
            visit(module)
    return together


def test_no_import_circle_lazy_ones_included() -> None:
    paths = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in PACKAGE.rglob("*.py")
    }
    modules = set(paths)
    graph = {name: imported_by(path, modules) - {name, "aegis"} for name, path in paths.items()}
    assert graph["aegis.study.study"], "imports are seen"
    assert circles(graph) == []


def test_circles_are_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
