"""Releases of weighted rows: the weight stays here, and the certificate says what is left out of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.advisor.scores import coarse
from aegis.errors import PolicyError
from aegis.present.cautions import cautions_of, release_document
from aegis.release.writing import KeptWeight

ROWS = 120
POLICY = {
    "version": 1,
    "label": "y",
    "weight": "w",
    "privacy": {"k": 5, "suppression": 0.2},
    "attributes": {
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}, "suppress"]},
        "town": {"role": "feature"},
    },
}


def table() -> pa.Table:
    draw = np.random.default_rng(0)
    age = draw.integers(20, 60, ROWS)
    columns = {"age": age, "town": draw.choice(list("ab"), ROWS), "y": (age > 38).astype(int)}
    return pa.table({**columns, "w": draw.integers(20, 90, ROWS)})


def test_python_warns_of_all_that_the_command_warns_of() -> None:
    """The command lists what the certificate's page lists, and how the figures were measured."""
    policy = aegis.load_policy(POLICY)
    study = aegis.Study(table(), policy)
    release = study.apply(study.advise())
    notes = release.audit.report.notes
    listed = [text for text in cautions_of(release_document(release, policy)) if text not in notes]
    assert any("does not show the weights" in text for text in listed)
    assert set(release.warnings) == set(listed)


def test_python_warns_of_rows_that_are_unique_and_of_classes_with_one_value() -> None:
    rows = table().append_column("id", pa.array(range(ROWS)))
    town = {"role": "sensitive"}
    attributes = POLICY["attributes"] | {"town": town, "id": {"role": "feature"}}
    study = aegis.Study(rows, POLICY | {"attributes": attributes, "weight": None})
    warned = study.apply(study.advise()).warnings
    assert any("are the only ones with their values in all columns" in text for text in warned)


def test_an_advice_shows_the_utility_of_the_released_rows() -> None:
    advice = aegis.Study(table(), POLICY).advise()
    figure = advice.utility
    assert figure.value != advice.best.score
    assert f"{figure.value:.6g}, {figure.utility_kept:.1f} % kept" in repr(advice)


def test_the_certificate_states_weighted_figures(tmp_path: Path) -> None:
    study = aegis.Study(table(), POLICY)
    advice = study.advise()
    output, certificate = tmp_path / "out.csv", tmp_path / "certificate.json"
    release = study.apply(advice, output, certificate=certificate)
    assert "w" not in aegis.sources.open_table(output).columns
    said = json.loads(certificate.read_text())
    assert said["weight"]["column"] == "w"
    assert said["weight"]["total"] == round(np.sum(table()["w"].to_numpy()) / 100) * 100
    assert 0 < said["weight"]["expected_found"] < ROWS
    assert advice.best.utility is not None
    assert said["utility"]["value"] == pytest.approx(advice.best.utility.value)
    assert release.weight is not None
    checked = aegis.check_certificate(output, certificate)
    assert not checked.mismatches
    assert any(
        "needs the column 'w', which the release does not contain" in what
        for what in checked.unchecked
    )


def test_the_sums_of_a_certificate_tell_no_weight_of_a_suppressed_row() -> None:
    """Of small weights, three digits were the exact sum: who knew all others computed the last one."""
    draw, found, tables = np.random.default_rng(1), 0.0, 100
    for _ in range(tables):
        weights = draw.integers(1, 10, 120)
        others, shown = weights[1:].sum(), weights[3:].sum()
        guesses = [
            KeptWeight("w", others + w, shown, max(w, weights[1:].max())).for_certificate()
            for w in range(1, 10)
        ]
        found += 1 / guesses.count(guesses[weights[0] - 1])
    assert found / tables < 2.5 / 9  # a blind guess is right in 1 of 9


def test_a_certificate_states_no_share_of_sums_that_rounding_changes_much() -> None:
    """With one large weight, 480 of 606 became 0 of 1,000: all of the weight was said to be lost."""
    said = KeptWeight("w", 606, 480, 101).for_certificate()
    assert (said["total"], said["released"], said["suppressed_share"]) == (1000, 0, None)
    said = KeptWeight("w", 60_600, 48_000, 101).for_certificate()
    assert (said["total"], said["released"], said["suppressed_share"]) == (61_000, 48_000, 0.213)


@pytest.mark.parametrize("score", [0.0167832, 0.2167832, 0.8167832])
def test_no_score_of_a_small_table_is_stated_finer_than_one_row_changes_it(score: float) -> None:
    """Small scores had two digits, too, which are steps of 0.001 for one row of 200."""
    steps = {coarse(score + change / 10_000, 200) for change in range(-50, 50)}
    assert len(steps) <= 2


def test_weights_of_persons_do_not_make_rows_unique(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    person = draw.integers(0, 40, ROWS)
    rows = table().append_column("who", pa.array(person)).drop(["w"])
    rows = rows.append_column("w", pa.array(person * 1.5 + 1))
    study = aegis.Study(rows, POLICY | {"person": "who"})
    release = study.apply(study.advise(), tmp_path / "r.parquet")
    shown = pq.read_table(tmp_path / "r.parquet").to_pylist()
    holders: dict[tuple[object, ...], set[int]] = {}
    ages = [{**row, "who": who} for row, who in zip(rows.to_pylist(), person, strict=True)]
    for row in ages:
        masked = f"[{row['age'] // 10 * 10}, {row['age'] // 10 * 10 + 10}["
        holders.setdefault((masked, row["town"], row["y"]), set()).add(int(row["who"]))
    alone = sum(len(holders[row["age"], row["town"], row["y"]]) == 1 for row in shown)
    outside = release.audit.outside
    assert outside is not None
    assert outside.unique_rows == alone
    assert outside.singling is None or "aegis_weight" not in outside.singling.columns


def test_methods_that_group_records_refuse_weights() -> None:
    with pytest.raises(PolicyError, match="A record-level method counts each row once"):
        aegis.anonymize(table(), POLICY, "mondrian")
