"""The expected R2 of a number: ridge regression of scikit-learn on the same folds, row by row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import Scorer
from aegis.errors import PolicyError
from aegis.measures import MEASURES, LabelKind, chosen_measure, metric_name
from aegis.measures.number import PENALTIES
from folds_by_row import folds_of

ROWS = 600
CV_FOLDS = 5


def table() -> pa.Table:
    draw = np.random.default_rng(3)
    age = draw.integers(18, 90, ROWS).astype(float)
    age[::37] = np.nan
    income = np.round(draw.gamma(2, 1000, ROWS), 2)
    job = draw.choice(list("abcdef"), ROWS)
    charges = 1000 + 30 * np.nan_to_num(age, nan=50) + 400 * (job == "a") + 0.2 * income
    charges += 300 * (income > 2500) + draw.normal(0, 400, ROWS)
    return pa.table(
        {
            "age": pa.array(age, from_pandas=True),
            "income": income,
            "job": job,
            "charges": np.round(charges, 2),
        }
    )


POLICY = {
    "version": 1,
    "label": {"column": "charges", "kind": "number"},
    "privacy": {"k": 3, "suppression": 0.05},
    "attributes": {
        "age": {
            "role": "quasi-identifier",
            "masks": ["identity", {"bucketize": {"width": 10}}, "suppress"],
        },
        "job": {
            "role": "quasi-identifier",
            "masks": ["identity", {"keep_frequent": {"count": 3}}, "suppress"],
        },
        "income": {"role": "feature", "masks": ["identity", {"quantiles": {"count": 4}}]},
    },
}


def columns(summary: aegis.Summary, rows: pa.Table, masks: dict[str, int], *, linear: bool):
    """Return what a coding shows of each row, from the groups that the summary names."""
    shown = []
    for name, place in masks.items():
        attribute = summary.attributes[name]
        candidate = attribute.candidates[place]
        values = attribute.values.to_pylist()
        code = np.array([values.index(v) for v in rows[name].to_pylist()])
        if candidate.ranges is None:
            level = candidate.levels[attribute.atoms][code]
            shown += [level == own for own in np.unique(level)]
            continue
        of_value = candidate.ranges[attribute.atoms]
        level = of_value[code]
        if not linear:
            shown += [level >= own for own in np.unique(level)[1:]]
            continue
        numbers = np.array([np.nan if v is None else v for v in values], dtype=float)
        means = np.array(
            [
                numbers[of_value == own][~np.isnan(numbers[of_value == own])].mean()
                if (~np.isnan(numbers[of_value == own])).any()
                else np.nan
                for own in range(of_value.max() + 1)
            ]
        )
        own = means[level]
        missing = np.isnan(own)
        centred = np.where(missing, 0.0, own - own[~missing].mean())
        if own[~missing].std() > 0:
            shown.append(centred / own[~missing].std())
        if missing.any():
            shown.append(missing)
    return np.column_stack([np.asarray(column, dtype=float) for column in shown])


def r2_by_rows(x: np.ndarray, y: np.ndarray, fold: np.ndarray) -> float:
    from sklearn.linear_model import Ridge

    best = 0.0
    for penalty in PENALTIES:
        left = 0.0
        for own in range(CV_FOLDS):
            out = fold == own
            model = Ridge(alpha=penalty, solver="cholesky").fit(x[~out], y[~out])
            left += float(((y[out] - model.predict(x[out])) ** 2).sum())
        best = max(best, 1 - left / float(((y - y.mean()) ** 2).sum()))
    return best


@pytest.mark.parametrize("places", [(0, 0, 0), (1, 1, 0), (1, 0, 1), (2, 1, 1)])
def test_r2_is_that_of_ridge_regression_on_the_same_folds(places: tuple[int, int, int]) -> None:
    rows = table()
    summary = aegis.summarize(rows, POLICY)
    scorer = Scorer(summary)
    masks = dict(zip(("age", "job", "income"), places, strict=True))
    choice = {n: summary.attributes[n].candidates[place] for n, place in masks.items()}
    fold = folds_of(summary, rows, label="charges") % CV_FOLDS
    y = np.asarray(rows["charges"])
    by_coding = [
        r2_by_rows(columns(summary, rows, masks, linear=linear), y, fold)
        for linear in (True, False)
    ]
    for learner, expected in zip(("lr", "gbdt"), by_coding, strict=True):
        found = scorer.value(choice, MEASURES.get(f"held-out-r2({learner})"))
        assert found == pytest.approx(expected, abs=1e-12)
    assert scorer.value(choice, MEASURES.get("held-out-r2")) == pytest.approx(
        max(by_coding), abs=1e-12
    )


def test_r2_of_large_numbers_is_that_of_ridge_regression_too() -> None:
    rows = table()
    moved = np.asarray(rows["charges"]) * 4 + 2.0**30
    other = rows.set_column(3, "charges", pa.array(moved))
    summary = aegis.summarize(other, POLICY)
    found = Scorer(summary).value(Scorer(summary).unmasked, MEASURES.get("held-out-r2"))
    masks = dict.fromkeys(("age", "job", "income"), 0)
    fold = folds_of(summary, other, label="charges") % CV_FOLDS
    by_rows = [
        r2_by_rows(columns(summary, rows, masks, linear=linear), moved, fold)
        for linear in (True, False)
    ]
    assert found == pytest.approx(max(by_rows), abs=1e-9)


def test_a_measure_of_classes_is_refused_for_a_number_and_the_other_way_round() -> None:
    assert chosen_measure(label=LabelKind.NUMBER).name == "held-out-r2"
    with pytest.raises(
        PolicyError, match="'held-out-auc' needs classes, but the label is a number"
    ):
        chosen_measure("held-out-auc", label=LabelKind.NUMBER)
    with pytest.raises(PolicyError, match="needs a number to predict, but the label has classes"):
        chosen_measure("held-out-r2", label=LabelKind.CLASSES)
    assert metric_name("r2", None) == "held-out-r2"
    assert metric_name("r2", "lr, gbdt") == "held-out-r2(lr+gbdt)"
    with pytest.raises(PolicyError, match="Aegis cannot predict the R2 of 'nb'"):
        MEASURES.get("held-out-r2(nb)")
