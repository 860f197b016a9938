"""Sort ranges of numbers that are written as texts, such as `[70-80)`, `18-24`, `<20` and `90+`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_BOTH = re.compile(rf"([\[(]?){_NUMBER} ?(-|–|to|bis|,|;) ?{_NUMBER}([\])\[]?)")
_BELOW = re.compile(rf"[<≤]=? ?{_NUMBER}")
_ABOVE = re.compile(rf"[>≥]=? ?{_NUMBER}|{_NUMBER} ?[+]")


def bounds(text: str) -> tuple[float, float] | None:
    """Return the smallest and the largest number of a range such as "20-29"; None if the text is
    not a range.
    """
    text = text.strip()
    if (both := _BOTH.fullmatch(text)) is not None:
        low, high = float(both[2]), float(both[4])
        return (low, high) if low <= high else None
    if (below := _BELOW.fullmatch(text)) is not None:
        return -math.inf, float(below[1])
    if (above := _ABOVE.fullmatch(text)) is not None:
        return float(above[1] or above[2]), math.inf
    return None


def in_order(texts: Sequence[str]) -> tuple[str, ...]:
    """Return texts that are ranges of numbers, sorted from low to high. The result is empty if a
    text is not a range or if two ranges overlap.
    """
    known = [(known_bounds, text) for text in texts if (known_bounds := bounds(text)) is not None]
    if len(known) < len(texts):
        return ()
    ascending = sorted(known)
    if any(low[1] > high[0] for (low, _), (high, _) in pairwise(ascending)):
        return ()
    return tuple(text for _, text in ascending)


def merged(ranges: Sequence[str], size: int) -> dict[str, Any]:
    """Return a mask that merges each `size` neighbouring ranges into one range. The last merged
    range may contain fewer.
    """
    groups = [ranges[start : start + size] for start in range(0, len(ranges), size)]
    named = {_name(group): list(group) for group in groups}
    return {"group": {"groups": named, "rest": "other"}}


def _name(group: Sequence[str]) -> str:
    """Return a name for merged ranges, from the first to the last."""
    first, last = _BOTH.fullmatch(group[0].strip()), _BOTH.fullmatch(group[-1].strip())
    if first is not None and last is not None:
        return f"{first[1]}{first[2]}{first[3]}{last[4]}{last[5]}"
    return group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}"
