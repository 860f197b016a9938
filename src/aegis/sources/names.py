"""Check that each column name refers to one column in every engine."""

from __future__ import annotations

from collections.abc import Iterable

from aegis.errors import DataError


def refuse_duplicates(names: Iterable[str], origin: str) -> None:
    """Raise an error if two columns of a table have the same name, or names that differ only in
    case.

    SQL engines ignore case in names, or rename the second of two columns.
    """
    seen: dict[str, tuple[int, str]] = {}
    for place, name in enumerate(names, start=1):
        before, other = seen.setdefault(name.lower(), (place, name))
        if before == place:
            continue
        alike = (
            f"{name!r}" if name == other else f"{other!r} and {name!r}, the same but for capitals"
        )
        raise DataError(
            f"{origin} has two columns named {alike}: number {before} and number {place}.",
            hint="Each column needs its own name, in which capitals do not count: rename one "
            "of the two.",
        )
