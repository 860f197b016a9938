"""The held-out target-coded trace by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


def separated(columns: Sequence[Sequence[Any]], label: Sequence[Any]) -> float:
    """Return the trace that two classes have whose separation is that of the codes, row by row."""
    y = np.array([value == max(label) for value in label])
    p = y.mean()
    rows = []
    for column in columns:
        share = {v: np.mean([y[i] for i, w in enumerate(column) if w == v]) for v in set(column)}
        code = np.array([share[v] - p for v in column])
        if code.std() > 1e-9:
            rows.append(code)
    if not rows:
        return 0.0
    x = np.array(rows)
    gap = x[:, y].mean(axis=1) - x[:, ~y].mean(axis=1)
    spreads = np.stack([x[:, y].var(axis=1), x[:, ~y].var(axis=1)])
    pooled = np.array([p, 1 - p]) @ spreads
    spreads = np.maximum(spreads, 0.1 * pooled)
    inside = np.where(y, 1, 0)
    centred = x - np.where(inside, x[:, y].mean(axis=1)[:, None], x[:, ~y].mean(axis=1)[:, None])
    scale = np.where(pooled > 1e-12, np.sqrt(pooled), np.inf)
    alike = (centred @ centred.T / len(y)) / np.outer(scale, scale)
    both = alike * (np.sqrt(spreads).T @ np.sqrt(spreads))
    # Codes without spread within a class separate the classes for sure.
    whole = both + 2 * p * (1 - p) * np.outer(gap, gap)
    unit = np.sqrt(whole.diagonal())
    inverse = np.linalg.pinv(whole / np.outer(unit, unit), rcond=1e-9, hermitian=True)
    return float(2 * p * (1 - p) * (gap / unit) @ inverse @ (gap / unit))


def held_out_target_coded(
    columns: Sequence[Sequence[Any]], label: Sequence[Any], plug_in: float
) -> float:
    """Return the held-out trace of target codes from their plug-in trace, value by value.

    Of two classes the plug-in trace is that of `separated`.
    """
    n, classes = len(label), Counter(label)
    if len(classes) == 2:
        plug_in = separated(columns, label)
    alone, parts = 0.0, []
    for column in columns:
        for value, rows in Counter(column).items():
            shown = Counter(y for v, y in zip(column, label, strict=True) if v == value)
            says = sum((shown[y] / rows - classes[y] / n) ** 2 * n / classes[y] for y in classes)
            alone += rows * says / n
            parts.append((rows, rows * says / n))
    if alone <= 1e-12 or len(classes) < 2:
        return 0.0
    limit, traces = len(classes) - 1, [0.0]
    for p in (1, 3, 10, 30, 100, 300):
        explained = plug_in / alone * sum(s * (1 - (p / (r + p)) ** 2) for r, s in parts)
        freedom = plug_in / alone * sum(r / (r + p) * (1 - r / n) for r, _ in parts)
        rest = max(n - 1 - freedom, 1e-9 * n)
        held = explained - max(limit - explained, 0.0) * (((n - 1) / rest) ** 2 - 1)
        traces.append(max(traces[-1], held))
    return float(np.mean(traces[1:]))
