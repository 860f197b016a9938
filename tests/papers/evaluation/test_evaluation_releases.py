"""Record-level releases under trained models: rows, codes, tests against the original."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from evaluation_support import make_policy, make_table
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis import evaluate
from aegis.advisor.methods import RecordRanker
from aegis.anonymizers import Recipe
from aegis.errors import EngineError
from aegis.files import SILENT
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import code_table
from aegis.papers.evaluation.original import compare_with_original, importance_shift
from aegis.papers.evaluation.releases import code_release
from aegis.sources import open_table
from aegis.summary import summarize

pytest.importorskip("sklearn")

STRICT = Recipe(
    "hybrid", {"strict": True, "pattern_friendly": ["town"], "limits": [["age", 22, 70]]}
)


ATTRIBUTES = {
    "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 10}}]},
    "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
    "size": {"role": "sensitive", "masks": [{"quantiles": {"count": 4}}]},
}


def coded(recipe: Recipe):
    table, policy = make_table(), make_policy(attributes=ATTRIBUTES)
    source, summary = open_table(table), summarize(table, policy)
    rows = code_table(source, summary, policy)
    ranker = RecordRanker(summary, source, policy, MEASURES.get("adjusted-pillai"), 0, SILENT)
    made = ranker.make(recipe)
    names = tuple(summary.attributes)
    return made, rows, ranker, code_release(ranker.read, made, ranker.rank(made), rows, names)


@pytest.mark.parametrize(
    "recipe", [Recipe("mondrian"), Recipe("mdav"), STRICT], ids=["mondrian", "mdav", "hybrid"]
)
def test_equal_released_values_and_no_others_have_equal_codes(recipe):
    made, _, _, release = coded(recipe)
    assert len(release.rows) == made.data.num_rows
    for column, name in enumerate(release.names):
        codes = release.design.codes[release.rows, column].tolist()
        values = made.data[name].to_pylist()
        assert len(set(zip(codes, values, strict=True))) == len(set(values)) == len(set(codes))


def test_generalised_values_are_ordered_as_the_originals():
    made, _, ranker, release = coded(Recipe("mondrian"))
    originals = ranker.read.table["age"].to_pylist()
    codes = release.design.codes[:, release.names.index("age")]
    means = {
        code: np.mean(
            [
                a if a is not None else 1000
                for a, c in zip(originals, codes, strict=True)
                if c == code
            ]
        )
        for code in set(codes.tolist())
    }
    ordered = [means[code] for code in sorted(means)]
    assert ordered[0] < ordered[len(ordered) // 2] < ordered[-1]
    assert all(
        text is None or "[" in text or text.isdigit() or text == "*"
        for text in made.data["age"].to_pylist()
    )


def test_rows_that_the_method_left_out_take_no_part():
    found = evaluate(
        make_table(),
        make_policy(privacy={}, attributes=ATTRIBUTES),
        generate_count=2,
        models=["lr"],
        splits=2,
        comparators=(),
        methods=[STRICT, "mondrian"],
    )
    assert set(found.releases) == {"hybrid", "mondrian"}
    assert set(found.means("lr")) == set(found.configurations)
    assert set(found.means("lr", releases=True)) == {*found.configurations, *found.releases}
    trained = {t.configuration for t in found.trainings}
    assert {"hybrid", "mondrian"} <= trained
    assert len(found.trainings) == (2 + 2 + 1) * 2
    names = {one.configuration for one in found.against_original}
    assert names == {*found.configurations, *found.releases}
    assert {"hybrid", "mondrian"} < set(found.importance_shift)
    assert all(0 <= shift <= 1 for shift in found.importance_shift.values())
    assert found.to_dict()["releases"]["mondrian"]["method"]["method"] == "mondrian"


def test_a_release_that_changes_nothing_trains_alike():
    table = make_table(nulls=False)
    twice = pa.concat_tables([table, table, table])
    recipe = Recipe("mdav", {"k": 3})
    found = evaluate(
        twice,
        make_policy(
            configurations={"raw": {"age": "identity", "town": "identity", "size": "suppress"}},
            attributes={
                "age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
                "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
                "size": {"role": "feature", "masks": ["suppress"]},
            },
        ),
        models=["lr"],
        comparators=(),
        methods=[recipe],
    )
    means = found.means("lr", releases=True)
    assert found.releases["mdav"].method.loss.scaled == pytest.approx(0, abs=1e-12)
    assert means["mdav"] == pytest.approx(means["raw"])


def test_methods_of_the_policy_are_trained_on():
    found = evaluate(
        make_table(),
        make_policy(anonymizers=["mondrian"]),
        generate_count=1,
        models=["lr"],
        comparators=(),
    )
    assert set(found.releases) == {"mondrian"}
    assert any(r.method is not None for r in found.advice.ranking)


def test_another_order_of_rows_is_an_error():
    made, _, ranker, release = coded(Recipe("mondrian"))
    policy = make_policy(attributes=ATTRIBUTES)
    other = aegis.summarize(make_table(), policy)
    shuffled = code_table(open_table(make_table().slice(1)), other, policy)
    with pytest.raises(EngineError, match="rows"):
        code_release(ranker.read, made, release.ranked, shuffled, release.names)
    turned = code_table(open_table(make_table().take(list(range(239, -1, -1)))), other, policy)
    with pytest.raises(EngineError, match="order"):
        code_release(ranker.read, made, release.ranked, turned, release.names)


@given(
    st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=2, max_size=6),
    st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=2, max_size=6),
)
def test_u_counts_pairs(found, original):
    compared = compare_with_original("c", "lr", "f1", found, original)
    pairs = itertools.product(found, original)
    assert compared.u == sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs)
    assert compared.difference == pytest.approx(np.mean(found) - np.mean(original))
    assert 0 <= compared.p <= 1


def test_a_single_split_has_no_test():
    compared = compare_with_original("c", "lr", "f1", [0.5], [0.75])
    assert (compared.difference, compared.u, compared.p) == (-0.25, None, None)


def test_importance_shift():
    assert importance_shift({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}) == 0
    assert importance_shift({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}) == 1
