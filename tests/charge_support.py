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


def average_size(name: str, rows: int, kept: Mapping[Hashable, bool]) -> float:
    """Return rows over classes, weighed by the factor that `name` gives as ARX's source reads."""
    given = re.search(r"factor=([\d.e-]+)", name)
    factor = float(given[1]) if given else 0.5
    shown = sum(min(1, 2 * factor) for stays in kept.values() if stays)
    gone = 0 if all(kept.values()) else min(1, 2 - 2 * factor)
    return rows / (shown + gone or 1)


def shown_classification(
    name: str,
    rows: Sequence[tuple[Hashable, Hashable, str | None]],
    kept: Mapping[tuple[Hashable, Hashable], bool],
) -> float:
    """Return the mean charge of rows (others, shown label, label); a class is the first two.

    Under Iyengar's charges a tie is charged like other classes, and a suppressed row in full.
    """
    given = re.search(r"factor=([\d.e-]+)", name)
    gs = float(given[1]) if given else 0.5
    arx = "charges=arx" in name
    minority, tied, gone = (min(1, 2 - 2 * gs), min(1, 2 * gs), gs) if arx else (1, None, 1)
    labelled = [row for row in rows if row[2] is not None]
    values = len({y for _, _, y in labelled})
    seen = len({shown for _, shown, _ in labelled})
    hidden = 1 - (seen - 1) / (values - 1) if values > 1 else 0
    told: defaultdict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for others, shown, _ in labelled:
        if kept[others, shown]:
            told[others][shown] += 1
    charge = 0.0
    for others, shown, _ in labelled:
        most = [s for s, n in told[others].items() if n == max(told[others].values())]
        if not kept[others, shown]:
            charge += gone
        elif hidden == 1:
            charge += 1
        elif len(most) > 1 and tied is not None:
            charge += tied * (1 - hidden) + hidden
        else:
            full = minority * (1 - hidden) + hidden
            # Of several most frequent ones all rows but those of one are charged.
            charge += full * (1 - 1 / len(most)) if shown in most else full
    return charge / len(labelled)


def _charge(labels: Counter[str], label: str, kept: bool, factor: float) -> float:
    if not kept:
        return factor
    most = [y for y, count in labels.items() if count == max(labels.values())]
    if len(most) > 1:
        return min(1, 2 * factor)
    return 0 if label == most[0] else min(1, 2 - 2 * factor)
