"""Measures by plain definitions, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from advisor_merits import areas, merit_of, shape, shaped_area

from aegis.advisor.fold_counts import CV_FOLDS
from aegis.measures import MEASURES, PENALTIES, UNPOOLED, Contingency, Scope
from aegis.measures.discriminant import PENALTIES as MERIT_PENALTIES
from aegis.summary import Summary
from folds_by_row import folds_of
from target_coded_brute import held_out_target_coded

Floats = npt.NDArray[np.float64]
Columns = Sequence[Sequence[Any]]
Parts = npt.NDArray[np.int64]


def parts_of(summary: Summary, table: pa.Table, seed: int = 0) -> Parts:
    """Return the part of each labelled row of a table, one row after the other."""
    return folds_of(summary, table, seed) % CV_FOLDS


def one_hot(values: Sequence[Any]) -> Floats:
    """Return centred indicators of the distinct values."""
    distinct = list(dict.fromkeys(values))
    matrix = np.array([[float(v == d) for d in distinct] for v in values])
    return matrix - matrix.mean(axis=0)


def pillai(columns: Sequence[Sequence[Any]], label: Sequence[Any]) -> tuple[float, float, int]:
    """Return Pillai's trace, its adjusted form and the rank, by least squares on indicators."""
    features = np.hstack([one_hot(c) for c in columns])
    target = one_hot(label)
    fitted = features @ np.linalg.lstsq(features, target, rcond=None)[0]
    trace = float(np.trace(np.linalg.pinv(target.T @ target) @ (target.T @ fitted)))
    rank = int(np.linalg.matrix_rank(features))
    limit = len(set(label)) - 1
    freedom = len(label) - rank - 1
    if limit < 1 or freedom <= 0:
        return trace, 0.0, rank
    return trace, trace - (1 - trace / limit) * rank * limit / freedom, rank


def held_out(columns: Sequence[Sequence[Any]], label: Sequence[Any]) -> float:
    """Return the mean over learners of the held-out trace, by least squares on added rows."""
    return reached(np.hstack([one_hot(c) for c in columns]), label, PENALTIES)


def encodings(
    columns: Sequence[Sequence[Any]], raw: Sequence[Sequence[Any]], label: Sequence[Any]
) -> float:
    """Return the mean over values and thresholds of the numbers in `raw`; no level is shared."""
    strong = [100 * penalty for penalty in PENALTIES]
    by_value = reached(np.hstack([one_hot(c) for c in columns]), label, UNPOOLED)
    return (2 * by_value + reached(np.hstack(step_features(columns, raw)), label, strong)) / 3


def number_features(columns: Columns, raw: Columns) -> list[Floats]:
    """Return per column the mean of the numbers behind what is shown, of variance 1, or indicators of texts.

    A column of its own says where it is missing; the number is then the mean.
    """
    features = []
    for shown, values in zip(columns, raw, strict=True):
        if any(isinstance(value, str) for value in values):
            features.append(one_hot(shown))
            continue
        known: dict[Any, set[float]] = {one: set() for one in shown}
        for one, value in zip(shown, values, strict=True):
            known[one] |= set() if value is None else {float(value)}
        number = np.array([np.mean([*known[one]]) if known[one] else np.nan for one in shown])
        missing = np.isnan(number)
        away = np.zeros(len(number))
        if not missing.all() and np.ptp(number[~missing]) > 0:
            own = number[~missing]
            away[~missing] = (own - own.mean()) / own.std()
        features.append(np.stack([away, missing], axis=1))
    return features


def step_features(columns: Columns, raw: Columns) -> list[Floats]:
    """Return per column thresholds of what is shown of numbers, or indicators of texts, centred."""
    features = []
    for shown, values in zip(columns, raw, strict=True):
        if any(isinstance(value, str) for value in values):
            features.append(one_hot(shown))
            continue
        # What is shown stands where the values behind it do, null last.
        pairs = sorted(zip(values, shown, strict=True), key=lambda p: (p[0] is None, p[0]))
        order = list(dict.fromkeys(seen for _, seen in pairs))
        place = np.array([order.index(one) for one in shown])
        matrix = np.array([place >= t for t in range(len(order))], dtype=float).T
        features.append(matrix - matrix.mean(axis=0))
    return features


def held_out_auc(columns: Columns, raw: Columns, label: Sequence[Any], part: Parts) -> float:
    """Return the expected AUC, from discriminants fitted to rows and the scores of rows."""
    found = [0.5]
    for features in (number_features(columns, raw), step_features(columns, raw)):
        best = max(areas(np.hstack(features), label, part, p) for p in MERIT_PENALTIES)
        found.append(shaped_area(best, shape(columns, features, label, part)))
    return max(found)


def held_out_merit(
    name: str, columns: Columns, raw: Columns, label: Sequence[Any], part: Parts
) -> float:
    """Return the expected accuracy or log loss, from the scores of rows by explicit discriminants."""
    both = (np.hstack(of(columns, raw)) for of in (number_features, step_features))
    found = [merit_of(name, own, label, part, p) for own in both for p in MERIT_PENALTIES]
    return max(found) if name == "held-out-accuracy" else min(found)


def target_trace(columns: Sequence[Sequence[Any]], label: Sequence[Any]) -> float:
    """Return the trace of one code per attribute and class, by least squares on rows."""
    target = one_hot(label)[:, :-1]
    codes = []
    for column in columns:
        level = np.array([[float(v == d) for d in dict.fromkeys(column)] for v in column])
        codes.append(level @ np.linalg.lstsq(level, target, rcond=None)[0])
    features = np.hstack(codes)
    fitted = features @ np.linalg.lstsq(features, target, rcond=None)[0]
    return float(np.trace(np.linalg.pinv(target.T @ target) @ (target.T @ fitted)))


