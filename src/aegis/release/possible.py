"""Define the possible values of certificate fields that the released file does not determine."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeGuard

from aegis.measures import MEASURES
from aegis.release.mismatch import Mismatch
from aegis.sources import DIGESTED

Path = tuple[str, ...]
_SLACK = 1e-9
"""Tolerated rounding of a figure at the end of its range."""


@dataclass(frozen=True)
class Possible:
    """The possible values of a field: a function that tests a value, and a description in words.

    Attributes
    ----------
    words
        Description of the values in error messages.
    holds
        Function that returns whether a value is possible.
    """

    words: str
    holds: Callable[[Any], bool]


def impossible(document: Mapping[str, Any], released: int) -> Iterator[Mismatch]:
    """Yield each field of a certificate whose value is impossible for a file of `released` rows."""
    rows = document["input"].get("rows")
    if is_count(rows) and rows < released:
        what = f"at least {released:,}, the rows of the file"
        yield Mismatch("input.rows", rows, what, possible=True)
        rows = released
    fields = _fields(document, rows if is_count(rows) else released)
    for path, value in _leaves(document):
        allowed = next((p for pattern, p in fields if _fits(path, pattern)), None)
        if allowed is not None and not allowed.holds(value):
            yield Mismatch(".".join(path), value, allowed.words, possible=True)
    yield from _persons(document)


def is_count(given: Any) -> TypeGuard[int]:
    """Return whether a value can be a number of rows of a table."""
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def is_number(given: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number."""
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)


def _between(low: float, high: float, kind: str = "number") -> Possible:
    """Return the numbers from `low` to `high`, which may be infinite, as possible values."""
    ends = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of {low:g} or more"
    if not math.isfinite(low):
        ends = f"of {high:g} or less" if math.isfinite(high) else ""
    slack = _SLACK * max(1.0, abs(high) if math.isfinite(high) else 1.0)
    return Possible(
        f"a {kind} {ends}".strip(),
        lambda given: is_number(given) and low - slack <= given <= high + slack,
    )


def _counts(low: int, high: int, of: str = "") -> Possible:
    return Possible(
        f"a number {of}from {low} to {high}", lambda given: is_count(given) and low <= given <= high
    )


def _or_null(allowed: Possible) -> Possible:
    return Possible(f"{allowed.words}, or null", lambda g: g is None or allowed.holds(g))


def _is_digest(given: Any) -> bool:
    return isinstance(given, str) and re.fullmatch("[0-9a-f]{64}", given) is not None


def _is_time(given: Any) -> bool:
    try:
        return isinstance(given, str) and datetime.fromisoformat(given) is not None
    except ValueError:
        return False


_DIGEST = _or_null(Possible("64 digits from 0 to f", _is_digest))
_LEAST_ZERO = _or_null(_between(0, math.inf))
_SHARE = _or_null(_between(0, 1, "share"))


