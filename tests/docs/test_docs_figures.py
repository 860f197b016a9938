"""Speed and memory in the docs are figures of `make bench`, of a commit that they name."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from benchmarks.figures import FIGURES, Run, add_run, read_runs
from benchmarks.measure import Figure
from benchmarks.tasks import TASKS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import figures as docs_figures  # noqa: E402

PAGES = [path for path in docs_figures.pages() if docs_figures.MARK.search(path.read_text("utf-8"))]
QUICK = Figure("scale", "advise / copy", 2.04, "x", 3.0, note="s = 5%, 1e+07 rows")
SLOW = Figure("scale", "peak | memory", 4123.0, "MB", 4000)
RUN = Run("0123abcd", "2026-11-30", [1.0, 2.5], 1000, [QUICK, SLOW])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_shows_the_figures_that_were_measured(path: Path):
    text = path.read_text(encoding="utf-8")
    assert docs_figures.with_figures(text, read_runs(FIGURES)) == text, "run docs/figures.py"


def test_the_page_of_benchmarks_shows_each_task_and_no_other_figure():
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    cases = (ROOT / "docs" / "arx-cases.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- figures (\w+) -->", text + cases)
    assert sorted(shown) == sorted(read_runs(FIGURES))
    left, _ = docs_figures.MARK.sub("", text).split("## A plan for 1e11 rows")
    assert re.findall(r"[0-9.]+ (?:s|ms|minutes|seconds|MB|GB|times)\b", left) == []


def test_aegis_is_as_fast_as_arx_in_every_case_as_the_page_says():
    figures = read_runs(FIGURES)["arx"].figures
    assert len(figures) == 30
    assert all(figure.met for figure in figures)


def test_each_figure_names_a_commit_whose_files_were_not_changed():
    runs = read_runs(FIGURES)
    assert set(runs) <= set(TASKS)
    for run in runs.values():
        assert re.fullmatch("[0-9a-f]{8}", run.commit)


def test_a_page_states_value_target_and_origin():
    page = "A <!-- figures scale -->old<!-- end --> B <!-- figure scale: advise / copy -->7<!-- end -->"
    assert docs_figures.with_figures(page, {"scale": RUN}) == (
        "A <!-- figures scale -->\n\n"
        "| measured | figure | target | details |\n| --- | --- | --- | --- |\n"
        "| advise / copy | 2.04 | at most 3 | s = 5 %, 1e7 rows |\n"
        "| peak \\| memory | 4.12 GB | at most 4 GB: **missed** |  |\n\n"
        "`python -m benchmarks --only scale --rows 1e3`, commit 0123abcd, 2026-11-30, load 1 to 2.5.\n"
        "<!-- end --> B <!-- figure scale: advise / copy -->2.04<!-- end -->"
    )
    missed = docs_figures.with_figures("<!-- missed --><!-- end -->", {"scale": RUN})
    assert "- peak | memory (`scale`): 4.12 GB, target at most 4 GB\n" in missed
    assert "advise" not in missed


def test_a_run_replaces_the_run_of_its_task_alone(tmp_path: Path):
    path = tmp_path / "figures.json"
    add_run(path, "scale", RUN)
    add_run(path, "audit", RUN)
    later = Run("89abcdef", "2026-12-01", [0.1, 0.2], 10, [QUICK])
    add_run(path, "scale", later)
    assert read_runs(path) == {"audit": RUN, "scale": later}
