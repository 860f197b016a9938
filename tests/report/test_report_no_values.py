"""A report without values shows no rare value of the table, and no small count of one.

Each column has a rare value that no other text contains. The tests search the whole page for these
values, including the files that it offers for download.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
import pickle
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import aegis
from aegis.policy import load_policy
from aegis.report import render_certificate
from aegis.signing import seal
from aegis.words import Quoting, unquoted

RARE = {"cat": "QQcat", "ward": "QQward", "dose": "QQdose", "label": "QQlabel", "age": "9931"}
ROWS = 400
NULLS = 3


def _table(folder: Path) -> Path:
    draw = random.Random(3)
    rows: list[dict[str, Any]] = [
        {
            "cat": draw.choice(["F10", "F20", "F30"]),
            "sex": draw.choice("MF"),
            "age": draw.randint(20, 69),
            "ward": draw.choice(["north", "south"]),
            "dose": draw.choice(["low", "high", "zero"]),
            "label": draw.choice(["yes", "no"]),
            "other": draw.choice(["a", "b"]),
        }
        for _ in range(ROWS)
    ]
    for place, (name, value) in enumerate(RARE.items()):
        rows[7 * place][name] = value
    for place in range(NULLS):
        rows[100 + place]["dose"] = ""
        rows[150 + place]["label"] = ""
    lines = [",".join(map(str, row.values())) for row in rows]
    path = folder / "table.csv"
    path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    return path


def _policy(**changed: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "cat": {"role": "feature", "masks": ["identity"]},
        "sex": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 20}}]},
        "ward": {"role": "quasi-identifier", "masks": [{"keep_frequent": {"count": 3}}]},
        "dose": {"role": "sensitive", "masks": ["identity"]},
        "other": {"role": "feature", "masks": ["identity"]},
    }
    return {
        "version": 1,
        "label": "label",
        "privacy": {"k": 5, "suppression": 0.03},
        "attributes": attributes | changed.pop("attributes", {}),
        **changed,
    }


_COMPOSED = {"compose": ["identity", {"keep_frequent": {"count": 4}}]}
_FITTED = {
    "cat": {"role": "feature", "masks": ["identity", {"keep_frequent": {"count": 4}}]},
    "age": {"role": "quasi-identifier", "masks": [{"quantiles": {"count": 4}}, "suppress"]},
}
POLICIES: Mapping[str, Mapping[str, Any]] = {
    "plain": _policy(),
    "fitted": _policy(attributes=_FITTED),
    "composed": _policy(attributes={"cat": {"role": "feature", "masks": [_COMPOSED]}}),
    "accuracy": _policy(measure="held-out-accuracy"),
    "diverse": _policy(privacy={"suppression": 0.05, "l_diversity": {"attribute": "dose", "l": 2}}),
    "strict": _policy(privacy={"k": 300, "suppression": 0.0}),
    "labels": {**_policy(), "labels": ["label", "other"], "label": None},
}


def _read(page: str) -> str:
    """Return a page together with the content of the files that it offers."""
    whole = [page]
    for encoded in re.findall(r"base64,([A-Za-z0-9+/=]+)", page):
        try:
            whole.append(base64.b64decode(encoded).decode())
        except (binascii.Error, UnicodeDecodeError):
            continue  # an image
    return "\n".join(whole)


def _quoted(page: str) -> list[str]:
    return [value for value in RARE.values() if value in _read(page)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return _table(tmp_path)


def _study(table: Path, name: str) -> aegis.Study:
    policy = {key: value for key, value in POLICIES[name].items() if value is not None}
    if name == "labels":
        policy["attributes"] = {k: v for k, v in policy["attributes"].items() if k != "other"}
    return aegis.Study(table, load_policy(policy))


@pytest.mark.parametrize("name", POLICIES)
def test_a_report_without_values_quotes_no_rare_value(table: Path, name: str) -> None:
    study = _study(table, name)
    page = study.report(study.advise(explain_best=True), values=False)
    assert _quoted(page) == []
    assert f"{NULLS} null" not in page
    assert f"({NULLS} rows)" not in page
    assert not re.search(rf"\b{NULLS} rows without", page)
    assert f"Rows without a label</dt><dd>{NULLS}<" not in page
    assert f"{ROWS - NULLS} rows" not in page, "with the number of all rows, it tells the others"


def test_the_owner_still_reads_which_value_is_rare(table: Path) -> None:
    study = _study(table, "plain")
    advice = study.advise(explain_best=True)
    assert "QQlabel" in study.report(advice)
    assert any("label = QQlabel has 1 row only" in text for text in advice.warnings)
    page = study.report(advice, values=False)
    assert "A class of label has fewer than 25 rows: the expected metric of models may be" in page
    assert "fewer than 5 null" in page
    assert f"Null counts as a value of dose ({NULLS} rows)" in study.report(advice)


def test_a_report_without_values_states_no_class_size_below_k(table: Path) -> None:
    study = _study(table, "plain")
    advice = study.advise()
    assert advice.privacy is not None
    before = advice.privacy.before
    assert before is not None
    assert before.k == 1
    few = [b for b in before.class_size_histogram if b.size in ("1", "2", "3-4") and b.rows]
    assert 0 < before.uniques < 400
    assert few
    full, page = study.report(advice), study.report(advice, values=False)
    sizes = '<tr><th scope="row">{}</th>'
    for size in ("1", "2", "3–4"):
        assert sizes.format(size) in full
        assert sizes.format(size) not in page
    assert sizes.format("1–4") in page
    assert ">1 with the finest masks<" in full
    assert ">fewer than 5 with the finest masks<" in page
    assert "above 20" in page


def test_few_unique_rows_are_not_counted() -> None:
    sizes = [1, 1, 1, *[7] * 50]
    ids = [place for place, size in enumerate(sizes) for _ in range(size)]
    table = {"sex": [f"c{i}" for i in ids], "label": ["ny"[i % 2] for i in range(len(ids))]}
    policy = {
        "version": 1,
        "label": "label",
        "privacy": {"k": 5, "suppression": 0.03},
        "attributes": {"sex": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
    study = aegis.Study(pa.table(table), policy)
    advice = study.advise()
    assert ">3 before masking<" in study.report(advice)
    page = study.report(advice, values=False)
    assert ">3 before masking<" not in page
    assert "3\n(" not in page


def test_the_report_of_an_advice_says_for_whom_it_is(table: Path, tmp_path: Path) -> None:
    study = _study(table, "plain")
    head = "do not pass it on"
    for values in (True, False):
        page = study.report(study.advise(), values=values)
        assert head in page.partition("</header>")[0]
    paper = tmp_path / "c.json"
    study.apply(study.advise(), tmp_path / "m.csv", certificate=paper)
    assert head not in render_certificate(paper)


def test_the_configuration_without_values_can_be_applied(table: Path) -> None:
    study = _study(table, "fitted")
    page = study.report(study.advise(), values=False)
    assert "learns them again" in page
    configuration = _read(page).partition("configurations:")[2]
    assert "keep_frequent" in configuration
    assert "edges:" not in configuration.partition("version:")[0]


@pytest.mark.wings
def test_a_report_on_trained_models_quotes_no_rare_value(table: Path) -> None:
    pytest.importorskip("sklearn")
    study = _study(table, "plain")
    evaluation = study.evaluate(models=["lr"], splits=2)
    assert _quoted(study.report(evaluation, values=False)) == []


@pytest.mark.wings
def test_a_report_on_record_level_releases_quotes_no_rare_value(table: Path) -> None:
    study = _study(table, "plain")
    assert _quoted(study.report(study.advise(methods=["mondrian"]), values=False)) == []


def test_the_page_of_a_release_quotes_no_lost_class(table: Path, tmp_path: Path) -> None:
    study = _study(table, "plain")
    paper = tmp_path / "c.json"
    study.apply(study.advise(), tmp_path / "m.csv", certificate=paper)
    shown = (tmp_path / "m.csv").read_text()
    hidden = [value for value in RARE.values() if value not in shown]
    assert hidden
    assert not [v for v in hidden if v in _read(render_certificate(paper)) and v != "QQward"]


def test_a_quoting_sentence_survives_copies() -> None:
    said = Quoting("x = HIV has 1 row", "x has a rare value")
    for copied in (copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert copied == said
        assert unquoted(copied) == "x has a rare value"


def test_a_certificate_states_only_how_many_classes_vanish(tmp_path: Path) -> None:
    rows = [f"{'MF'[i % 2]},{'ab'[i // 2 % 2]}" for i in range(60)] + ["X,QQlabel"]
    table = tmp_path / "t.csv"
    table.write_text("sex,label\n" + "\n".join(rows) + "\n")
    policy = {
        "version": 1,
        "label": "label",
        "privacy": {"k": 5, "suppression": 0.05},
        "attributes": {"sex": {"role": "quasi-identifier", "masks": ["identity"]}},
    }
    study, paper, masked = aegis.Study(table, policy), tmp_path / "c.json", tmp_path / "m.csv"
    release = study.apply(study.advise(), masked, certificate=paper)
    assert release.utility is not None
    assert release.utility.lost_classes == {"QQlabel": 1}
    assert "QQlabel" not in paper.read_text()
    assert '"lost_classes": 1' in paper.read_text()
    assert "1 class vanishes from the label. " in render_certificate(paper)
    assert any("QQlabel (1 row)" in text for text in release.warnings)
    check = aegis.check_certificate(masked, paper, original=table)
    assert check.passed, list(map(str, check.mismatches))
    forged = json.loads(paper.read_text())
    forged["utility"]["lost_classes"] = 2
    named = aegis.check_certificate(masked, seal(forged), original=table).mismatches
    assert "utility.lost_classes" in {each.what for each in named}
