"""A table without a label: association among all columns, against rows and every combination."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from advisor_scores import mean_contingency

import aegis
from advisor_support import AGE, TREE, ZIP, all_choices, masked_columns, random_rows, table_of
from aegis.advisor import Scorer
from aegis.advisor.search.objectives import Pairwise
from aegis.errors import PolicyError
from aegis.measures import MEASURES
from aegis.policy import NO_LABEL, Policy, dump_policy, load_policy
from aegis.summary import Summary, load_bundle, save_bundle, summarize
from search_support import assert_bounded, assert_proves_best, searcher_of

MEASURE = MEASURES.get("adjusted-contingency")
NOISE = {"randomised_response": {"keep": 0.7}}


def policy_of(**changes: Any) -> Policy:
    return load_policy(
        {
            "version": 1,
            "privacy": {"k": 3, "suppression": 0.1},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": AGE},
                "zip": {"role": "quasi-identifier", "masks": ZIP, "hierarchy": {"all": TREE}},
                "pay": {"role": "feature", "masks": ["identity", "suppress"]},
                "ill": {"role": "sensitive"},
                "y": {"role": "feature", "masks": ["identity", "suppress"]},
            },
        }
        | changes
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return table_of(random_rows(7, 80))


@pytest.fixture(scope="module")
def summary(table: pa.Table) -> Summary:
    return summarize(table, policy_of())


def test_a_score_is_that_of_the_rows(table: pa.Table, summary: Summary) -> None:
    scorer = Scorer(summary)
    for choice in all_choices(summary)[::7]:
        columns = list(masked_columns(table, choice).values())
        wanted = mean_contingency(list(combinations(columns, 2)))
        assert scorer.value(choice, MEASURE) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("rule", [{"k": 3}, {"k": 4, "suppression": 0.15}, {"k": 30}])
def test_the_search_proves_the_best_of_all(
    table: pa.Table, summary: Summary, rule: dict[str, Any]
) -> None:
    searcher = searcher_of(summary, MEASURE, rule)
    assert isinstance(searcher.objective, Pairwise)
    assert assert_proves_best(searcher, summary, MEASURE) < len(all_choices(summary))


@pytest.mark.parametrize("columns", [["age", "zip", "y"], ["age", "zip", "pay", "ill", "y"]])
def test_a_box_is_bounded_by_the_best_in_it(table: pa.Table, columns: list[str]) -> None:
    kept = {n: a for n, a in policy_of().attributes.items() if n in columns}
    summary = summarize(table.select(columns), replace(policy_of(), attributes=kept))
    assert_bounded(searcher_of(summary, MEASURE, {"k": 2}).objective, boxes=60)


def test_noise_leaves_fewer_values_to_be_told_apart(table: pa.Table) -> None:
    policy = policy_of(
        attributes={
            "ill": {"role": "feature", "masks": ["identity", NOISE, "suppress"]},
            "zip": {"role": "feature", "masks": ["identity"]},
        }
    )
    summary = summarize(table, policy)
    scorer = Scorer(summary)
    values = {
        str(c.declared): scorer.value({**scorer.unmasked, "ill": c}, MEASURE)
        for c in summary.attributes["ill"].candidates
    }
    plain, noisy, hidden = values.values()
    assert hidden == 0
    assert min(plain, 0) <= noisy <= max(plain, 0)


def test_advice_release_certificate_and_audit(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "t.parquet")
    study = aegis.Study(tmp_path / "t.parquet", policy_of(measure=MEASURE.name))
    advice = study.advise()
    assert advice.best is not None
    assert (advice.measure, advice.optimal) == (MEASURE.name, True)
    assert advice.summary["label"] is None
    assert 0 < (advice.best.utility_kept or 0) <= 100
    release = study.apply(advice, tmp_path / "out.parquet", certificate=tmp_path / "c.json")
    written = pq.read_table(tmp_path / "out.parquet")
    assert set(written.column_names) == set(table.column_names)
    columns = list(written.to_pydict().values())
    assert release.utility is not None
    assert release.utility.value == pytest.approx(
        mean_contingency(list(combinations(columns, 2))), abs=1e-12
    )
    assert study.rank(generate_count=5).measure == MEASURE.name


def test_record_level_methods_are_ranked_beside(table: pa.Table) -> None:
    policy = policy_of(anonymizers=["mondrian"])
    advice = aegis.Study(table, policy).rank(generate_count=3)
    assert any(one.method is not None and one.utility_kept for one in advice.ranking)


def test_policy_and_summary_are_kept_without_a_label(
    table: pa.Table, summary: Summary, tmp_path: Path
) -> None:
    policy = policy_of()
    assert not policy.label
    assert policy.label == NO_LABEL
    path = tmp_path / "policy.yaml"
    path.write_text(dump_policy(policy))
    assert "label" not in path.read_text()
    assert load_policy(path) == policy
    save_bundle(summary, tmp_path / "t.aegis")
    again = load_bundle(tmp_path / "t.aegis")
    choice = Scorer(again).unmasked
    assert Scorer(again).value(choice, MEASURE) == pytest.approx(
        Scorer(summary).value(Scorer(summary).unmasked, MEASURE), abs=1e-12
    )
    half = summarize(table.slice(0, 40), policy)
    assert aegis.merge(half, summarize(table.slice(40), policy, like=half)).rows == table.num_rows


def test_init_without_a_label_keeps_every_column(table: pa.Table) -> None:
    proposed = aegis.init_policy(table)
    assert not proposed.policy.label
    assert set(proposed.policy.attributes) == set(table.column_names)
    assert proposed.to_dict()["label"] is None


@pytest.mark.parametrize("measure", ["adjusted-pillai", "held-out-auc", "mi"])
def test_measures_of_a_label_are_refused(summary: Summary, measure: str) -> None:
    study = aegis.Study(summary, policy_of())
    with pytest.raises(PolicyError, match="needs a label") as refused:
        study.advise(measure=measure)
    assert "label: COLUMN" in str(refused.value.hint)
    with pytest.raises(PolicyError, match="needs a label"):
        study.rank(measure=measure)


def test_losses_and_estimates_of_a_label_are_refused(summary: Summary) -> None:
    study = aegis.Study(summary, policy_of())
    for objective in ("classification", "classification(charges=arx)"):
        with pytest.raises(PolicyError, match="needs a label"):
            study.search(objective=objective)
    with pytest.raises(PolicyError, match="An estimate needs a label"):
        study.rank(estimate="aegis+1d")
    assert study.search(objective="loss").measure == "held-out-any"


def test_training_asks_for_a_label(table: pa.Table) -> None:
    with pytest.raises(PolicyError, match="Training needs a label, but the policy names none"):
        aegis.Study(table, policy_of()).evaluate(models=["lr"])
