"""Every column predicted from the others: against ridge fits of each column, and every combination."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import aegis
from aegis.advisor import Scorer
from aegis.advisor.fold_counts import CV_FOLDS
from aegis.advisor.search.objectives import EveryColumn
from aegis.measures import MEASURES
from aegis.measures.columns import PENALTIES, column_figures
from aegis.measures.cooccurrence import Need
from aegis.measures.numerics import left_by_others
from aegis.policy import ANY_LABEL
from aegis.summary import Summary, summarize
from aegis.summary.codes import Dealer
from search_support import assert_bounded, assert_proves_best, searcher_of

MEASURE = MEASURES.get("held-out-any")
Floats = npt.NDArray[np.float64]
TEXTS = ["identity", {"keep_frequent": {"count": 1}}, "suppress"]


def policy_of(table: pa.Table, masks: dict[str, list[Any]] | None = None) -> dict[str, Any]:
    attributes = {
        name: {"role": "quasi-identifier", "masks": (masks or {}).get(name, ["identity"])}
        for name in table.column_names
    }
    return {"version": 1, "privacy": {"k": 2, "suppression": 0.1}, "attributes": attributes}


def parts_of(summary: Summary, table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the part of each row, dealt out by what it holds."""
    codes = []
    for name, own in summary.attributes.items():
        place = {v: i for i, v in enumerate(own.values.to_pylist())}
        codes.append(own.atoms[[place[v] for v in table[name].to_pylist()]].astype(np.int64))
    dealer = Dealer(list(summary.attributes), 10, 0)
    return dealer.rows(codes, np.zeros(len(table), dtype=np.int64)) % CV_FOLDS


def shown_of(summary: Summary, table: pa.Table, name: str) -> tuple[Floats, Floats]:
    """Return what a column shows of each row, and its indicators: thresholds of numbers, else names."""
    own = summary.attributes[name]
    values = table[name].to_pylist()
    place = {v: i for i, v in enumerate(own.values.to_pylist())}
    level = np.array([place[v] for v in values])
    names = np.eye(len(place))[level]
    if own.unmasked.ranges is None:
        return (names if len(place) > 1 else names[:, :0]), names
    return (level[:, None] >= np.arange(1, len(place))).astype(float), names


