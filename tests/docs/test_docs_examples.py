"""Every example of the README and the docs runs, in order, in a fresh folder."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_limits

import aegis
import aegis.cli.main

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("how-to/*.md"),
        *(ROOT / "docs").glob("tutorials/*.md"),
        *(ROOT / "docs").glob("reference/policy.md"),
    ]
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(m[1], m[2]) for m in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def without_sizes(text: str) -> str:
    """Return what a command printed, without the sizes of files, which differ between versions."""
    return re.sub(r"[0-9.]+ (bytes|kB|MB)", "SIZE", text).strip()


WHOLE = "README.md"
"""The page that runs on the whole of Adult. The others run on every 24th row, unless the test compares
what they print."""


@pytest.fixture(scope="module")
def few_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the data of the examples, with every 24th row of Adult."""
    folder = tmp_path_factory.mktemp("few") / "data"
    folder.mkdir()
    for path in (ROOT / "data").iterdir():
        (folder / path.name).symlink_to(path)
    adult = pq.read_table(ROOT / "data" / "adult.parquet")
    (folder / "adult.parquet").unlink()
    pq.write_table(adult.take(pa.array(range(0, len(adult), 24))), folder / "adult.parquet")
    return folder


@pytest.fixture
def folder(tmp_path: Path, page: Path, few_rows: Path) -> Path:
    compared = any(language == "output" for language, _ in blocks(page))
    data = ROOT / "data" if compared or page.name == WHOLE else few_rows
    (tmp_path / "data").symlink_to(data, target_is_directory=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    return tmp_path


HEREDOC = re.compile(r"<<'?(\w+)'?$")
SHELL = re.compile(r"[|<>;&$`*~#]")
"""Marks that a shell reads: a line without them is a command and its words."""


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a block of shell: lines with their continuations and here-documents."""
    lines = iter(text.splitlines())
    for line in lines:
        statement = line
        while statement.endswith("\\"):
            statement = f"{statement[:-1]} {next(lines).strip()}"
        if document := HEREDOC.search(statement):
            for more in lines:
                statement += f"\n{more}"
                if more == document[1]:
                    break
        yield statement


def printed_by(statement: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a statement prints: `aegis` runs in this process, which spares its start."""
    words = [] if SHELL.search(statement) else shlex.split(statement)
    if words[:1] == ["aegis"]:
        capsys.readouterr()
        with threadpool_limits(1, user_api="blas"):  # as in a process of its own
            code = aegis.cli.main.run(words[1:])
        out, error = capsys.readouterr()
    else:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", statement],
            capture_output=True,
            text=True,
            check=False,
        )
        code, out, error = done.returncode, done.stdout, done.stderr
    assert code == 0, f"{statement}\n{out}\n{error}"
    return out


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_run(
    page: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, object] = {}
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(folder)
    printed = ""
    for language, text in blocks(page):
        if language == "output":
            assert without_sizes(printed) == without_sizes(text), "run docs/outputs.py"
        elif language == "bash":
            printed = "".join(printed_by(statement, capsys) for statement in statements(text))
        elif language == "python":
            exec(compile(text, f"{page.name}", "exec"), names)


def test_shell_is_read_by_statements(capsys: pytest.CaptureFixture[str]) -> None:
    text = "cat <<'END'\na b\nEND\naegis \\\n  --version\necho x | cat\n"
    found = list(statements(text))
    assert found == ["cat <<'END'\na b\nEND", "aegis  --version", "echo x | cat"]
    version = f"aegis {aegis.__version__}\n"
    assert [printed_by(own, capsys) for own in found] == ["a b\n", version, "x\n"]
    with pytest.raises(AssertionError, match="no-such"):
        printed_by("aegis audit no-such.csv --quasi-identifiers a", capsys)
    with pytest.raises(AssertionError, match="false"):
        printed_by("false", capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_policies_in_the_docs_load(page: Path, folder: Path) -> None:
    for index, (language, text) in enumerate(blocks(page)):
        if language == "yaml" and text.startswith("version:"):
            path = folder / f"policy{index}.yaml"
            path.write_text(text, encoding="utf-8")
            assert aegis.load_policy(path).features


def test_make_targets_of_the_readme_exist() -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    named = re.findall(
        r"^make (\w+)$",
        "\n".join(t for lang, t in blocks(ROOT / "README.md") if lang == "sh"),
        re.MULTILINE,
    )
    assert named == ["demo", "test"]
    assert set(named) <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_notebook_is_its_page() -> None:
    """The page's code is executed above, so the notebook's is."""
    path = Path(__file__).parents[2] / "docs" / "notebook.py"
    spec = importlib.util.spec_from_file_location("docs_notebook", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    held = json.loads(module.NOTEBOOK.read_text(encoding="utf-8"))
    assert held == module.notebook(module.PAGE.read_text(encoding="utf-8")), "run: make docs"
    code = ["".join(cell["source"]) for cell in held["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 4
    for cell in code:
        compile(cell, "cell", "exec")


@pytest.mark.parametrize("table", ["hospital/stays.csv", "bank/customers.csv"])
def test_tables_of_examples_are_as_their_scripts_make_them(table: str, tmp_path: Path) -> None:
    path = ROOT / "examples" / table
    made = tmp_path / path.name
    subprocess.run([sys.executable, path.with_name("make.py"), made], check=True)
    assert made.read_bytes() == path.read_bytes()
