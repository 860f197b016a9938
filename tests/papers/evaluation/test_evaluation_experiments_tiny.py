"""Scripts of the experiments run to their end, with tiny parameters, and write figures that are numbers.

The tables are samples: of German Credit, Air Quality and Adult, and of German Credit under the label
that a public table has. What a script makes of earlier results it gets from the runs before it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from aegis.anonymizers import Recipe
from aegis.cli.main import run as aegis
from aegis.papers.evaluation.training import MODELS, Model
from experiment_modules import FOLDER

ROWS = 100
TABLES = (
    "mo_obam_f1_tables",
    "mo_obam_members_tables",
    "mo_obam_tables",
    "numbers_tables",
    "paper_tables",
    "protected_tables",
    "public_tables",
    "selection_tables",
)
"""Scripts that print tables of the documents from the summaries in the tree."""


SMALL = {
    "HistGradientBoostingClassifier": {"max_iter": 5, "max_leaf_nodes": 7},
    "HistGradientBoostingRegressor": {"max_iter": 5, "max_leaf_nodes": 7},
    "MLPClassifier": {"hidden_layer_sizes": (10,), "max_iter": 20},
    "RandomForestClassifier": {"n_estimators": 5},
    "RandomForestRegressor": {"n_estimators": 5},
}
"""What makes a model quick to train, by its class."""
COLUMNS = 4
"""Most columns of a table besides those of which somebody may be known."""

FEW_MASKS = Path(__file__).with_name("few_masks.yaml")
"""A policy for the sample of Adult, with few masks."""


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


def _two_folds(number: int, **own: Any) -> KFold:
    """Return at most two folds: each trains every model once more."""
    return KFold(min(number, 2), **own)


_CHOSEN = ("selection_quality", "")
_FEW = {"CLUSTERS": {"German": 3, "Adult": 3}}
_PUBLIC = ("selection_public", "")
_CONFIRMED = ("selection_quality", " --suffix _confirmed")
_SPLITS = {"RUNS": ((("lr", "nb"), 1), (("gbdt-60", "rf-50"), 1)), "COUNT": 3}
_MASKS = (({"equal_width": {"count": 3}},), ({"erase_digits": {"digits": 1}},), ("suppress",))
RUNS: Mapping[str, Run] = {
    "adult_ranking": Run("--seeds 1 --splits 1", {"COUNT": 5, "POLICY": FEW_MASKS}),
    "arx_optima": Run(
        "--splits 2 --models nb",
        {"LIMITS": {2: 0.02}, "OBJECTIVES": ("adjusted-pillai",)},
    ),
    "balanced_trace": Run("--data attrition", _SPLITS),
    "calibration": Run("--data attrition --stores {folder}", {**_SPLITS, "SPLITS": 2, "FEW": 1}),
    "calibration_errors": Run("--data attrition", {**_SPLITS, "SPLITS": 2}),
    "codings": Run(
        "--data German",
        {"RANGES": (16,), "WEIGHTS": (0.3,), "COUNT": 3},
        after=(_CHOSEN, _CONFIRMED),
    ),
    "confirmation": Run("--data telco --stores {folder}", _SPLITS),
    "figure_10_as_designed": Run("", {"ROWS": 500, "BINS": (2, 5), "DOMAINS": (50, 60)}),
    "figure_10_domain": Run("--data German", {"BUCKETS": (2, 5), "DOMAINS": (12, 24)}),
    "figure_10_explained": Run("", {"ROWS": 500, "PER_VALUE": 2, "SWEEPS": 40}),
    "figure_11_parts": Run(
        "--rows 400 --attributes 3 --configurations 2",
        {"ROWS": 400, "ATTRIBUTES": 3, "CONFIGURATIONS": 2},
    ),
    "figure_11_scalability": Run(
        "--rows 300 --attributes 5 --configurations 2 --store {folder}/store.jsonl",
        {"ATTRIBUTES": 4, "CONFIGURATIONS": 3, "NARROW": 200, "MIDDLE": 250, "MANY": 4},
    ),
    "figure_5_accuracy": Run("--data German --seeds 1 --count 3 --models lr"),
    "figure_5_time": Run("--data German --count 3 --trained 1", {"MODELS": ("lr",)}),
    "figure_6a_mlp": Run("--data German --rows 200 --count 3"),
    "figure_6b_k_anonymous": Run("--data German --models lr --k 2 --count 3", {"DRAWN": 300}),
    "figure_7_configurations": Run("--data AQ", {"COUNT": 2}),
    "figure_7_reconstruction": Run(
        "--data German", {"SETTINGS": {"histogram": "histogram known"}, "_NUMERIC": _MASKS}
    ),
    "figure_8_histogram": Run("--data German --count 3"),
    "figure_8a_time": Run("--data AQ", {"COUNT": 3}),
    "figure_9_as_designed": Run(
        "--data AQ", {"COUNT": 3, "SHARES": (0.5,), "CONFIGURATIONS": (2,)}
    ),
    "figure_9_parameters": Run(
        "",
        {
            **{"SWEEPS": (1, 2), "TOLERANCES": (1e-2,), "SHARES": (0.3,), "ROUNDINGS": 2},
            **{"PLACED": 3, "FITTED": ("AQ",)},
        },
    ),
    "hybrid": Run("--k 5 --trees 2", {"EPSILONS": (1.0,)}),
    "hybrid_figures": Run("--part k,steps", {"KS": (5,), "BESIDE": (5,), "BUDGETS": (1.0,)}),
    "interactions": Run(
        "--data attrition --stores {folder}",
        {"COUNT": 3, "TREES": ((("gbdt-60", "rf-50"), 2),)},
    ),
    "merits": Run("--data attrition --stores {folder}", _SPLITS, after=(_PUBLIC,)),
    "mo_obam": Run("--data German --part grid", {"GRID": {"German": (3,)}, **_FEW}),
    "mo_obam_coding": Run("--splits 1", _FEW),
    "mo_obam_f1": Run("--part German --models nb --splits 2 --slow-splits 1", {**_FEW, "KS": (3,)}),
    "mo_obam_gap": Run("--seeds 1", {"SIZES": ((8, 2, 3),), "WEIGHTS": (0.0, 1.0)}),
    "mo_obam_members": Run("", {**_FEW, "KS": (5,), "STARTS": 1}),
    "mo_obam_members_adult": Run("", {**_FEW, "KS": (5,)}),
    "mo_obam_peer": Run(
        "",
        {
            "CLUSTERS": {"German": 5},
            "METHODS": {"mo-obam": {"weight": 1e-4, "scaled": False, "starts": 1}},
            "GREATEST": 5,
            "PROGRAM": {("German", 5, 5): {"il": 99.0, "at_risk_0.1": 0.0}},
            "COMPARED": ("il", "at_risk_0.1"),
        },
    ),
    "mo_obam_truncated": Run("", {**_FEW, "KS": (5,)}),
    "new_tables": Run(
        "{folder} Stranger --configurations 2",
        {"TABLES": {"Stranger": ("bought", [])}, "SPLITS": 2},
    ),
    "numbers_to_predict": Run("{folder} Wage --rows 60 --configurations 1", {"KFold": _two_folds}),
    "optima_public": Run(
        "--data attrition --stores {folder}",
        {
            **_SPLITS,
            "QUASI": {"attrition": ("attribute_01", "attribute_04")},
            "OBJECTIVES": {"trace": None},
            "METHODS": ("mondrian",),
            "RULES": {"k = 5, 2 %": (5, 0.02)},
        },
    ),
    "protected_summaries": Run(
        "--sets german --draws 1", {"EPSILONS": (50.0,), "HALVES": 1, "COUNT": 4}
    ),
    "protected_uniform": Run(
        "--sets german --draws 1 --count 3", {"EPSILONS": (50.0,), "SAMPLES": 1}
    ),
    "record_scores": Run("--data German", after=(("records_or_masks", ""),)),
    "records_or_masks": Run(
        "--data German",
        {
            "METHODS": {"German": (Recipe("mondrian"),)},
            "MODELS": {"German": ("lr", "nb")},
            "SPLITS": {"German": 1},
        },
    ),
    "search_vs_random": Run("--random 20 --best 1 --splits 2", {"POLICY": FEW_MASKS}),
    "selection_public": Run("--data attrition --stores {folder}", _SPLITS),
    "shape_of_scores": Run("--data attrition --stores {folder}", _SPLITS, after=(_PUBLIC,)),
    "stated_range": Run("{folder} --tables 1"),
    "strangers": Run(
        "{folder} Stranger --drawn 10",
        {"TABLES": {"Stranger": ("bought", ["number"])}, "RANDOM": 2},
    ),
    "penalties": Run("--data German", after=(_CHOSEN,)),
    "sampling_labels": Run("--count 3"),
    "selection_quality": Run("--data German --seeds 1 --models lr --splits 1", {"COUNT": 3}),
    "theorem_1": Run("--count 2"),
}


MEASURED = [
    {
        **{"rows": rows, "attributes": 4, "configurations": number, "levels": 128},
        **{"seconds": 2.0, "summarise_seconds": 1.5, "advise_seconds": 0.5},
        **{"processor_seconds": 1.0, "measure": "held-out-auc", "ranked": number},
        **{"sampled": False, "peak_mb": 100.0, "load": 1.0},
    }
    for rows, number in ((300, 3), (250, 2))
]
"""Measurements of Figure 11 from an earlier run: only what they lack is measured."""
EARLIER = {earlier for own in RUNS.values() for earlier, _ in own.after}
"""Scripts that run before others."""
DONE: dict[tuple[str, str], dict[str, bytes]] = {}
"""Their results, by file: several others read them."""


def sample(table: pa.Table, rows: int = ROWS) -> pa.Table:
    """Return every so many-th row."""
    step = max(table.num_rows // rows, 1)
    return table.take(pa.array(range(0, table.num_rows, step)))


def narrow(own: Any, table: pa.Table) -> pa.Table:
    """Return the label, the quasi-identifiers and the first other columns."""
    kept = {own.label, *own.identifiers, *own.quasi_identifiers, *table.column_names[:COLUMNS]}
    return table.select([name for name in table.column_names if name in kept])


def stranger(draw: np.random.Generator, rows: int) -> pa.Table:
    """Return a table of persons: a key, two quasi-identifiers and a label that follows the age."""
    age = draw.integers(20, 70, rows)
    bought = np.where(age + draw.normal(0, 10, rows) > 45, "yes", "no")
    town = draw.choice(["north", "south", "west"], rows)
    return pa.table({"number": range(rows), "age": age, "town": town, "bought": bought})


def modules() -> list[ModuleType]:
    """Return the modules of the experiments that are loaded."""
    place = f"{FOLDER}{os.sep}"
    found = [m for m in sys.modules.values() if str(getattr(m, "__file__", "")).startswith(place)]
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
    draw = np.random.default_rng(0)
    wage = {"logwage": draw.normal(size=150), "age": draw.integers(20, 60, 150)}
    write_csv(pa.table(wage), tmp_path / "Wage.csv")
    write_csv(stranger(draw, 400), tmp_path / "Stranger.csv")
    (tmp_path / "store.jsonl").write_text("".join(json.dumps(own) + "\n" for own in MEASURED))
    held = {
        name: replace(own, read=lambda own=own: narrow(own, sample(own.read())))
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
    results = folder / "results"
    results.mkdir(exist_ok=True)
    constants = dict(asked.constants)
    for earlier in asked.after:
        constants = {**RUNS[earlier[0]].constants, **constants}
        if earlier not in DONE:
            made = run(earlier[0], folder, monkeypatch, earlier[1])
            DONE[earlier] = {path.name: path.read_bytes() for path in made}
        for file, content in DONE[earlier].items():
            (results / file).write_bytes(content)
    script = import_module(name)  # by its own name, as it may register what none may register twice
    for model in MODELS:
        monkeypatch.setitem(MODELS._entries, model.name, quick(model))
    here = {
        "RESULTS": results,
        "SUMMARIES": folder / "summaries",
        "ADULT": folder / "adult.parquet",
    }
    for module in modules():
        readers = {name: getattr(module, name, None) for name in ("german", "adult")}
        sampled = {
            name: lambda own=own: sample(own()) for name, own in readers.items() if callable(own)
        }
        for constant, value in {**here, **sampled, **constants}.items():
            if hasattr(module, constant) and not (
                constant in here and not isinstance(getattr(module, constant), Path)
            ):
                monkeypatch.setattr(module, constant, value)
    before = set(results.iterdir())
    monkeypatch.setattr(
        sys, "argv", [name, *(asked.arguments + more).format(folder=folder).split()]
    )
    monkeypatch.setattr("subprocess.run", in_this_process)
    with threadpool_limits(1):  # threads that wait for each other take long on a busy machine
        script.main()
    written = {path for path in set(results.iterdir()) - before if path.suffix != ".svg"}
    assert any(math.isfinite(number) for path in written for number in numbers(path)), name
    return written


def in_this_process(words: Sequence[str], *, check: bool = True, **_: Any) -> SimpleNamespace:
    """Run a command of Aegis as a process would, without loading Aegis again."""
    written = io.StringIO()
    with redirect_stdout(written):
        code = aegis(words[1:])
    assert code == 0 or not check, words
    return SimpleNamespace(stdout=written.getvalue(), returncode=code)


def quick(model: Model) -> Model:
    """Return a model that is trained in no time."""
    own = SMALL.get(model.home.partition(":")[2], {})
    regressor = model.regressor and quick(model.regressor)
    return replace(model, settings={**model.settings, **own}, regressor=regressor)


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


@pytest.mark.parametrize("name", [name for name in RUNS if name not in EARLIER])
def test_a_script_runs(name: str, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(name, small, monkeypatch)


def test_what_is_expected_is_drawn_next_to_what_was_trained(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = import_module("calibration_plot")
    figures = {name: [0.7, 0.8] for name in ("trained", *plot.PANELS)}
    drawn = pa.table({"data": ["churn", "stroke"], **figures})
    write_csv(drawn, small / "shape_of_scores.csv")
    monkeypatch.setattr(plot, "result", lambda file: small / file)
    monkeypatch.setattr(plot, "ROOT", small)
    (small / "docs" / "images").mkdir(parents=True)
    plot.main()
    assert (small / "docs" / "images" / "calibration.png").stat().st_size > 10_000


def test_what_a_rule_gains_is_drawn_by_table(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = import_module("confirmation_plot")
    rows = [
        {"chooser": chooser, "data": name, "model": model, "spearman": 0.5 + gain}
        for name in list(plot.TABLES)[:2]
        for model in plot.MODELS
        for chooser, gain in ((plot.DEFAULT, 0.0), (plot.RULE, 0.25))
    ]
    write_csv(pa.Table.from_pylist(rows), small / "confirmation.csv")
    monkeypatch.setattr(plot, "result", lambda file: small / file)
    monkeypatch.setattr(import_module("common"), "RESULTS", small / "results")
    plot.main()
    assert (small / "results" / "confirmation.svg").exists()
    assert "2 tables: +0.250" in capsys.readouterr().out


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_printed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [name])
    import_module(name).main()
    assert capsys.readouterr().out.count("|") > 10
