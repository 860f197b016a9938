"""Several labels in a survey: each is counted with weights as if it were the only one."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.advisor import Scorer
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.several import scorer_of
from aegis.errors import DataError, PolicyError
from aegis.measures import MEASURES
from aegis.policy import load_policy
from aegis.summary import load_bundle, merge, save_bundle, summarize

ROWS = 160


def table(seed: int, weights: Any = None) -> pa.Table:
    draw = np.random.default_rng(seed)
    age, town = draw.integers(20, 60, ROWS), draw.choice(list("abc"), ROWS)
    sick = np.where(age + draw.normal(0, 12, ROWS) > 42, "yes", "no")
    pay = np.round(8 * age + 90 * (town == "b") + draw.normal(0, 60, ROWS))
    own = draw.integers(1, 5, ROWS) if weights is None else weights
    columns = {"age": age, "town": town, "sick": sick, "pay": pay, "w": pa.array(own)}
    return pa.table(columns)


def policy(*labels: Any, **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "labels": list(labels or ("sick", {"column": "pay", "kind": "number", "weight": 2})),
        "weight": "w",
        "privacy": {"k": 3, "suppression": 0.2},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 10}}, "suppress"],
            },
            "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        },
        **more,
    }


def alone(label: Any) -> dict[str, Any]:
    return {**{k: v for k, v in policy().items() if k != "labels"}, "label": label}


@given(seed=st.integers(0, 500))
def test_each_label_is_counted_as_if_it_were_the_only_one(seed: int) -> None:
    rows = table(seed)
    several = summarize(rows, policy()).several
    assert several is not None
    for task, label in zip(
        several.tasks, ("sick", {"column": "pay", "kind": "number"}), strict=True
    ):
        single = summarize(rows, alone(label))
        assert task.summary.number == single.number
        assert task.summary.label.weighted.tolist() == single.label.weighted.tolist()
        for one, two in zip(task.summary.pairs.atom_counts, single.pairs.atom_counts, strict=True):
            assert one.tolist() == two.tolist()
        first, second = Scorer(task.summary), Scorer(single)
        measure = MEASURES.get(single.label.kind.default_measure)
        for one, two in zip(_choices(first), _choices(second), strict=True):
            assert first.value(one, measure) == pytest.approx(second.value(two, measure), abs=1e-12)


def _choices(scorer: Scorer) -> list[dict[str, Any]]:
    attributes = scorer.summary.attributes
    return [
        dict(zip(attributes, own, strict=True))
        for own in product(*(a.candidates for a in attributes.values()))
    ]


@pytest.mark.parametrize("serve", ["mean", "worst"])
def test_the_best_is_that_of_all_combinations(serve: str) -> None:
    rows, declared = table(3), policy(serve=serve, measure="adjusted-pillai")
    study = aegis.Study(rows, declared)
    advice = study.search(prefer="score")
    summary = summarize(rows, declared)
    scorer, plan = scorer_of(summary), PrivacyPlan(summary, study.policy.privacy)
    measure = MEASURES.get(f"share-kept({serve})")
    scores = [
        scorer.value(choice, measure)
        for choice in _choices(scorer)
        if plan.check(choice).admissible
    ]
    assert advice.optimal
    assert advice.ranking[0].score == pytest.approx(max(scores), abs=1e-12)


def test_whole_weights_are_repeated_rows() -> None:
    rows = table(5, weights=[2] * ROWS)
    doubled = summarize(rows.take(np.repeat(np.arange(ROWS), 2)), {**policy(), "weight": None})
    own = summarize(rows, policy())
    assert own.several is not None
    assert doubled.several is not None
    for one, two in zip(own.several.tasks, doubled.several.tasks, strict=True):
        for first, second in zip(
            one.summary.pairs.atom_counts, two.summary.pairs.atom_counts, strict=True
        ):
            assert first.tolist() == second.tolist()


def test_release_and_certificate_agree_for_each_label(tmp_path: Path) -> None:
    rows = table(7)
    study = aegis.Study(rows, policy())
    advice = study.advise()
    file, certificate = tmp_path / "m.parquet", tmp_path / "c.json"
    release = study.apply(advice, file, certificate=certificate)
    assert advice.utility is not None
    assert release.utility is not None
    for name, own in advice.utility.labels.items():
        assert release.utility.labels[name].value == pytest.approx(own.value, abs=1e-12)
    assert aegis.check_certificate(file, certificate, original=rows, policy=policy()).passed


def test_parts_and_bundles_add_up(tmp_path: Path) -> None:
    rows = table(9)
    whole = summarize(rows, policy())
    first = summarize(rows.slice(0, 90), policy())
    merged = merge(first, summarize(rows.slice(90), policy(), like=first))
    save_bundle(merged, tmp_path / "s.aegis")
    loaded = load_bundle(tmp_path / "s.aegis")
    assert whole.several is not None
    assert loaded.several is not None
    for one, two in zip(whole.several.tasks, loaded.several.tasks, strict=True):
        assert one.summary.label.weighted.sum() == two.summary.label.weighted.sum()
        assert one.summary.weights == two.summary.weights


@pytest.mark.wings
def test_models_of_each_label_are_weighted() -> None:
    pytest.importorskip("sklearn")
    rows = table(11)
    whole = aegis.Study(rows, policy()).evaluate(generate_count=3, models=["lr"])
    single = aegis.Study(rows, alone({"column": "pay", "kind": "number"})).evaluate(
        generate_count=3, models=["lr"]
    )
    assert [s.unmasked for s in whole["pay"].scores] == [s.unmasked for s in single.scores]


def test_a_label_is_no_weight() -> None:
    with pytest.raises(PolicyError, match="'w' is the label and is the weight of a row"):
        load_policy(policy("sick", {"column": "w", "kind": "number"}))


def test_the_first_row_whose_weight_is_no_number_is_named(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    lines = ["age,town,sick,pay,w"] + [
        f"30,a,{'yes' if i % 2 else 'no'},{i},1.5" for i in range(40)
    ]
    lines[8] = "30,a,yes,7,many"
    lines[20] = "30,a,yes,7,few"
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match="row 8 is 'many', which is not a number"):
        summarize(file, policy())
