"""A table without a label: association among all columns, against rows and every combination."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from advisor_scores import mean_contingency
from hypothesis import given, settings
from hypothesis import strategies as st

import aegis
from advisor_support import AGE, TREE, ZIP, all_choices, masked_columns, random_rows, table_of
from aegis.advisor import Scorer
from aegis.advisor.scoring import PairValues
from aegis.advisor.search.objectives import Pairwise
from aegis.errors import PolicyError
from aegis.measures import MEASURES
from aegis.policy import NO_LABEL, Policy, dump_policy, load_policy
from aegis.summary import Summary, load_bundle, save_bundle, summarize
from aegis.summary.cooccurrence import Chunk, count_pairs
from aegis.summary.row_pairs import AtomRows
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


def test_a_bound_does_not_depend_on_the_boxes_before_it(summary: Summary) -> None:
    objective = searcher_of(summary, MEASURE, {"k": 2}).objective
    assert isinstance(objective, Pairwise)
    masks = [list(a.candidates) for a in summary.attributes.values()]
    scorer = Scorer(summary)
    value = {
        (i, a, j, b): scorer.pair_values([(i, masks[i][a]), (j, masks[j][b])], MEASURE)[0, 1]
        for i in range(len(masks))
        for j in range(len(masks))
        for a in range(len(masks[i]))
        for b in range(len(masks[j]))
        if i != j
    }
    draw = np.random.default_rng(4)
    for _ in range(60):
        left = [
            sorted(draw.choice(len(own), draw.integers(1, len(own) + 1), replace=False))
            for own in masks
        ]
        wanted = sum(
            max(
                sum(max(value[i, a, j, b] for b in left[j]) for j in range(len(masks)) if j != i)
                for a in left[i]
            )
            for i in range(len(masks))
        )
        box = tuple(sum(1 << int(a) for a in own) for own in left)
        pairs = len(masks) * (len(masks) - 1)
        assert objective._over(box) == pytest.approx(wanted / pairs, abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=9),
    st.integers(0, 60),
    st.integers(1, 200),
    st.integers(0, 2**32 - 1),
)
def test_many_pairs_at_once_are_those_of_the_rows(
    sizes: list[int], rows: int, cells: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    codes = [draw.integers(0, size, rows) for size in sizes]
    names = tuple(f"c{i}" for i in range(len(sizes)))
    pairs = count_pairs(names, tuple(sizes), 1, [Chunk(codes, np.zeros(rows, dtype=np.int64))])
    levels = [draw.integers(0, size, size) for size in sizes]
    values = PairValues(pairs, lambda place, _: levels[place])
    masked: Any = [(place, _Plain()) for place in range(len(sizes))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aegis.advisor.scoring._CELLS", cells)
        found = values.values(masked, masked[::-1], MEASURE)[:, ::-1]
    shown = [levels[i][codes[i]].tolist() for i in range(len(sizes))]
    for i, j in combinations(range(len(sizes)), 2):
        wanted = mean_contingency([(shown[i], shown[j])])
        assert found[i, j] == pytest.approx(wanted, abs=1e-12)
        assert found[j, i] == pytest.approx(wanted, abs=1e-12)


class _Plain:
    """A candidate without noise."""

    noise = None


def test_a_search_counts_no_pair_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    table = pa.table({f"c{i}": draw.integers(0, 4, 60) for i in range(14)})
    masks = ["identity", {"keep_frequent": {"count": 2}}, "suppress"]
    attributes = {name: {"role": "feature", "masks": masks} for name in table.column_names}
    policy = policy_of(attributes=attributes, measure=MEASURE.name, privacy={"k": 1})
    monkeypatch.setattr(AtomRows, "pair", lambda *_: pytest.fail("a pair was counted"))
    advice = aegis.Study(table, policy).advise()
    assert advice.best is not None
    assert advice.best.utility_kept is not None


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
