"""A label that is a feature under one mask: its ranges are the classes, and what a release shows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import aegis
from aegis.errors import PolicyError
from aegis.masks import parse_mask
from aegis.release import check_certificate

ROWS = 1338
MOST = 1024
"""Classes that a label can have at most: more values than that have no classes of their own."""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = random.Random(5)
    age = [draw.randrange(18, 65) for _ in range(ROWS)]
    return pa.table(
        {
            "age": age,
            "sex": [draw.choice("fm") for _ in range(ROWS)],
            "smoker": [draw.choice(["no", "no", "yes"]) for _ in range(ROWS)],
            "charges": [round(a * 100 + draw.lognormvariate(7, 0.7), 4) for a in age],
        }
    )


def policy(**entry: Any) -> dict[str, Any]:
    masks = [{"bucketize": {"width": width}} for width in (5, 10, 20)]
    return {
        "version": 1,
        "label": "charges",
        "privacy": {"k": 5, "suppression": 0.02},
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": masks},
            "sex": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
            "smoker": {"role": "feature"},
            "charges": {"role": "feature", "masks": [{"quantiles": {"count": 5}}], **entry},
        },
    }


def shown(path: Path) -> set[str]:
    return set(pa.csv.read_csv(path)["charges"].to_pylist())


def test_the_release_shows_the_ranges_that_are_scored(table: pa.Table, tmp_path: Path) -> None:
    assert len(set(table["charges"].to_pylist())) > MOST
    study = aegis.Study(table, policy())
    assert len(study.summary.label.classes) == 5
    best = study.search()
    assert best.measure == "held-out-auc"
    assert best.best is not None
    assert str(best.best.configuration.masks["charges"]).startswith("quantiles(count=5, edges=[")
    file, certificate = tmp_path / "m.csv", tmp_path / "c.json"
    released = study.apply(best, file, certificate=certificate)
    assert shown(file) == set(study.summary.label.classes)
    document = json.loads(certificate.read_text())
    mask = best.best.configuration.masks["charges"]
    assert document["configuration"]["masks"]["charges"] == mask.spec()
    check = check_certificate(file, document, original=table, policy=policy())  # type: ignore[arg-type]
    assert check.passed, list(map(str, check.mismatches))
    assert released.utility is not None
    assert released.utility.value == pytest.approx(best.best.utility.value)  # type: ignore[union-attr]
    assert released.audit.outside is not None
    assert not released.audit.outside.near_keys


def test_a_configuration_without_the_label_gets_its_one_mask(
    table: pa.Table, tmp_path: Path
) -> None:
    masks = {
        "age": parse_mask({"bucketize": {"width": 20}}),
        "sex": parse_mask("identity"),
        "smoker": parse_mask("identity"),
    }
    listed = aegis.Configuration("coarse", masks)
    study = aegis.Study(table, policy())
    study.apply(listed, tmp_path / "m.csv", certificate=tmp_path / "c.json")
    assert shown(tmp_path / "m.csv") == set(study.summary.label.classes)
    document = json.loads((tmp_path / "c.json").read_text())
    assert check_certificate(tmp_path / "m.csv", document).passed
    assert "quantiles" in document["configuration"]["masks"]["charges"]


def test_a_summary_advises_the_same(table: pa.Table) -> None:
    study = aegis.Study(table, policy())
    from_summary = aegis.Study(study.summary, policy()).search()
    found = study.search()
    assert found.best is not None
    assert from_summary.best is not None
    assert from_summary.best.configuration == found.best.configuration


def test_records_are_grouped_beside_the_ranges(table: pa.Table, tmp_path: Path) -> None:
    study = aegis.Study(table, policy())
    study.anonymize("mondrian", output=tmp_path / "m.csv", certificate=tmp_path / "c.json")
    assert shown(tmp_path / "m.csv") == set(study.summary.label.classes)


def test_several_masks_leave_a_choice_among_classes_as_they_are(table: pa.Table) -> None:
    """The search chooses among them, so that the classes are the values: few enough here."""
    few = table.slice(0, 300)
    masks = [{"quantiles": {"count": 5}}, {"quantiles": {"count": 3}}]
    summary = aegis.summarize(few, policy(masks=masks))
    assert len(summary.label.classes) == len(set(few["charges"].to_pylist()))
    assert summary.label_attribute is not None


def test_a_protected_summary_refuses_a_masked_label(table: pa.Table) -> None:
    from aegis.safe.protect import protect

    with pytest.raises(PolicyError, match="has candidate masks"):
        protect(table, policy(), level="noise", epsilon=1, delta=1e-6)
