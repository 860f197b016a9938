"""ARX's charges of the classification metric, row by row, as its source reads."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence


def arx_classification(
    name: str, rows: Sequence[tuple[Hashable, str]], kept: Mapping[Hashable, bool]
) -> float:
    """Return the mean charge of rows (class, label), under the factor that `name` gives."""
    given = re.search(r"factor=([\d.e-]+)", name)
    factor = float(given[1]) if given else 0.5
    labels: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for key, label in rows:
        labels[key][label] += 1
    return sum(_charge(labels[key], label, kept[key], factor) for key, label in rows) / len(rows)


def _charge(labels: Counter[str], label: str, kept: bool, factor: float) -> float:
    if not kept:
        return factor
    most = [y for y, count in labels.items() if count == max(labels.values())]
    if len(most) > 1:
        return min(1, 2 * factor)
    return 0 if label == most[0] else min(1, 2 - 2 * factor)
