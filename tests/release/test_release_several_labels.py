"""Several labels in a release: measured, certified, audited; refused where one label is served."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.advisor.utility import UtilityFigure
from aegis.cli.apply import _facts
from aegis.errors import PolicyError
from aegis.policy import Configuration, Policy, load_policy, policy_mapping
from aegis.release.certified import check_certificate
from aegis.report import render_certificate
from aegis.words import percent

SUPPRESS_Z = {"a": {"bucketize": {"width": 4}}, "z": "suppress"}


def table() -> pa.Table:
    draw = np.random.default_rng(3)
    a, b = draw.integers(0, 8, 300), draw.integers(0, 3, 300)
    return pa.table(
        {
            "a": a,
            "b": ["uvw"[i] for i in b],
            "y": ["rs"[i] for i in (a + draw.integers(0, 5, 300) > 6).astype(int)],
            "z": ["klm"[i] for i in (b + draw.integers(0, 2, 300)) % 3],
            "n": np.round(a + b + draw.normal(0, 1, 300), 2),
        }
    )


def policy(**keys: Any) -> Policy:
    given = {
        "version": 1,
        "labels": ["y", {"column": "z", "weight": 2}, {"column": "n", "kind": "number"}],
        "privacy": {"k": 5, "suppression": 0.1},
        "attributes": {
            "a": {"role": "quasi-identifier", "masks": ["identity", SUPPRESS_Z["a"], "suppress"]},
            "b": {"role": "feature"},
            "z": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        },
    }
    return load_policy({**given, **keys})


def configuration(of: Policy) -> Configuration:
    document = {"b": "identity", **SUPPRESS_Z}
    return load_policy(
        {**policy_mapping(of), "configurations": {"hidden": document}}
    ).configurations["hidden"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    pq.write_table(table(), folder / "t.parquet")
    study = aegis.Study(folder / "t.parquet", policy())
    advice = study.search()
    release = study.apply(advice, folder / "r.parquet", certificate=folder / "c.json")
    assert advice.utility is not None
    assert release.utility is not None
    assert release.utility.to_dict() == advice.utility.to_dict()
    return folder


def test_the_certificate_states_each_label_and_is_true(released: Path) -> None:
    document = json.loads((released / "c.json").read_text())
    assert list(document["utility"]["labels"]) == ["y", "z", "n"]
    check = check_certificate(
        released / "r.parquet",
        released / "c.json",
        policy=policy(),
        original=released / "t.parquet",
    )
    assert check.mismatches == ()
    # The policy of the certificate does as well.
    without = check_certificate(released / "r.parquet", released / "c.json")
    assert without.mismatches == ()


def test_release_and_page_list_the_figures_of_each_label(released: Path, tmp_path: Path) -> None:
    document = json.loads((released / "c.json").read_text())
    figures = UtilityFigure.from_dict(document["utility"], document["input"]["rows"])
    page = html.unescape(render_certificate(document)).replace("\u00a0", " ")
    study = aegis.Study(released / "t.parquet", policy())
    facts = dict(
        _facts(study.apply(study.search(), tmp_path / "o.parquet", certificate=tmp_path / "o.json"))
    )
    for name, figure in figures.labels.items():
        assert (
            f'<dt>Utility kept, {name}</dt><dd class="value">{percent(figure.utility_kept)}<'
            in page
        )
        assert figure.detail in page
        assert facts[f"utility kept: {name}"].startswith(f"{percent(figure.utility_kept)} (")


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "value": lambda d: d["utility"].update(value=0.99),
    "kept of a label": lambda d: d["utility"]["labels"]["y"].update(kept=99.0),
    "value of a label": lambda d: d["utility"]["labels"]["n"].update(value=0.99),
    "a label left out": lambda d: d["utility"]["labels"].pop("z"),
    "no figure": lambda d: d["utility"]["labels"].update(z=3),
    "nothing": lambda d: d.update(utility=None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_figure_of_a_label_that_was_changed_is_found(
    released: Path, tmp_path: Path, name: str
) -> None:
    document = json.loads((released / "c.json").read_text())
    CHANGES[name](document)
    (tmp_path / "c.json").write_text(json.dumps(document))
    check = check_certificate(released / "r.parquet", tmp_path / "c.json")
    assert any(mismatch.what.startswith("utility") for mismatch in check.mismatches)


def test_a_reference_that_was_changed_is_found_in_the_original(
    released: Path, tmp_path: Path
) -> None:
    document = json.loads((released / "c.json").read_text())
    document["utility"]["labels"]["n"]["rmse"] = 7.0
    document["utility"]["labels"]["n"]["reference_rmse"] = 7.0
    (tmp_path / "c.json").write_text(json.dumps(document))
    check = check_certificate(
        released / "r.parquet", tmp_path / "c.json", original=released / "t.parquet"
    )
    named = {mismatch.what for mismatch in check.mismatches}
    assert "utility.labels.n.reference_rmse" in named
    assert "utility.labels.n.rmse" in named


def test_a_label_that_is_hidden_keeps_nothing_and_is_certified(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "t.parquet")
    of = policy(suppressed_columns="leave-out")
    study = aegis.Study(tmp_path / "t.parquet", of)
    listed = study.rank([configuration(of)])
    release = study.apply(listed, tmp_path / "r.parquet", certificate=tmp_path / "c.json")
    assert release.utility is not None
    assert release.utility.labels["z"].utility_kept == 0
    assert "z" not in release.to_arrow().column_names
    assert check_certificate(tmp_path / "r.parquet", tmp_path / "c.json").mismatches == ()


def test_what_serves_one_label_says_so() -> None:
    rows, of = table(), policy()
    with pytest.raises(PolicyError, match=r"record-level release works with one label.*y, z, n"):
        aegis.anonymize(rows, of, "mondrian")
    study = aegis.Study(rows, of)
    for refused in (
        lambda: study.rank(generate_count=2, methods=["mondrian"]),
        lambda: study.rank(generate_count=2, estimate="aegis-1d"),
        lambda: study.protect(level="noise", epsilon=1, delta=1e-6, public=["*"]),
        lambda: study.reconstruct("a"),
    ):
        with pytest.raises(PolicyError, match="works with one label"):
            refused()
