"""Scripts of the experiments run to their end, with tiny parameters, and write figures that are numbers.

The tables are samples: of German Credit, Air Quality and Adult, and of German Credit under the label
that a public table has. What a script makes of earlier results it gets from the runs before it.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiment_modules import FOLDER

ROWS = 300
TABLES = (
    "mo_obam_f1_tables",
    "mo_obam_members_tables",
    "mo_obam_tables",
    "paper_tables",
    "protected_tables",
    "public_tables",
    "selection_tables",
)
"""Scripts that print tables of the documents from the summaries in the tree."""


@dataclass(frozen=True)
class Run:
    """How a script runs at its smallest.

    Attributes
    ----------
    arguments
        Of its command line; `{folder}` is a folder of its own.
    constants
        What is small in it, by name, in whichever module of the experiments has that name.
    after
        Scripts whose results it reads, with what is added to their command lines.
    """

    arguments: str = ""
    constants: Mapping[str, Any] = field(default_factory=dict)
    after: Sequence[tuple[str, str]] = ()


_CHOSEN = ("selection_quality", "")
_CONFIRMED = ("selection_quality", " --suffix _confirmed")
_SPLITS = {"RUNS": ((("lr", "nb"), 1), (("gbdt-60", "rf-50"), 1)), "COUNT": 3}
RUNS: Mapping[str, Run] = {
    "adult_ranking": Run("--seeds 1 --splits 1", {"COUNT": 3}),
    "balanced_trace": Run("--data attrition", _SPLITS),
    "calibration": Run("--data attrition --stores {folder}", {**_SPLITS, "SPLITS": 2, "FEW": 1}),
    "calibration_errors": Run("--data attrition", {**_SPLITS, "SPLITS": 2}),
    "codings": Run("--data German", after=(_CHOSEN, _CONFIRMED)),
    "confirmation": Run("--data telco --stores {folder}", _SPLITS),
    "figure_10_as_designed": Run("", {"ROWS": 500, "BINS": (2, 5), "DOMAINS": (50, 60)}),
    "figure_10_domain": Run("--data AQ", {"BUCKETS": (2, 5), "DOMAINS": (12, 24)}),
    "figure_10_explained": Run("", {"ROWS": 500, "PER_VALUE": 2, "SWEEPS": 40}),
    "figure_11_parts": Run(
        "--rows 400 --attributes 3 --configurations 2",
        {"ROWS": 400, "ATTRIBUTES": 3, "CONFIGURATIONS": 2},
    ),
    "figure_5_accuracy": Run("--data German --seeds 1 --count 3 --models lr"),
    "figure_5_time": Run("--data German --count 3 --trained 1", {"MODELS": ("lr",)}),
    "figure_6a_mlp": Run("--data German --rows 200 --count 3"),
    "figure_6b_k_anonymous": Run("--data German --models lr --k 2 --count 3"),
    "figure_7_configurations": Run("--data AQ", {"COUNT": 2}),
    "penalties": Run("--data German", after=(_CHOSEN,)),
    "sampling_labels": Run("--count 3"),
    "selection_quality": Run("--data German --seeds 1 --models lr --splits 1", {"COUNT": 3}),
    "theorem_1": Run("--count 2"),
}


def sample(table: pa.Table, rows: int = ROWS) -> pa.Table:
    """Return every so many-th row."""
    step = max(table.num_rows // rows, 1)
    return table.take(pa.array(range(0, table.num_rows, step)))


def modules() -> list[ModuleType]:
    """Return the modules of the experiments that are loaded."""
    found = [
        m for m in sys.modules.values() if Path(getattr(m, "__file__", "") or "").parent == FOLDER
    ]
    assert found
    return found


@pytest.fixture
def small(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the experiments read samples, and write into a folder of the test's own."""
    assert shared_data.is_dir()
    monkeypatch.syspath_prepend(FOLDER)
    paper_sets, public_sets = map(import_module, ("paper_sets", "public_sets"))
    adult = tmp_path / "adult.parquet"
    pq.write_table(sample(pq.read_table("data/adult.parquet")), adult)
    held = {
        name: replace(own, read=lambda own=own: sample(own.read()))
        for name, own in paper_sets.SETS.items()
    }
    monkeypatch.setattr(paper_sets, "SETS", held)

    def opened(self: Any, rows: int = ROWS) -> pa.Table:
        table = sample(paper_sets.SETS["German"].read(), min(rows, ROWS))
        return table.rename_columns([self.label if n == "class" else n for n in table.column_names])

    monkeypatch.setattr(public_sets.PublicSet, "open", opened)
    return tmp_path


def run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> set[Path]:
    """Run a script as it runs by itself, after those it needs; return what it wrote."""
    asked = RUNS[name]
    for earlier, own in asked.after:
        run(earlier, folder, monkeypatch, own)
    results = folder / "results"
    results.mkdir(exist_ok=True)
    script = import_module(name)  # by its own name, as it may register what none may register twice
    here = {
        "RESULTS": results,
        "SUMMARIES": folder / "summaries",
        "ADULT": folder / "adult.parquet",
    }
    for module in modules():
        for constant, value in {**here, **asked.constants}.items():
            if hasattr(module, constant) and not (
                constant in here and not isinstance(getattr(module, constant), Path)
            ):
                monkeypatch.setattr(module, constant, value)
    before = set(results.iterdir())
    monkeypatch.setattr(
        sys, "argv", [name, *(asked.arguments + more).format(folder=folder).split()]
    )
    script.main()
    return set(results.iterdir()) - before


def numbers(path: Path) -> list[float]:
    """Return the numbers of a result."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            cells = [cell for row in csv.DictReader(file) for cell in row.values()]
    else:
        cells = _leaves(json.loads(path.read_text()))
    found = []
    for cell in cells:
        try:
            found.append(float(cell))
        except (TypeError, ValueError):
            continue
    return found


def _leaves(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return [leaf for own in content.values() for leaf in _leaves(own)]
    if isinstance(content, list):
        return [leaf for own in content for leaf in _leaves(own)]
    return [content]


@pytest.mark.parametrize("name", RUNS)
def test_a_script_runs(name: str, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = [path for path in run(name, small, monkeypatch) if path.suffix != ".svg"]
    assert written
    found = [number for path in written for number in numbers(path)]
    assert found
    assert any(math.isfinite(number) for number in found)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_printed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [name])
    import_module(name).main()
    assert capsys.readouterr().out.count("|") > 10