def target_coded(columns: Sequence[Sequence[Any]], label: Sequence[Any]) -> float:
    """Return the trace of target codes, adjusted for chance."""
    trace = target_trace(columns, label)
    limit, n = len(set(label)) - 1, len(label)
    freedom = sum(len(set(column)) - 1 for column in columns)
    rest = n - freedom - 1
    if limit < 1 or rest <= 0:
        return 0.0
    return trace - (1 - trace / limit) * freedom * limit / rest


def reached(features: Floats, label: Sequence[Any], penalties: Sequence[float]) -> float:
    """Return the mean over learners of the held-out trace of centred features."""
    target = one_hot(label)
    n, width = features.shape
    rows = np.array(list(Counter(label).values()))  # in the order of the indicators
    if n < 2:
        return 0.0
    found = [0.0]
    for penalty in penalties:
        # A penalty is one more row per coefficient that is wanted at zero.
        stretched = np.vstack([features, np.sqrt(penalty) * np.eye(width)])
        smoother = features @ np.linalg.pinv(stretched)[:, :n]
        left = ((target - smoother @ target) ** 2).sum(axis=0)
        left *= ((n - 1) / (n - 1 - np.trace(smoother))) ** 2
        total = (target**2).sum(axis=0)
        found.append(max(found[-1], float(((total - left) / rows).sum())))
    return float(np.mean(found[1:]))


def counts_of(
    values: Sequence[Any], label: Sequence[Any], classes: Sequence[Any] | None = None
) -> npt.NDArray[np.int64]:
    """Return the contingency table of two columns; `classes` holds all where `label` does not."""
    found = Counter(zip(values, label, strict=True))
    # In the order of the summary's classes: some measures break ties by it.
    classes = sorted(set(label if classes is None else classes), key=lambda y: (y is None, y))
    return np.array([[found[v, y] for y in classes] for v in dict.fromkeys(values)])


def attribute_value(
    name: str,
    values: Sequence[Any],
    label: Sequence[Any],
    raw: Sequence[Any] = (),
    part: Parts | None = None,
) -> float:
    """Return a measure of one column against the label, from rows; `raw` as it was unmasked."""
    measure = MEASURES.get(name)
    if measure.scope is Scope.ATTRIBUTE:
        return measure(Contingency.of(counts_of(values, label)))
    return configuration_value(name, [values], label, [raw], part)


def configuration_value(
    name: str,
    columns: Sequence[Sequence[Any]],
    label: Sequence[Any],
    raw: Sequence[Sequence[Any]] = (),
    part: Parts | None = None,
) -> float:
    """Return a measure of a whole configuration, from rows.

    `raw` holds the unmasked columns, `part` says what `parts_of` says of the rows: measures that hold
    rows out ask for both.
    """
    assert name in BRUTE | HELD_OUT, f"add a definition by rows of {name!r} to BRUTE"
    by_fold = HELD_OUT.get(name)
    if by_fold is not None:
        assert part is not None, f"{name} holds out rows: say of which part each is"
        return by_fold(columns, raw, label, part)
    return BRUTE[name](columns, raw, label)


def mean_contingency(pairs: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> float:
    """Return the mean over pairs of columns of chi-square / N less chance, x / (1 + |x|), row by row."""
    found = []
    for one, other in pairs:
        n, a, b = len(one), Counter(one), Counter(other)
        both = Counter(zip(one, other, strict=True))
        phi = sum((both[v, w] - a[v] * b[w] / n) ** 2 / (a[v] * b[w]) for v in a for w in b)
        beyond = phi - (len(a) - 1) * (len(b) - 1) / (n - 1)
        found.append(beyond / (1 + abs(beyond)) if min(len(a), len(b)) > 1 else 0.0)
    return float(np.mean(found)) if found else 0.0


def cmim(columns: Sequence[Sequence[Any]], label: Sequence[Any]) -> float:
    """Return the total of conditional mutual information maximisation, without any short cut."""

    def corrected(*given: Sequence[Any]) -> float:
        joined = list(zip(*given, strict=True))
        return attribute_value("adjusted-mi", joined, label)

    left = dict(enumerate(columns))
    score = {i: corrected(c) for i, c in left.items()}
    total = 0.0
    while left:
        best = min(left, key=lambda i: (-score[i], i))
        if score[best] <= 1e-12:
            break
        total += score[best]
        chosen = left.pop(best)
        for i, column in left.items():
            score[i] = min(score[i], corrected(column, chosen) - corrected(chosen))
    return total


BRUTE: dict[str, Callable[[Columns, Columns, Sequence[Any]], float]] = {
    "adjusted-contingency": lambda shown, _, __: mean_contingency(list(combinations(shown, 2))),
    "cmim": lambda shown, _, label: cmim(shown, label),
    "adjusted-pillai": lambda shown, _, label: pillai(shown, label)[1],
    "pillai-plain": lambda shown, _, label: pillai(shown, label)[0],
    "held-out-pillai-values": lambda shown, _, label: held_out(shown, label),
    "held-out-pillai": encodings,
    "target-coded": lambda shown, _, label: target_coded(shown, label),
    "held-out-target-coded": lambda shown, _, label: held_out_target_coded(
        shown, label, target_trace(shown, label)
    ),
}
"""Measures of configurations by name, of what is shown, of the unmasked columns and of the label."""
HELD_OUT: dict[str, Callable[[Columns, Columns, Sequence[Any], Parts], float]] = {
    "held-out-auc": held_out_auc,
    "held-out-accuracy": partial(held_out_merit, "held-out-accuracy"),
    "held-out-log-loss": partial(held_out_merit, "held-out-log-loss"),
}
"""Those that hold rows out, which also ask for the part of each row."""
