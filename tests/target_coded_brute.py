"""The held-out target-coded trace by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


def held_out_target_coded(
    columns: Sequence[Sequence[Any]], label: Sequence[Any], plug_in: float
) -> float:
    """Return the held-out trace of target codes from their plug-in trace, value by value."""
    n, classes = len(label), Counter(label)
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
