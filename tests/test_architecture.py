"""The order of the rooms, and what importing the package must not load."""

from __future__ import annotations

import ast
import configparser
import logging
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "aegis"
NEVER = ("altair", "opendp", "pandas", "polars", "psycopg", "pyspark", "sklearn", "vl_convert")
LIGHT = ("duckdb", "ibis", "numpy", "pyarrow", "scipy")


@pytest.fixture
def kept_loggers() -> Iterator[None]:
    """Enable loggers again: import-linter disables those that exist when it sets up its own."""
    known = [own for own in logging.root.manager.loggerDict.values() if hasattr(own, "disabled")]
    before = [own.disabled for own in known]
    yield
    for own, disabled in zip(known, before, strict=True):
        own.disabled = disabled


@pytest.mark.usefixtures("kept_loggers")
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


def loaded_by(*steps: tuple[str, tuple[str, ...]]) -> list[str]:
    """Return which of some names a fresh interpreter has loaded after each of these statements."""
    code = "import sys\n" + "".join(
        f"{statement}\nprint(*(n for n in {names!r} if n in sys.modules))\n"
        for statement, names in steps
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_importing_and_a_summary_load_no_extra(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,x\n2,z\n3,x\n")
    imports = "import aegis.report, aegis.summary, aegis.cli.main; from aegis import *"
    policy = "{'version': 1, 'label': 'y', 'attributes': {'a': {'role': 'quasi-identifier'}}}"
    summary = (
        "from aegis.policy import load_policy; from aegis.summary import *; "
        f"s = summarize({str(tmp_path / 't.csv')!r}, load_policy({policy})); "
        f"save_bundle(s, {str(tmp_path / 's.aegis')!r}); load_bundle({str(tmp_path / 's.aegis')!r})"
    )
    # Ibis needs pandas to hand over results, and PyArrow loads it where it is installed.
    rest = tuple(name for name in NEVER if name != "pandas")
    assert loaded_by((imports, (*NEVER, "jinja2")), (summary, rest)) == ["", ""]


def test_importing_the_package_loads_no_engine() -> None:
    assert loaded_by(("import aegis", (*LIGHT, *NEVER))) == [""]


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


_WORDS = """
added apart areas aside asked beside charged coded corners doubts drawn found given gone held joints
judging kept known lean left made meant nearby one own place reach remembered said seen shown sieve
stated stood taken tally told uncovered wanted warm whole
"""
HOLLOW = frozenset(_WORDS.split())
"""Names that hide the noun, whatever underscores stand before them; `left` may stand beside `right`."""

PUBLIC_NAMES = {
    ("masks/base.py", "known"),  # of `Mask`, which masks of other packages override
    ("masks/base.py", "whole"),  # called by masks of other packages
    ("masks/categories.py", "known"),
    ("masks/grouping.py", "known"),
    ("masks/hierarchy.py", "known"),
    ("masks/noise/categories.py", "known"),
    ("privacy/model.py", "whole"),  # of `ModelParameter`, which models of other packages give
    ("advisor/advice.py", "uncovered"),  # a field of `Advice`, and a JSON key
    ("advisor/utility.py", "kept"),  # a JSON key
    ("advisor/search/branch.py", "Found"),  # what search strategies of other packages return
    ("advisor/search/problem.py", "left"),  # of `Clock`, which other packages receive
    ("report/render.py", "given"),  # parameters of `render_report`
    ("report/render.py", "shown"),
    ("service/api/requests.py", "given"),  # a title in the description of the API
    ("service/catalog/records.py", "asked"),  # columns of the database
    ("service/catalog/records.py", "place"),
    ("service/catalog/records.py", "seen"),
    ("service/catalog/verifying.py", "place"),  # a JSON key
    ("service/client.py", "shown"),  # a method of `Client`
}
"""Modules and their hollow names that users, plug-ins or JSON read: another name would break them."""

OWN_NAMES = {"Output": "shell", "Policy": "policy", "PrivacyRule": "rule"}
"""What a parameter of a type is called; a qualified name, as `new_policy`, may stand before it."""


@dataclass(frozen=True)
class Findings:
    """What one reading of a package finds, by module and line; hollow names by module."""

    classes: dict[str, list[str]]
    hollow: set[tuple[str, str]]
    unpacked: list[str]
    misnamed: list[str]


def findings(sources: Mapping[str, str]) -> Findings:
    """Read each module once: its text is parsed and walked for all tests together."""
    read = Findings(defaultdict(list), set(), [], [])
    for path, text in sources.items():
        tree = ast.parse(text)
        names: set[str] = set()
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                read.classes[node.name].append(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
                if node.annotation and not node.arg.endswith(_called(node.annotation)):
                    read.misnamed.append(f"{path}:{node.lineno} {node.arg}")
            elif isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
                read.unpacked.append(f"{path}:{node.lineno}")
        bare = {name: name.strip("_").lower() for name in names}
        hollow = HOLLOW - {"left"} if "right" in bare.values() else HOLLOW
        read.hollow.update((path, name) for name in names if bare[name] in hollow)
    return read


def _called(annotation: ast.expr) -> str:
    """Return the name that a parameter of a type ends with."""
    return OWN_NAMES.get(ast.unparse(annotation).removesuffix(" | None"), "")


@cache
def of_the_package() -> Findings:
    """Return the findings of every module of the package."""
    return findings(
        {
            str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
            for path in sorted(PACKAGE.rglob("*.py"))
        }
    )


def test_one_word_names_one_class() -> None:
    places = of_the_package().classes
    assert len(places) > 300
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_what_is_bound_is_named() -> None:
    """Each hollow name is public, and no exception outlives its name."""
    hollow = of_the_package().hollow
    bound, gone = sorted(hollow - PUBLIC_NAMES), sorted(PUBLIC_NAMES - hollow)
    assert not bound, (
        f"these names say nothing of their content (HOLLOW), so choose others: {bound}"
    )
    assert not gone, f"take out of PUBLIC_NAMES: {gone}"


def test_nothing_unpacks_what_it_lists() -> None:
    """As `f(*(a, b))` or `[*(a, b), c]`, which only save lines."""
    assert of_the_package().unpacked == []


def test_parameters_are_called_by_the_glossary() -> None:
    assert of_the_package().misnamed == []


def test_findings_are_seen() -> None:
    text = "class A: ...\nkept = [*(1, 2)]\ndef f(one, text: Policy | None): ...\n"
    more = "class A:\n    stated: int\n    def _told(self): left = self.wanted\nclass _Whole: ...\n"
    read = findings({"a.py": text, "b.py": more, "c.py": "left, right = rows_given"})
    assert read.classes == {"A": ["a.py", "b.py"], "_Whole": ["b.py"]}
    assert {name for path, name in read.hollow if path == "a.py"} == {"kept", "one"}
    assert {name for path, name in read.hollow if path == "b.py"} == {
        "stated",
        "_told",
        "left",
        "_Whole",
    }
    assert not any(path == "c.py" for path, _ in read.hollow)
    assert (read.unpacked, read.misnamed) == (["a.py:2"], ["a.py:3 text"])


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
    """Each known engine is one class, which has nothing that others do not answer."""
    from aegis.sources import engines

    asked = {name for name in dir(engines.Engine) if not name.startswith("_")}
    assert "upload" in asked
    assert "rows_stay" in asked
    classes = engines.Engine.__subclasses__()
    assert {engine.__name__ for engine in classes} == {"DuckDB", "Postgres", "Spark"}
    for engine in classes:
        assert {name for name in vars(engine) if not name.startswith("_")} <= asked, engine
