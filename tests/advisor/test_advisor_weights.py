"""Scores of weighted rows: those of weighted regressions, and the same whatever weights are counted in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aegis
from aegis.advisor import Scorer
from aegis.measures import MEASURES, Encoding, LabelKind
from aegis.measures.merits import area_error
from aegis.measures.number import PENALTIES, squared_errors
from aegis.summary import summarize
from aegis.summary.codes import Dealer

ROWS = 240
OF_CLASSES = sorted(m.name for m in MEASURES if m.label is LabelKind.CLASSES)


def policy(label: Any = "y", **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "label": label,
        "person": "id",
        "weight": "w",
        "privacy": {"k": 2, "suppression": 0.1},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 10}}, "suppress"],
            },
            "town": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        },
        **more,
    }


ATTRIBUTES = {**policy()["attributes"], "y": {"role": "feature"}}
UNLABELLED = {k: v for k, v in policy(attributes=ATTRIBUTES).items() if k != "label"}
UNWEIGHTED = {key: value for key, value in policy().items() if key != "weight"}
NUMBER = policy({"column": "price", "kind": "number"})


def table(weights: npt.ArrayLike | None = None, seed: int = 2) -> pa.Table:
    draw = np.random.default_rng(seed)
    age, town = draw.integers(20, 30, ROWS), draw.integers(0, 3, ROWS)
    price = np.round(20 * town + age + draw.normal(0, 8, ROWS), 2)
    y = (price + draw.normal(0, 5, ROWS) > np.median(price)).astype(int)
    own = draw.integers(1, 12, ROWS) if weights is None else np.asarray(weights)
    columns = {"age": age, "town": list(map(str, town)), "y": y, "price": price}
    return pa.table({**columns, "id": np.arange(ROWS), "w": own})


def score(rows: pa.Table, declared: dict[str, Any], measure: str) -> float:
    scorer = Scorer(summarize(rows, declared))
    return scorer.value(scorer.unmasked, MEASURES.get(measure))


def scores(rows: pa.Table, declared: dict[str, Any]) -> dict[str, float]:
    """Return the score of the unmasked table by every measure of classes."""
    scorer = Scorer(summarize(rows, declared))
    return {name: scorer.value(scorer.unmasked, MEASURES.get(name)) for name in OF_CLASSES}


def test_equal_weights_change_nothing() -> None:
    plain = scores(table(), UNWEIGHTED)
    assert scores(table(np.ones(ROWS, int)), policy()) == plain
    assert scores(table(np.full(ROWS, 0.25)), policy()) == plain


def test_the_unit_of_weights_changes_nothing() -> None:
    weights = table()["w"].to_numpy()
    assert scores(table(7 * weights), policy()) == scores(table(), policy())


@given(seed=st.integers(0, 10**6), measure=st.sampled_from(["pillai-plain", "mi", "phi2", "g3"]))
def test_a_weight_is_worth_so_many_equal_rows(seed: int, measure: str) -> None:
    rows = table(seed=seed)
    again = rows.take(np.repeat(np.arange(ROWS), rows["w"].to_numpy()))
    expected = score(again, UNWEIGHTED, measure)
    assert score(rows, policy(), measure) == pytest.approx(expected, abs=1e-12)


def design(rows: pa.Table) -> npt.NDArray[np.float64]:
    """Return the age, and indicators of all towns but one."""
    town = np.array(rows["town"].to_pylist())
    return np.column_stack([rows["age"].to_numpy(), town == "1", town == "2"]).astype(float)


def test_the_trace_of_two_classes_is_that_of_weighted_least_squares() -> None:
    rows = table()
    weights, y = rows["w"].to_numpy(), rows["y"].to_numpy()
    age = rows["age"].to_numpy()
    dummies = np.column_stack([*(age == a for a in np.unique(age)[1:]), design(rows)[:, 1:]])
    root, own = np.sqrt(weights), np.column_stack([np.ones(ROWS), dummies.astype(float)])
    slopes = np.linalg.lstsq(own * root[:, None], y * root, rcond=None)[0]
    left = (weights * (y - own @ slopes) ** 2).sum()
    explained = 1 - left / (weights * (y - np.average(y, weights=weights)) ** 2).sum()
    assert score(rows, policy(), "pillai-plain") == pytest.approx(explained, rel=1e-10)
    n = weights.sum() ** 2 / (weights**2).sum()
    rank = dummies.shape[1]
    adjusted = 1 - (1 - explained) * (n - 1) / (n - rank - 1)
    assert score(rows, policy(), "adjusted-pillai") == pytest.approx(adjusted, abs=1e-4)


def test_the_error_of_a_number_is_that_of_weighted_ridge_regression() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rows = table()
    summary = summarize(rows, NUMBER)
    scorer = Scorer(summary)
    counts = scorer.cooccurrence(scorer.unmasked, MEASURES.get("held-out-r2").needs)
    errors = squared_errors(counts.by_fold(Encoding.NUMBERS))
    weights, y, x = rows["w"].to_numpy(), rows["price"].to_numpy(), design(rows)
    x = np.column_stack(
        [x[:, 0], 1 - x[:, 1] - x[:, 2], x[:, 1:]]
    )  # all towns: ridge is not invariant
    part = np.asarray(Dealer(("age", "town"), 10, 0).units(np.arange(ROWS))) % 5
    assert summary.pairs.weights is not None
    assert summary.label.unit is not None
    unit = summary.pairs.weights.rows / weights.sum()
    scale = _scale_of_the_number(counts, x[:, 0], unit * weights)
    for k in range(5):
        for place, penalty in enumerate(PENALTIES):
            fitted = linear.Ridge(penalty / unit, solver="cholesky")
            shown = np.column_stack([x[:, 0] * scale, x[:, 1:]])
            out = part == k
            fitted.fit(shown[~out], y[~out], sample_weight=weights[~out])
            own = (unit * weights[out] * (y[out] - fitted.predict(shown[out])) ** 2).sum()
            assert errors[k, place] * summary.label.unit.size**2 == pytest.approx(own, rel=1e-9)


def _scale_of_the_number(
    counts: Any, numbers: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> float:
    """Return by what Aegis multiplies a number, so that a penalty in rows means something."""
    part = counts.by_fold(Encoding.NUMBERS)
    square = part.total.every.sum(axis=0)[0, 0]
    total = part.joint.sum(axis=(0, 1))[0]
    n = part.rows.sum()
    spread = square - total**2 / n
    mean = np.average(numbers, weights=weights)
    return float(np.sqrt(spread / (weights * (numbers - mean) ** 2).sum()))


def test_masks_are_advised_by_weight() -> None:
    """Half of the rows, which weigh nothing, say the contrary of the other half."""
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, ROWS)
    heavy = draw.integers(0, 2, ROWS)
    told = [str(c) if h else str(1 - c) for c, h in zip(y, heavy, strict=True)]
    rows = pa.table(
        {"age": np.full(ROWS, 20), "town": told, "y": y, "id": np.arange(ROWS), "w": heavy * 3}
    )
    assert score(rows, UNWEIGHTED, "held-out-auc") < 0.65
    assert score(rows, policy(), "held-out-auc") > 0.99


def test_errors_are_of_effective_rows() -> None:
    weights = np.where(np.arange(ROWS) % 4, 0.01, 4.0)
    rows = table(weights)
    best = aegis.Study(rows, policy(measure="held-out-auc")).advise().best
    of_classes = np.bincount(rows["y"].to_numpy(), weights) * weights.sum() / (weights**2).sum()
    assert of_classes.sum() < 0.3 * ROWS
    assert best.stderr == pytest.approx(area_error(best.score, of_classes), rel=1e-3)


@pytest.mark.parametrize("declared", [policy(), NUMBER, UNLABELLED])
def test_advice_ranks_searches_and_measures_the_kept_rows(declared: dict[str, Any]) -> None:
    rows = table()
    study = aegis.Study(rows, declared)
    found, ranked = study.advise(), study.rank(generate_count=6)
    assert found.best.score == pytest.approx(max(r.score for r in ranked.ranking), abs=0.2)
    assert found.best.utility is not None
    assert 0 <= found.best.utility.utility_kept <= 100
    again = aegis.Study(rows.take(np.random.default_rng(1).permutation(ROWS)), declared).advise()
    assert again.best.score == found.best.score


@pytest.mark.parametrize("mask", [{"bucketize": {"width": 2}}, {"round": {"step": 2}}])
def test_a_weight_that_is_released_masked_still_weights_unmasked(
    mask: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures of a release are those of the rows that were read, or of a query for them."""
    draw = np.random.default_rng(6)
    data = pa.table(
        {
            "age": draw.integers(20, 60, 400),
            "sex": draw.choice(["f", "m"], 400),
            "y": draw.choice(["no", "yes"], 400),
            "w": draw.integers(1, 9, 400),
        }
    )
    rules = {
        "version": 1,
        "label": "y",
        "weight": "w",
        "privacy": {"k": 5, "suppression": 0.1},
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 10}}]},
            "sex": {"role": "quasi-identifier"},
            "w": {"role": "feature", "masks": [mask]},
        },
    }
    read = aegis.advise(data, rules, generate_count=2).best
    monkeypatch.setattr("aegis.advisor.released.kept_codes", lambda *_: None)
    asked = aegis.advise(data, rules, generate_count=2).best
    assert read is not None
    assert asked is not None
    assert read.utility == asked.utility
