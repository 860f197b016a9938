"""Definitions straight from the formulae, in plain Python and slow, and small generated tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from aegis.measures import Cooccurrence, CountsByFold
from aegis.measures.by_fold import ClassCounts, OtherFolds, ShownLevels, later


@st.composite
def count_tables(draw, max_rows=5, max_columns=4, max_count=6):
    """Tables with empty rows and columns among them, possibly empty as a whole."""
    rows = draw(st.integers(1, max_rows))
    columns = draw(st.integers(1, max_columns))
    cell = st.integers(0, max_count)
    return np.array(
        draw(
            st.lists(
                st.lists(cell, min_size=columns, max_size=columns), min_size=rows, max_size=rows
            )
        )
    )


@st.composite
def groupings(draw, size):
    return np.array(draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))


@st.composite
def data(draw, max_attributes=4):
    """Codes (N, m) and labels (N,), with constant, repeated, nested and unused levels."""
    n = draw(st.integers(1, 24))
    classes = draw(st.integers(1, 3))
    column = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    columns = [np.array(draw(column))]
    for _ in range(draw(st.integers(0, max_attributes - 1))):
        kind = draw(st.sampled_from(["free", "free", "equal", "nested", "constant"]))
        base = columns[draw(st.integers(0, len(columns) - 1))]
        columns.append(
            {
                "free": lambda: np.array(draw(column)),
                "equal": base.copy,
                "nested": lambda base=base: base // 2,
                "constant": lambda base=base: np.full_like(base, 1),
            }[kind]()
        )
    label = draw(st.lists(st.integers(0, classes - 1), min_size=n, max_size=n))
    return np.stack(columns, axis=1), np.array(label)


def stack(codes, label, levels=None):
    """Return the by-class co-occurrence (C, d, d) and the offsets of rows of codes."""
    levels = levels or [int(column.max()) + 2 for column in codes.T]  # one empty level each
    offsets = np.cumsum([0, *levels])
    indicators = np.zeros((len(label), offsets[-1]))
    for i in range(codes.shape[1]):
        indicators[np.arange(len(label)), offsets[i] + codes[:, i]] = 1
    folds = [indicators[label == y] for y in range(int(label.max()) + 1)]
    # Products of floats, which are exact below 2^53 and much faster than those of integers.
    return np.array([np.rint(fold.T @ fold) for fold in folds]).astype(np.int64), offsets


def cooccurrence(codes, label):
    return Cooccurrence.of(*stack(codes, label))


class Pairs(ClassCounts):
    """Counts of all pairs of levels in memory, shape (K, C, d, d), read on and below the diagonal."""

    def __init__(self, whole, first=0):
        self.whole = whole
        below = np.tril(whole)[:, :, first:]

        def count(some):
            return below.sum(axis=1, keepdims=True) if some is None else below[:, some]

        super().__init__(count, max(whole.shape[1], 1), max(whole.shape[1], 1))


def by_fold(rows, joint, total, offsets, chance=None):
    """Return the counts of the levels that vary, and where those of each attribute start."""
    count = joint.sum(axis=(0, 1))
    varying = np.flatnonzero((count > 0) & (count < rows.sum()))
    pairs = Pairs(total[:, :, varying[:, None], varying])
    chance = None if chance is None else chance[varying]
    counts = CountsByFold(rows, joint[..., varying], pairs, OtherFolds.of(rows), chance=chance)
    return counts, np.searchsorted(varying, offsets)


def in_parts(codes, label, fold, levels=None):
    """Return the counts by part and class of rows of codes, and the offsets."""
    levels = levels or [int(column.max()) + 2 for column in codes.T]
    classes = int(label.max()) + 1
    offsets = np.cumsum([0, *levels])
    rows = np.zeros((int(fold.max()) + 1, classes))
    joint = np.zeros((*rows.shape, offsets[-1]))
    total = np.zeros((*joint.shape, offsets[-1]))
    for line, y, k in zip(codes, label, fold, strict=True):
        own = offsets[:-1] + line
        rows[k, y] += 1
        joint[k, y, own] += 1
        total[k, y, own[:, None], own] += 1
    return by_fold(rows, joint, total, offsets)


def by_attribute(joint, offsets):
    """Return what each attribute shows: its levels, one by one."""
    return [ShownLevels(joint[..., start:stop]) for start, stop in pairwise(offsets)]


def in_thresholds(
    counts: CountsByFold, offsets: npt.NDArray[np.int64], ordered: Sequence[bool]
) -> CountsByFold:
    """Return counts with thresholds for the levels of ordered attributes, as `thresholds` does.

    The indicator of level t becomes that of t or a later level, so that the coefficient of a
    threshold is the step between neighbours.

    Parameters
    ----------
    counts
        Levels in the order of their values.
    offsets
        Where each attribute's levels start, shape (m + 1,).
    ordered
        Per attribute whether its levels have an order.
    """
    joint, total = counts.joint.copy(), counts.total.whole.copy()
    chance = None if counts.chance is None else counts.chance.copy()
    for place, known in enumerate(ordered):
        if known:
            own = slice(int(offsets[place]), int(offsets[place + 1]))
            joint[:, :, own] = later(joint[:, :, own], 2)
            total[:, :, own] = later(total[:, :, own], 2)
            total[:, :, :, own] = later(total[:, :, :, own], 3)
            if chance is not None:
                chance[own] = later(chance[own], 0)
    return by_fold(counts.rows, joint, total, offsets, chance)[0]


def rows_of(table):
    """Expand counts to (value, class) pairs, one per row of data."""
    return [
        (x, y) for x, row in enumerate(table) for y, count in enumerate(row) for _ in range(count)
    ]


def entropy(values):
    counts = Counter(values)
    n = sum(counts.values())
    return -math.fsum(c / n * math.log2(c / n) for c in counts.values())


def mi(table):
    rows = rows_of(table)
    if not rows:
        return 0.0
    joint, xs, ys = Counter(rows), Counter(x for x, _ in rows), Counter(y for _, y in rows)
    n = len(rows)
    return math.fsum(c / n * math.log2(c * n / (xs[x] * ys[y])) for (x, y), c in joint.items())


def sizes(table):
    rows = rows_of(table)
    return len(rows), len({x for x, _ in rows}), len({y for _, y in rows}), len(set(rows))


def mi_corrected(table):
    n, kx, ky, _ = sizes(table)
    return max(0.0, mi(table) - (kx - 1) * (ky - 1) / (2 * n * math.log(2))) if n else 0.0


def mi_miller_madow(table):
    n, kx, ky, kxy = sizes(table)
    return mi(table) + (kx + ky - kxy - 1) / (2 * n * math.log(2)) if n else 0.0


def expected_mi(table):
    """Sum over every possible count of every cell, with exact binomial coefficients."""
    n, kx, ky, _ = sizes(table)
    if kx < 2 or ky < 2:
        return 0.0
    total = 0.0
    for a, b in product(table.sum(axis=1).tolist(), table.sum(axis=0).tolist()):
        for o in range(max(1, a + b - n), min(a, b) + 1):
            chance = math.comb(a, o) * math.comb(n - a, b - o) / math.comb(n, b)
            total += chance * o / n * math.log2(n * o / (a * b))
    return total


def rfi(table):
    rows = rows_of(table)
    label = entropy(y for _, y in rows)
    return (mi(table) - expected_mi(table)) / label if label else 0.0


def chi2(table):
    n = table.sum()
    total = 0.0
    for x, y in product(range(table.shape[0]), range(table.shape[1])):
        expected = table[x].sum() * table[:, y].sum() / n if n else 0
        if expected:
            total += (table[x, y] - expected) ** 2 / expected
    return total


def phi2(table):
    return chi2(table) / table.sum() if table.any() else 0.0


def v_plain(table):
    _, r, c, _ = sizes(table)
    return math.sqrt(phi2(table) / (min(r, c) - 1)) if min(r, c) > 1 else 0.0


def v_corrected(table):
    n, r, c, _ = sizes(table)
    if min(r, c) < 2:
        return 0.0
    phi = max(0.0, phi2(table) - (r - 1) * (c - 1) / (n - 1))
    limit = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return math.sqrt(phi / limit) if limit > 1e-9 else 0.0


def g1(table):
    rows = rows_of(table)
    wrong = sum(a[0] == b[0] and a[1] != b[1] for a in rows for b in rows)
    return wrong / len(rows) ** 2 if rows else 0.0


def g2(table):
    rows = rows_of(table)
    wrong = sum(any(a[0] == b[0] and a[1] != b[1] for b in rows) for a in rows)
    return wrong / len(rows) if rows else 0.0


def g3(table):
    n = int(table.sum())
    return 1 - sum(int(row.max()) for row in table) / n if n else 0.0


def g3_held_out(table):
    """Leave each row out, make the rule from the rest, predict."""
    rows = rows_of(table)
    wrong = 0
    for i, (x, y) in enumerate(rows):
        rest = rows[:i] + rows[i + 1 :]
        near, overall = Counter(b for a, b in rest if a == x), Counter(b for _, b in rest)
        classes = sorted({b for _, b in rows})
        guess = max(classes, key=lambda c, near=near, overall=overall: (near[c], overall[c], -c))
        wrong += guess != y
    return wrong / len(rows) if rows else 0.0


BRUTE = {
    "mi": mi,
    "adjusted-mi": mi_corrected,
    "mi-miller-madow": mi_miller_madow,
    "rfi": rfi,
    "chi2": chi2,
    "phi2": phi2,
    "adjusted-cramers-v": v_corrected,
    "cramers-v-plain": v_plain,
    "g1": g1,
    "g2": g2,
    "g3": g3,
    "held-out-g3": g3_held_out,
}


def onehot(values):
    return (np.asarray(values)[:, None] == np.unique(values)).astype(float)


def pillai(codes, label):
    """Trace and rank from the centred indicators of every row, all levels kept."""
    z = np.hstack([onehot(column) for column in codes.T])
    u = onehot(label)
    z, u = z - z.mean(axis=0), u - u.mean(axis=0)
    inverse = [np.linalg.pinv(m.T @ m, rcond=1e-9, hermitian=True) for m in (z, u)]
    trace = np.trace(inverse[0] @ z.T @ u @ inverse[1] @ u.T @ z)
    return float(trace), int(np.linalg.matrix_rank(z, tol=1e-7))


def held_out(codes, label, penalties):
    """The held-out trace of regressions on the values of each column."""
    return smoothed(np.hstack([onehot(column) for column in codes.T]), label, penalties)


def smoothed(z, label, penalties):
    """The smoother of every row written out, one penalty at a time."""
    u = onehot(label)
    n, rows = len(u), u.sum(axis=0)
    z, u = z - z.mean(axis=0), u - u.mean(axis=0)
    found = []
    for penalty in penalties:
        smoother = z @ np.linalg.solve(z.T @ z + penalty * np.eye(z.shape[1]), z.T)
        freedom = n - 1 - np.trace(smoother)
        # One row alone leaves nothing to hold out.
        charge = ((n - 1) / freedom) ** 2 if n > 1 else 1.0
        left = ((u - smoother @ u) ** 2).sum(axis=0) * charge
        found.append((((u**2).sum(axis=0) - left) / rows).sum())
    return found


def left_out(codes, label, penalty):
    """The same, every row predicted from regressions that were fitted without it."""
    z = np.hstack([onehot(column) for column in codes.T])
    u = onehot(label)
    n, gain = len(u), 0.0
    for i in range(n):
        rest = np.arange(n) != i
        middle, share = z[rest].mean(axis=0), u[rest].mean(axis=0)
        own = z[rest] - middle
        weights = np.linalg.solve(
            own.T @ own + penalty * np.eye(z.shape[1]), own.T @ (u[rest] - share)
        )
        worse, better = u[i] - share, u[i] - share - (z[i] - middle) @ weights
        gain += ((worse**2 - better**2) / u.sum(axis=0)).sum()
    return gain * (1 - 1 / n) ** 2


def cmim(codes, label):
    """Every conditional term of every candidate in every round."""
    label = label.tolist()

    def information(*columns):
        values = {v: i for i, v in enumerate(sorted(set(zip(*columns, strict=True))))}
        table = np.zeros((len(values), max(label) + 1), dtype=int)
        for value, y in zip(zip(*columns, strict=True), label, strict=True):
            table[values[value], y] += 1
        return mi_corrected(table)

    columns = [column.tolist() for column in codes.T]
    chosen, gains = [], []
    while len(chosen) < len(columns):
        scores = {}
        for i in set(range(len(columns))) - set(chosen):
            terms = [information(columns[i], columns[j]) - information(columns[j]) for j in chosen]
            scores[i] = min([information(columns[i]), *terms])
        gain = max(scores.values())
        if gain <= 1e-12:
            break
        # Scores within rounding of the best are ties, which go to the lowest index.
        chosen.append(min(i for i, score in scores.items() if score > gain - 1e-10))
        gains.append(gain)
    return chosen, gains


def steps(codes, ordered):
    """Return the 0/1 features of rows that a learner sees which cuts ordered columns in two."""
    found = [
        column >= level if known else column == level
        for column, known in zip(np.asarray(codes).T, ordered, strict=True)
        for level in np.unique(column)
    ]
    return np.array(found, dtype=float).T
