"""The joint view of several releases on each row, including its absence.

A reader who can link the rows of releases sees of each row what every release shows, and which
releases lack it. Rows that agree in both are one class for that reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from aegis.privacy.classes import ClassTable
from aegis.privacy.rule import PrivacyRule

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def joined(trace: Ints, shown: Ints) -> Ints:
    """Return one number per cell for the combination of earlier views and one more release,
    (cells,).
    """
    dense = np.unique(shown, return_inverse=True)[1].astype(np.int64)
    return trace * (int(dense.max(initial=0)) + 1) + dense


def extended(trace: Ints, classes: Ints, released: Bools) -> Ints:
    """Return the joint view of releases on each cell after one more release: 0 if none shows it.

    Parameters
    ----------
    trace
        What the releases before show of each cell, shape (cells,): 0 where none shows it.
    classes
        The class of each cell in the release, distinguished by `trace`, too: see `joined`.
    released
        Which cells the release shows.
    """
    seen = np.where(released, classes + int(trace.max(initial=0)) + 1, trace)
    unique, place = np.unique(seen, return_inverse=True)
    absent = len(unique) > 0 and unique[0] == 0
    return place.astype(np.int64) + (0 if absent else 1)


def released_cells(
    rule: PrivacyRule,
    releases: Sequence[Ints],
    count: Callable[[int, Ints, Ints], ClassTable],
    start: Ints,
    after: Sequence[Collection[int]],
) -> list[Bools]:
    """Return which cells each release shows, shape (cells,) each.

    Parameters
    ----------
    rule
        Which every release met, together with those that it took into account.
    releases
        The group of each cell under the masks of each release, shape (cells,), in the order of release.
    count
        Counts the classes of a release: its place, the class of each cell, what was shown before.
    start
        What was shown before the first one, shape (cells,): 0 where nothing was.
    after
        The places of the earlier releases that each release took into account.
    """
    released: list[Bools] = []
    for place, shown in enumerate(releases):
        earlier = sorted(after[place])
        trace = traces([releases[i] for i in earlier], [released[i] for i in earlier], start)
        classes = joined(trace, shown)
        table = count(place, classes, trace)
        released.append(np.isin(classes, table.kept_ids(rule.check(table).kept_classes)))
    return released


def traces(releases: Iterable[Ints], released: Iterable[Bools], start: Ints) -> Ints:
    """Return the joint view of releases on each cell, shape (cells,); parameters as in
    `released_cells`.
    """
    trace = start
    for shown, seen in zip(releases, released, strict=True):
        trace = extended(trace, joined(trace, shown), seen)
    return trace