def unions(levels: int, ordered: bool) -> list[Floats]:
    """Return the levels, then those of a number united by two, by four, and so on."""
    found, width = [np.eye(levels)], 1
    while ordered and -(-levels // width) > 2:
        width *= 2
        found.append(np.eye(-(-levels // width))[np.arange(levels) // width])
    return found


def saved_of(shown: Floats, fits: Floats) -> float:
    """Return the squared errors saved of each value that rows show, in rows of this value."""
    spread = ((shown - shown.mean(axis=0)) ** 2).sum(axis=0)
    saved = spread - ((shown - fits) ** 2).sum(axis=0)
    return max(float((saved / shown.sum(axis=0)).sum()), 0.0)


def by_rows(summary: Summary, table: pa.Table) -> tuple[Floats, Floats]:
    """Return V / (1 + V) and the variance explained of each column, by one ridge fit a column."""
    split = PredefinedSplit(parts_of(summary, table))
    each = {name: shown_of(summary, table, name) for name in summary.attributes}
    learnt, explained = [], []
    for name, (target, names) in each.items():
        others = [shown for other, (shown, _) in each.items() if other != name]
        rest = np.hstack([target[:, :0], *others])
        best = (0.0, 0.0)
        for penalty in PENALTIES:
            if not target.shape[1]:
                break
            if rest.shape[1]:
                model = Ridge(alpha=penalty, solver="cholesky")
                fits = cross_val_predict(model, rest, names, cv=split)
            else:
                outside = [names[split.test_fold != fold] for fold in split.test_fold]
                fits = np.vstack([own.mean(axis=0) for own in outside])
            spread = ((names - names.mean(axis=0)) ** 2).sum(axis=0)
            share = max(1 - ((names - fits) ** 2).sum() / spread.sum(), 0.0)
            ordered = summary.attributes[name].unmasked.ranges is not None
            value = max(saved_of(names @ g, fits @ g) for g in unions(names.shape[1], ordered))
            if value > best[0] or penalty == PENALTIES[0]:
                best = (value, share)
        learnt.append(best[0] / (1 + best[0]))
        explained.append(best[1])
    return np.array(learnt), np.array(explained)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows, seed = draw(st.integers(12, 40)), draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    hidden = random.integers(0, 3, rows)
    columns: dict[str, list[Any]] = {}
    for place in range(draw(st.integers(1, 4))):
        width, numbers = draw(st.integers(1, 4)), draw(st.booleans())
        codes = np.where(random.random(rows) < 0.6, hidden % width, random.integers(0, width, rows))
        nulls = random.random(rows) < draw(st.sampled_from([0.0, 0.2]))
        values = [int(c) if numbers else f"v{c}" for c in codes]
        columns[f"c{place}"] = [None if n else v for v, n in zip(values, nulls, strict=True)]
    types = [
        pa.int64() if isinstance(next((v for v in c if v is not None), "x"), int) else pa.string()
        for c in columns.values()
    ]
    return pa.table({n: pa.array(c, t) for (n, c), t in zip(columns.items(), types, strict=True)})


@settings(max_examples=8, deadline=None)
@given(tables())
def test_every_column_is_a_ridge_regression_of_it_on_the_others(table: pa.Table) -> None:
    summary = summarize(table, policy_of(table))
    scorer = Scorer(summary)
    figures = column_figures(scorer.cooccurrence(scorer.unmasked, (Need.COLUMNS,)))
    learnt, explained = by_rows(summary, table)
    np.testing.assert_allclose(figures.learnt[0], learnt, atol=1e-10)
    np.testing.assert_allclose(figures.explained, explained, atol=1e-10)


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ranges_of_numbers_do_not_score_above_the_numbers(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    size = random.normal(0, 1, 400)
    table = pa.table({f"c{i}": np.round(size + random.normal(0, 1, 400), 2) for i in range(8)})
    masks = {name: ["identity", {"quantiles": {"count": count}}] for name in table.column_names}
    scorer = Scorer(summarize(table, policy_of(table, masks)))
    each = scorer.summary.attributes
    unmasked = scorer.value(scorer.unmasked, MEASURE)
    for name in each:
        coarse = {**scorer.unmasked, name: each[name].candidates[1]}
        assert scorer.value(coarse, MEASURE) <= unmasked
    every = {name: own.candidates[1] for name, own in each.items()}
    assert scorer.value(every, MEASURE) <= unmasked


def mixed(rows: int = 150, seed: int = 5) -> pa.Table:
    random = np.random.default_rng(seed)
    job = random.integers(0, 4, rows)
    age = 20 + 5 * job + random.integers(0, 6, rows)
    return pa.table(
        {
            "job": [f"j{v}" for v in job],
            "age": age,
            "town": [f"t{v}" for v in (job + random.integers(0, 2, rows)) % 3],
            "sex": [f"s{v}" for v in random.integers(0, 2, rows)],
        }
    )


MASKS: dict[str, list[Any]] = {
    "job": TEXTS,
    "age": ["identity", {"bucketize": {"width": 5}}, {"bucketize": {"width": 15}}, "suppress"],
    "town": TEXTS,
    "sex": ["identity", {"randomised_response": {"keep": 0.7}}, "suppress"],
}


@pytest.fixture(scope="module")
def summary() -> Summary:
    table = mixed()
    return summarize(table, policy_of(table, MASKS))


def test_the_order_of_rows_and_columns_changes_nothing() -> None:
    table = mixed()
    turned = table.take(np.random.default_rng(1).permutation(len(table)))
    turned = turned.select(table.column_names[::-1])
    first, second = (Scorer(summarize(own, policy_of(own))) for own in (table, turned))
    one, other = (scorer.columns(scorer.unmasked) for scorer in (first, second))
    for name, figures in one.items():
        assert other[name] == pytest.approx(figures, abs=1e-12)


def test_a_box_is_bounded_by_the_best_in_it(summary: Summary) -> None:
    objective = searcher_of(summary, MEASURE, {"k": 2}).objective
    assert isinstance(objective, EveryColumn)
    assert_bounded(objective, boxes=40)


def test_a_box_of_a_table_with_columns_that_tell_each_other_is_bounded() -> None:
    random = np.random.default_rng(8)
    table = pa.table({name: random.integers(0, 3, 24) for name in "ab"})
    table = table.append_column("c", pa.array([f"n{v}" for v in table["a"].to_pylist()]))
    masks: dict[str, list[Any]] = {"b": ["identity", "suppress"], "c": TEXTS}
    own = summarize(table, policy_of(table, masks))
    objective = searcher_of(own, MEASURE, {"k": 1}).objective
    sizes = [len(v.candidates) for v in objective._problem.variables]  # type: ignore[attr-defined]
    leaves = [objective.bound(tuple(1 << c for c in leaf)) for leaf in np.ndindex(*sizes)]
    whole = tuple((1 << size) - 1 for size in sizes)
    assert max(leaves) - 1e-12 <= objective.bound(whole) <= 1


@pytest.mark.parametrize("rule", [{"k": 3}, {"k": 8, "suppression": 0.1}])
def test_the_search_proves_the_best_of_all(summary: Summary, rule: dict[str, Any]) -> None:
    assert_proves_best(searcher_of(summary, MEASURE, rule), summary, MEASURE)


def test_twins_count_once_and_what_nothing_predicts_is_named() -> None:
    table = mixed()
    more = {
        "born": pa.array([2000 - v for v in table["age"].to_pylist()]),
        "one": pa.array(["x"] * len(table)),
        "id": pa.array([f"p{i}" for i in range(len(table))]),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    roles = Scorer(summarize(table, policy_of(table))).column_roles
    assert (roles["age"].twins, roles["born"].twins) == (("born",), ("age",))
    assert roles["age"].weight == roles["born"].weight == 0.5
    assert (roles["one"].left_out, roles["id"].left_out) == ("it has one value", "it is like a key")
    assert roles["job"].weight == 1
    assert roles["one"].weight == roles["id"].weight == 0


def test_a_suppressed_column_has_nothing_of_its_own(summary: Summary) -> None:
    scorer = Scorer(summary)
    hidden = {a.name: a.candidates[-1] for a in summary.attributes.values()}
    for name in summary.attributes:
        assert scorer.columns({**scorer.unmasked, name: hidden[name]})[name] == (0, 0)
    assert scorer.value({**scorer.unmasked, **hidden}, MEASURE) == 0


def test_two_columns_without_a_penalty_have_pearsons_coefficient() -> None:
    table = mixed(4000).select(["job", "town"])
    scorer = Scorer(summarize(table, policy_of(table)))
    held_out = scorer.value(scorer.unmasked, MEASURE)
    pearson = scorer.value(scorer.unmasked, MEASURES.get("adjusted-contingency"))
    assert held_out == pytest.approx(pearson, abs=0.01)


def test_release_certificate_and_audit_state_the_same_figures(tmp_path: Path) -> None:
    table = mixed()
    masks = {name: own for name, own in MASKS.items() if name != "sex"}
    pq.write_table(table, tmp_path / "t.parquet")
    study = aegis.Study(tmp_path / "t.parquet", policy_of(table, masks))
    advice = study.advise()
    assert (advice.measure, advice.optimal) == (MEASURE.name, True)
    assert advice.utility is not None
    certificate, out = tmp_path / "c.json", tmp_path / "out.parquet"
    release = study.apply(advice, out, certificate=certificate)
    assert release.utility is not None
    assert release.utility.value == advice.utility.value
    for name, own in release.utility.columns.items():
        assert own.score == pytest.approx(advice.utility.columns[name].score, abs=1e-12)
    as_released = pq.read_table(out)
    learnt, explained = by_rows(summarize(as_released, policy_of(as_released)), as_released)
    figures = release.utility.columns
    assert [own.score for own in figures.values()] == pytest.approx(learnt, abs=1e-10)
    assert [own.explained for own in figures.values()] == pytest.approx(explained, abs=1e-10)
    assert release.utility.value == pytest.approx(learnt.mean(), abs=1e-10)
    check = aegis.check_certificate(out, certificate, original=tmp_path / "t.parquet")
    assert check.passed, list(map(str, check.mismatches))
    page = study.report(advice)
    assert "What can still be learnt about each column" in page
    assert "the predictive value of each column" in page
    assert json.loads(json.dumps(advice.to_dict()))["utility"]["columns"].keys() == figures.keys()
    told = json.loads(certificate.read_text())
    told["utility"]["columns"]["age"]["score"] += 0.1
    certificate.write_text(json.dumps(told))
    differing = aegis.check_certificate(out, certificate).mismatches
    assert "utility.columns.age.score" in [own.what for own in differing]
    for broken in ({}, {"age": 3}, {"age": {**told["utility"]["columns"]["age"], "weight": "1"}}):
        told["utility"]["columns"] = broken
        shown = aegis.check_certificate(out, told).mismatches
        assert "utility.columns" in [own.what for own in shown]


def test_init_without_a_label_proposes_any() -> None:
    proposed = aegis.init_policy(mixed())
    assert "\nlabels: any\n" in proposed.yaml
    again = aegis.load_policy(yaml.safe_load(proposed.yaml))
    assert again.label == proposed.policy.label == ANY_LABEL
    assert not again.label


def test_a_table_of_too_many_values_is_measured_by_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aegis.advisor.utility.MOST_COLUMNS", 5)
    table = mixed()
    advice = aegis.Study(table, policy_of(table)).rank(generate_count=1)
    assert advice.measure == "adjusted-contingency"
    assert any("instead of held-out-any" in text for text in advice.warnings)


def test_weights_say_how_much_a_column_counts() -> None:
    table = mixed()
    policy = policy_of(table)
    policy["attributes"]["job"]["weight"] = 3
    policy["labels"] = "any"
    scorer = Scorer(summarize(table, policy))
    learnt = {name: own[0] for name, own in scorer.columns(scorer.unmasked).items()}
    wanted = (sum(learnt.values()) + 2 * learnt["job"]) / 6
    assert scorer.value(scorer.unmasked, MEASURE) == pytest.approx(wanted, abs=1e-12)


@st.composite
def many_numbers(draw: st.DrawFn) -> pa.Table:
    """Numbers of more values than the 32 ranges that scores read of them."""
    rows, seed = draw(st.integers(40, 90)), draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    age = random.permutation(rows) if draw(st.booleans()) else random.integers(0, 70, rows)
    pay = age * draw(st.integers(0, 2)) + random.integers(0, draw(st.integers(2, 60)), rows)
    job = [f"j{v}" for v in (age // 20 + random.integers(0, 2, rows)) % 4]
    return pa.table({"age": age, "pay": pay, "job": job})


OF_MANY: dict[str, list[Any]] = {
    "age": ["identity", {"bucketize": {"width": 3}}, {"bucketize": {"width": 10}}, "suppress"],
    "pay": ["identity", {"quantiles": {"count": 4}}, {"round": {"step": 2}}, "suppress"],
    "job": TEXTS,
}


@settings(max_examples=8, deadline=None)
@given(many_numbers())
def test_no_configuration_of_many_numbers_is_above_the_bound_of_a_box(table: pa.Table) -> None:
    own = summarize(table, policy_of(table, OF_MANY))
    searcher = searcher_of(own, MEASURE, {"k": 1})
    assert_bounded(searcher.objective, boxes=20)
    quick = searcher_of(own, MEASURE, {"k": 1}).objective
    sizes = [len(v.candidates) for v in searcher.problem.variables]
    for leaf in np.ndindex(*sizes):
        box = tuple(1 << place for place in leaf)
        assert searcher.objective.bound(box) <= quick.upper(box) + 1e-12


def test_the_bound_reads_of_a_number_the_ranges_that_the_score_reads() -> None:
    random = np.random.default_rng(2)
    age = random.permutation(300)
    table = pa.table({"age": age, "pay": age // 2 + random.integers(0, 40, 300)})
    own = summarize(table, policy_of(table))
    objective = searcher_of(own, MEASURE, {"k": 1}).objective
    shown = {}
    for name, attribute in own.attributes.items():
        place = {value: i for i, value in enumerate(attribute.values.to_pylist())}
        ranges = attribute.unmasked.ranges
        assert ranges is not None
        codes = ranges[attribute.atoms][[place[v] for v in table[name].to_pylist()]]
        shown[name] = np.eye(int(codes.max()) + 1)[codes]
    reached = []
    for target, other in (("age", "pay"), ("pay", "age")):
        y = shown[target] - shown[target].mean(axis=0)
        x = shown[other] - shown[other].mean(axis=0)
        fit = x @ np.linalg.lstsq(x, y, rcond=None)[0]
        value = ((fit**2).sum(axis=0) / shown[target].sum(axis=0)).sum()
        reached.append(value / (1 + value))
    assert objective.upper((1, 1)) == pytest.approx(np.mean(reached), rel=1e-4)


def test_a_bound_counts_as_the_work_of_one_inverse(summary: Summary) -> None:
    searcher = searcher_of(summary, MEASURE, {"k": 2})
    searcher.objective.upper(searcher.problem.root)
    once = searcher.problem.work.done
    assert 0 < once < 2e-3
    searcher.objective.upper(searcher.problem.root)
    assert searcher.problem.work.done == once


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_what_others_leave_of_a_block_is_a_schur_complement(seed: int, widths: list[int]) -> None:
    ends = np.cumsum([0, *widths])
    blocks = [slice(*two) for two in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    rows = np.random.default_rng(seed).normal(size=(30, ends[-1]))
    whole = rows.T @ rows + 0.5 * np.eye(ends[-1])
    left = left_by_others(np.tril(rows.T @ rows), 0.5, blocks)
    for own, found in zip(blocks, left, strict=True):
        others = np.setdiff1d(np.arange(ends[-1]), np.arange(own.start, own.stop))
        explained = whole[own][:, others] @ np.linalg.solve(
            whole[np.ix_(others, others)], whole[others][:, own]
        )
        np.testing.assert_allclose(found, whole[own, own] - explained, rtol=1e-9, atol=1e-9)


def test_a_score_counts_as_the_work_of_predicting_every_column() -> None:
    """It counted as the score of a label, which shares factors with other configurations."""
    random = np.random.default_rng(4)
    table = pa.table({f"c{i}": random.integers(0, 5, 200).astype(str) for i in range(60)})
    searcher = searcher_of(summarize(table, policy_of(table)), MEASURE, {"k": 1})
    objective, leaf = searcher.objective, tuple(1 for _ in searcher.problem.variables)
    objective.bound(leaf)
    assert searcher.problem.work.done == pytest.approx(5e-3 + 8e-10 * 300**3)
    assert objective.effort(leaf) == searcher.problem.work.done
