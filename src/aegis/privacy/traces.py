"""Combine what several releases of one table show about each row, including that a release lacks
the row.

An attacker who can link the rows of several releases knows, for each row, its values in every
release and which releases lack the row. Rows that agree in both form one class for this attacker. A
*trace* is the number of such a class. Traces are computed by cell: the rows of a combination of
values in the frequency table have the same trace.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from aegis.arrays import Flags, Ints
from aegis.privacy.classes import ClassTable
from aegis.privacy.rule import PrivacyRule


def joined(trace: Ints, groups: Ints) -> Ints:
    """Return a number for each cell, shape (cells,), equal if all earlier releases show two cells
    in the same way (equal `trace`), and so does the next one (equal `groups`).
    """
    dense = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return trace * (int(dense.max(initial=0)) + 1) + dense


def extended(trace: Ints, classes: Ints, released: Flags) -> Ints:
    """Return the trace of each cell after one more release, shape (cells,): a number that two cells
    share if all releases show them in the same way, and 0 if no release shows the cell.

    `classes` has the class of each cell in the release, where cells with different traces are in
    different classes, as `joined` makes them; `released` says whether the release shows it.
    """
    new_trace = np.where(released, classes + int(trace.max(initial=0)) + 1, trace)
    unique, numbers = np.unique(new_trace, return_inverse=True)
    absent = len(unique) > 0 and unique[0] == 0
    return numbers.astype(np.int64) + (0 if absent else 1)


def released_cells(
    rule: PrivacyRule,
    releases: Sequence[Ints],
    count: Callable[[int, Ints, Ints], ClassTable],
    start: Ints,
    after: Sequence[Collection[int]],
) -> list[Flags]:
    """Return, for each release, an array of shape (cells,) that says which cells of the frequency
    table the release shows.

    Parameters
    ----------
    rule
        The rule that every release had to meet, together with the earlier releases that it took
        into account.
    releases
        The group of each cell under the masks of each release, shape (cells,), in the order of release.
    count
        Function that counts the classes of a release, given its index, the class of each cell and
        the earlier traces.
    start
        The trace of each cell before the first release, shape (cells,): equal for cells that were
        shown in the same way, 0 for cells that were not shown.
    after
        The indices of the earlier releases that each release took into account.
    """
    released: list[Flags] = []
    for index, groups in enumerate(releases):
        earlier = sorted(after[index])
        trace = traces([releases[i] for i in earlier], [released[i] for i in earlier], start)
        classes = joined(trace, groups)
        table = count(index, classes, trace)
        released.append(np.isin(classes, table.kept_ids(rule.check(table).kept_classes)))
    return released


def traces(releases: Iterable[Ints], released: Iterable[Flags], start: Ints) -> Ints:
    """Return the trace of each cell after all releases (see `extended`). For each release,
    `releases` has the group of each cell, and `released` whether it is shown. `start` has the
    traces before.
    """
    trace = start
    for groups, shows_cell in zip(releases, released, strict=True):
        trace = extended(trace, joined(trace, groups), shows_cell)
    return trace
