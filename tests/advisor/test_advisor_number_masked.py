"""A number to predict that is masked, or that a row or a column dominates: figures and warnings are true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.advisor import Scorer
from aegis.errors import DataError, PolicyError
from aegis.measures import MEASURES
from aegis.policy import load_policy
from aegis.present.cautions import cautions_of
from aegis.summary import load_bundle, merge, save_bundle, summarize

R2 = MEASURES.get("held-out-r2")
ROWS = 120
ONE_ROW = "of the variance of the number to predict"


def case(seed: int = 0, rows: int = ROWS) -> tuple[pa.Table, dict[str, Any]]:
    draw = np.random.default_rng(seed)
    age, town = draw.integers(20, 60, rows), draw.choice(list("abc"), rows)
    wage = np.round(10 * age + 100 * (town == "b") + draw.normal(0, 50, rows), 1)
    table = pa.table({"age": age, "town": town, "wage": wage})
    policy = {
        "version": 1,
        "label": {"column": "wage", "kind": "number"},
        "privacy": {"k": 3, "suppression": 0.2},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 10}}],
            },
            "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        },
    }
    return table, policy


def with_mask(policy: dict[str, Any], *masks: Any, role: str = "feature") -> dict[str, Any]:
    own = {"role": role, "masks": list(masks)}
    return {**policy, "attributes": {**policy["attributes"], "wage": own}}


def masked_by_hand(table: pa.Table, shown: Any) -> pa.Table:
    numbers = [None if v is None else shown(v) for v in table["wage"].to_pylist()]
    return table.set_column(table.column_names.index("wage"), "wage", pa.array(numbers))


@given(seed=st.integers(0, 1_000), missing=st.booleans())
@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        ({"round": {"step": 100}}, lambda v: 100.0 * np.floor(v / 100 + 0.5)),
        ({"top_code": {"at": 500}}, lambda v: min(v, 500.0)),
        ({"bottom_code": {"at": 400}}, lambda v: max(v, 400.0)),
    ],
)
def test_a_masked_number_is_counted_as_it_is_released(
    mask: Any, shown: Any, seed: int, missing: bool
) -> None:
    table, policy = case(seed)
    if missing:
        some = [None if i % 9 == 0 else v for i, v in enumerate(table["wage"].to_pylist())]
        table = table.set_column(2, "wage", pa.array(some))
    own = summarize(table, with_mask(policy, mask))
    by_hand = summarize(masked_by_hand(table, shown), policy)
    assert own.number == by_hand.number
    assert own.label.ends == by_hand.label.ends
    numbers = np.array(
        [v for v in masked_by_hand(table, shown)["wage"].to_pylist() if v is not None]
    )
    away = (numbers - numbers.mean()) ** 2
    assert own.number is not None
    assert own.number["one_row"] == pytest.approx(away.max() / away.sum(), rel=1e-9)
    first, second = Scorer(own), Scorer(by_hand)
    assert first.value(first.unmasked, R2) == second.value(second.unmasked, R2)


def test_release_certificate_and_evaluation_read_the_masked_number(tmp_path: Path) -> None:
    table, policy = case()
    declared = with_mask(policy, {"round": {"step": 100}})
    study = aegis.Study(table, declared)
    advice = study.advise()
    assert str(advice.require_best().configuration.masks["wage"]) == "round(step=100)"
    file, certificate = tmp_path / "m.parquet", tmp_path / "c.json"
    release = study.apply(advice, file, certificate=certificate)
    numbers = pq.read_table(file)["wage"].to_pylist()
    assert {v % 100 for v in numbers} == {0}
    assert release.utility is not None
    assert advice.utility is not None
    assert release.utility.value == pytest.approx(advice.utility.value, abs=1e-12)
    assert aegis.check_certificate(file, certificate, original=table, policy=declared).passed
    whole = aegis.Study(masked_by_hand(table, lambda v: 100.0 * np.floor(v / 100 + 0.5)), policy)
    assert advice.utility.value == pytest.approx(whole.advise().utility.value, abs=1e-12)


@pytest.mark.wings
def test_models_are_trained_on_the_masked_number() -> None:
    pytest.importorskip("sklearn")
    table, policy = case()
    own = aegis.Study(table, with_mask(policy, {"round": {"step": 100}}))
    by_hand = masked_by_hand(table, lambda v: 100.0 * np.floor(v / 100 + 0.5))
    asked = {"generate_count": 3, "models": ["lr"]}
    first = own.evaluate(**asked).scores
    second = aegis.Study(by_hand, policy).evaluate(**asked).scores
    assert [s.unmasked for s in first] == [s.unmasked for s in second]


@pytest.mark.parametrize(
    ("masks", "role", "problem"),
    [
        (["suppress"], "feature", "shows no number"),
        ([{"quantiles": {"count": 3}}], "feature", "shows no number"),
        ([{"round": {"step": 10}}, {"round": {"step": 50}}], "feature", "has 2 masks"),
        ([{"round": {"step": 10}}], "quasi-identifier", "has the role quasi-identifier"),
    ],
)
def test_a_number_keeps_one_mask_that_shows_a_number(
    masks: list[Any], role: str, problem: str
) -> None:
    _, policy = case()
    with pytest.raises(PolicyError, match=problem):
        load_policy(with_mask(policy, *masks, role=role))


def test_a_number_that_is_masked_to_one_value_is_refused() -> None:
    table, policy = case()
    with pytest.raises(DataError, match=r"is 0 in every row under its mask round\(step=100000\)"):
        summarize(table, with_mask(policy, {"round": {"step": 100_000}}))


def test_one_row_that_holds_the_variance_is_warned_of(tmp_path: Path) -> None:
    table, policy = case()
    numbers = [1e6, *table["wage"].to_pylist()[1:]]
    table = table.set_column(2, "wage", pa.array(numbers))
    study = aegis.Study(table, policy)
    advice = study.advise()
    assert any(ONE_ROW in text for text in advice.warnings)
    file, certificate = tmp_path / "m.parquet", tmp_path / "c.json"
    release = study.apply(advice, file, certificate=certificate)
    assert any(ONE_ROW in text for text in release.warnings)
    assert aegis.check_certificate(file, certificate, original=table, policy=policy).passed
    [label] = [w for w in aegis.init_policy(table, label="wage").warnings if w.startswith("label")]
    assert not any("derived" in text for text in advice.warnings)
    assert "one row holds" in label
    capped = aegis.Study(table, with_mask(policy, {"top_code": {"at": 900}})).advise()
    assert not any(ONE_ROW in text for text in capped.warnings)
    assert capped.utility is not None
    assert capped.utility.value > 0.5


def test_parts_and_bundles_keep_the_ends_of_a_number(tmp_path: Path) -> None:
    table, policy = case()
    whole = summarize(table, policy)
    parts = [summarize(table.slice(0, 70), policy)]
    parts.append(summarize(table.slice(70), policy, like=parts[0]))
    assert merge(*parts).label.ends == whole.label.ends
    save_bundle(whole, tmp_path / "s.aegis")
    assert load_bundle(tmp_path / "s.aegis").number == whole.number
    masked = summarize(table, with_mask(policy, {"round": {"step": 100}}))
    save_bundle(masked, tmp_path / "m.aegis")
    assert load_bundle(tmp_path / "m.aegis").label.mask == masked.label.mask


@pytest.mark.parametrize("copy", [lambda y: 2 * y + 1, np.log])
def test_a_column_derived_from_the_number_is_named(copy: Any) -> None:
    table, policy = case(rows=900)
    table = table.append_column("copy", pa.array(copy(table["wage"].to_numpy())))
    [label] = [w for w in aegis.init_policy(table, label="wage").warnings if w.startswith("label")]
    assert "copy orders the rows as it does" in label
    policy["attributes"]["copy"] = {"role": "feature"}
    advice = aegis.Study(table, policy).advise()
    [named] = [text for text in advice.warnings if " alone explains " in text]
    assert named.startswith("The column copy alone explains ")
    *risks, leak = advice.warnings[:4]
    assert all(" the row" in risk for risk in risks)  # risks to persons come first
    assert leak == named


def test_a_release_and_its_certificate_name_a_column_derived_from_the_number(
    tmp_path: Path,
) -> None:
    table, policy = case(rows=900)
    table = table.append_column("copy", pa.array(2 * table["wage"].to_numpy() + 1))
    policy["attributes"]["copy"] = {"role": "feature"}
    study = aegis.Study(table, policy)
    release = study.apply(study.advise(), tmp_path / "r.parquet", certificate=tmp_path / "c.json")
    stated = json.loads((tmp_path / "c.json").read_text())
    assert set(stated["utility"]["leaks"]) == {"copy"}
    assert any("copy alone explains" in text for text in cautions_of(stated))
    assert not aegis.check_certificate(release.path, tmp_path / "c.json").mismatches


def test_one_of_several_labels_names_a_column_derived_from_it() -> None:
    table, policy = case(rows=900)
    table = table.append_column("copy", pa.array(2 * table["wage"].to_numpy() + 1))
    table = table.append_column("other", pa.array(["a", "b", "c"] * 300))
    policy["attributes"]["copy"] = {"role": "feature"}
    policy["labels"] = [policy.pop("label"), "other"]
    advice = aegis.Study(table, policy).advise()
    [named] = [text for text in advice.warnings if " alone explains " in text]
    assert named.startswith("The column copy alone explains ")


@pytest.mark.parametrize("mask", ["identity", {"quantiles": {"count": 3}}])
def test_of_several_labels_advise_names_what_the_certificate_names(
    mask: Any, tmp_path: Path
) -> None:
    table, policy = case(rows=900)
    grade = np.where(table["wage"].to_numpy() > 420, "high", "low")
    table = table.append_column("copy", pa.array(2 * table["wage"].to_numpy() + 1))
    table = table.append_column("grade", pa.array(grade))
    policy["attributes"]["copy"] = {"role": "feature", "masks": [mask]}
    policy["labels"] = [policy.pop("label"), "grade"]
    study = aegis.Study(table, policy)
    advice = study.advise()
    study.apply(advice, tmp_path / "r.parquet", certificate=tmp_path / "c.json")
    stated = json.loads((tmp_path / "c.json").read_text())
    named = [text for text in advice.warnings if " alone explains " in text]
    assert named == [text for text in cautions_of(stated) if " alone explains " in text]
    assert len(named) == (mask == "identity")


def test_ordinary_columns_are_not_taken_for_derived_ones() -> None:
    table, policy = case()
    draw = np.random.default_rng(1)
    table = table.append_column("noise", pa.array(draw.normal(0, 1, ROWS)))
    policy["attributes"]["noise"] = {"role": "feature"}
    advice = aegis.Study(table, policy).advise()
    assert not any("derived" in text or ONE_ROW in text for text in advice.warnings)
    assert not any("derived" in text for text in aegis.init_policy(table, label="wage").warnings)