def _fields(document: Mapping[str, Any], rows: int) -> list[tuple[Path, Possible]]:
    """Return which values each field of a certificate (`document`) can have if the released file
    has `rows` rows. A field is given by its path of names, in which `*` stands for any name.
    """
    utility = document.get("utility")
    name = utility.get("measure") if isinstance(utility, Mapping) else None
    number_of_rows, any_number = _counts(0, rows), _or_null(_between(-math.inf, math.inf))
    counts_persons = document["privacy"].get("person") is not None
    privacy = {
        number_of_rows: (
            "k",
            "classes",
            "uniques",
            "at_risk.*",
            "homogeneous_rows.*",
            "alpha_k.*.k",
            "l_diversity.*.distinct",
            "class_size_histogram.*.classes",
            "class_size_histogram.*.rows",
        ),
        _or_null(number_of_rows): ("homogeneous_rows_any",),
        _SHARE: ("risk.*.*", "alpha_k.*.alpha", "t_closeness.*.*"),
        _LEAST_ZERO: (
            "mean_class_size",
            "l_diversity.*.entropy",
            "l_diversity.*.recursive_c.*",
            "beta_likeness.*.*",
            "delta_disclosure.*.*",
        ),
    }
    listed = {
        "created": Possible("a time in ISO 8601", _is_time),
        "input.sha256": _DIGEST,
        "*.sha256_of": Possible(" or ".join(DIGESTED), DIGESTED.__contains__),
        "after.*.certificate": _DIGEST,
        "unseen_rows.*": number_of_rows,
        "utility.kept": _or_null(_between(0, 100, "percent")),
        "utility.stderr": _LEAST_ZERO,
        "utility.rmse": _LEAST_ZERO,
        "utility.reference_rmse": _LEAST_ZERO,
        "utility.one_row": _or_null(_between(0, 1, "a share")),
        "utility.reference": _range_of(name),
        "utility.lost_classes.*": _counts(1, rows, "of rows "),
        "groups.count": number_of_rows,
        "groups.smallest": number_of_rows,
        "groups.left_out_rows": number_of_rows,
        "groups.seconds": _LEAST_ZERO,
        "information_loss.*": any_number,
    }
    if counts_persons:  # the file shows all figures in rows
        listed |= {"persons": number_of_rows, "suppressed_persons": number_of_rows}
        listed |= {
            f"privacy.{name}": allowed for allowed, names in privacy.items() for name in names
        }
    return [(tuple(pattern.split(".")), allowed) for pattern, allowed in listed.items()]


def _range_of(measure: Any) -> Possible:
    """Return the possible scores of a measure, as far as its record states them; else any number."""
    said = MEASURES.get(measure).range if isinstance(measure, str) and measure in MEASURES else ""
    low, _, high = said.partition(" .. ")
    at_least = low if high else low.removesuffix(" or more")
    return _between(_number(at_least, -math.inf), _number(high, math.inf))


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


def _leaves(document: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each scalar of a document, with the path of names and indices to it."""
    items: Any = ()
    if isinstance(document, Mapping):
        items = document.items()
    elif isinstance(document, list | tuple):
        items = enumerate(document)
    else:
        yield path, document
    for key, value in items:
        yield from _leaves(value, (*path, str(key)))


def _fits(path: Path, pattern: Path) -> bool:
    return len(path) == len(pattern) and all(
        asked in ("*", name) for name, asked in zip(path, pattern, strict=True)
    )


def impossible_losses(document: Mapping[str, Any], classes: Sequence[str]) -> Iterator[Mismatch]:
    """Yield the field of lost label classes if it contradicts the file or the suppressed rows.

    A class that the file contains is not lost. A lost class cannot have more rows than were
    suppressed. `classes` are the label classes in the file.
    """
    utility = document.get("utility")
    lost = utility.get("lost_classes") if isinstance(utility, Mapping) else None
    suppressed = document.get("suppressed_rows")
    if not isinstance(lost, Mapping) or not all(map(is_count, lost.values())):
        return
    if set(lost) & set(classes):
        what = "classes that the file does not show"
    elif is_count(suppressed) and sum(lost.values()) > suppressed:
        what = f"at most {suppressed:,} rows in all"
    else:
        return
    yield Mismatch("utility.lost_classes", dict(lost), what, possible=True)


def _persons(document: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield numbers of persons that contradict each other, or the rule."""
    persons, suppressed = document.get("persons"), document.get("suppressed_persons")
    if is_count(persons) and is_count(suppressed) and suppressed > persons:
        yield Mismatch("suppressed_persons", suppressed, f"at most {persons:,}", possible=True)
    privacy, rule = document["privacy"], document["policy"].get("privacy")
    k, released = privacy.get("k"), privacy.get("persons")
    asked = rule.get("k") if isinstance(rule, Mapping) else None
    if privacy.get("person") is None or not is_count(k):
        return
    if is_count(released) and k > released:
        what = f"at most {released:,}, the persons of the release"
        yield Mismatch("privacy.k", k, what, possible=True)
    elif is_count(asked) and k < asked:
        what = f"at least {asked:,}, which the rule requires"
        yield Mismatch("privacy.k", k, what, possible=True)


__all__ = ["impossible", "impossible_losses", "is_count", "is_number"]
