"""Local suppression: suppress single cells until every record is in a class that is large enough.

The cells are masked values of the quasi-identifiers. In class sizes, a suppressed cell counts as a
separate value, as in every audit of the release. In other tools (sdcMicro) a suppressed cell
matches any value, so these tools suppress fewer cells. But then only one record may match the
values that an attacker knows, and the attacker identifies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aegis.anonymizers.base import Anonymizer, Options, Outcome, Style
from aegis.anonymizers.groups import RecordGroups
from aegis.anonymizers.losses import InformationLoss, relative_deviation
from aegis.anonymizers.method import fitting_groups
from aegis.anonymizers.records import Codes, RecordAttribute, Records, distinct_rows
from aegis.anonymizers.release import SUPPRESSED_VALUE
from aegis.arrays import Flags, Floats, Ints
from aegis.progress import Progress
from aegis.records.cell_search import CellSearch


@dataclass(frozen=True)
class SuppressionOptions(Options):
    """Options of local suppression.

    Attributes
    ----------
    masks
        Masks to apply to quasi-identifiers before suppression, by name, as in a policy: `{age:
        {bucketize: {width: 5}}}`. If you name no mask for an attribute, it stays unmasked if the
        policy lists `identity` or no candidates for it. Otherwise it gets its first candidate.
    importance
        Quasi-identifiers whose cells the method should keep, the most important first. For example,
        if you give two names, suppressing a cell of the first costs 3, a cell of the second costs
        2, and any other cell costs 1.
    empty
        Leave suppressed cells empty, so that numbers stay numbers. Otherwise they show `*`, and
        their column becomes text. Empty cells count as one value, together with cells that were
        empty before.
    """

    masks: dict[str, Any] | None = None
    importance: tuple[str, ...] = ()
    empty: bool = False

    def check(self, records: Records) -> None:
        """Raise an error in the cases of `Options.check`, or if `importance` names a column that is
        not a quasi-identifier.
        """
        super().check(records)
        for name in self.importance:
            records.attribute(name)


def _run(
    records: Records,
    options: SuppressionOptions,
    random: np.random.Generator,  # noqa: ARG001 - the same interface for all methods
    progress: Progress,
) -> Outcome:
    def fits(rows: Ints, of: Ints) -> Flags:
        return fitting_groups(records.take(rows), of, options)

    def spare(sizes: Ints) -> Ints:
        if options.l > 1 or records.persons is not None:
            return np.zeros_like(sizes)
        return np.where(sizes >= 2 * options.k - 1, options.k - 1, 0)

    search = CellSearch(
        [a.codes for a in records.attributes],
        _costs(records, options.importance),
        fits,
        spare,
    )
    with progress.step("Suppressing cells", len(records)) as step:
        starred = search.run(step)
    released: list[Codes] = [
        np.where(starred[:, i], np.int32(_star(a, empty=options.empty)), a.codes)
        for i, a in enumerate(records.attributes)
    ]
    _, labels = distinct_rows(released)
    columns = {
        a.name: tuple(_shown(a, starred[:, i], empty=options.empty))
        for i, a in enumerate(records.attributes)
    }
    return Outcome(
        labels,
        _notes(records, starred, empty=options.empty),
        _details(records, starred),
        columns,
        loss=_loss(records, starred, labels, options.k),
    )


def _costs(records: Records, importance: Sequence[str]) -> Floats:
    """Return the cost of suppressing one cell of each of A attributes, shape (A,). `importance`
    names the attributes that the method should keep, the most important first.
    """
    worth = {name: len(importance) + 1 - place for place, name in enumerate(importance)}
    return np.array([float(worth.get(a.name, 1)) for a in records.attributes])


def _star(attribute: RecordAttribute, *, empty: bool) -> int:
    """Return the code of a suppressed cell: the code of `*` (or null) if the column holds that
    value, else a new code. `empty` says that suppressed cells are null instead of `*`.
    """
    shown = None if empty else SUPPRESSED_VALUE
    domain = attribute.domain
    return domain.index(shown) if shown in domain else attribute.size


def _shown(attribute: RecordAttribute, starred: Flags, *, empty: bool) -> list[Any]:
    """Return the values to release, one for each record: as text if a `*` is among them, otherwise
    in the type of the column. `starred` says which cells are suppressed.
    """
    mark = None if empty else SUPPRESSED_VALUE
    as_text = bool(starred.any()) and not empty
    values = [str(value) if as_text and value is not None else value for value in attribute.domain]
    return [
        mark if star else values[code]
        for code, star in zip(attribute.codes.tolist(), starred.tolist(), strict=True)
    ]


def _details(records: Records, starred: Flags) -> dict[str, Any]:
    return {
        "cells": int(starred.size),
        "suppressed_cells": int(starred.sum()),
        "suppressed_cells_of": {
            a.name: int(starred[:, i].sum()) for i, a in enumerate(records.attributes)
        },
        "rows_with_suppressed_cells": int(starred.any(axis=1).sum()),
    }


def _notes(records: Records, starred: Flags, *, empty: bool) -> tuple[str, ...]:
    cells = int(starred.sum())
    if not cells:
        return ("no cells are suppressed: all classes are large enough",)
    per = sorted(
        ((int(starred[:, i].sum()), a.name) for i, a in enumerate(records.attributes)),
        key=lambda ranked: (-ranked[0], ranked[1]),
    )
    listed = ", ".join(f"{name} {count:,}" for count, name in per if count)
    rows = int(starred.any(axis=1).sum())
    shown = "left empty" if empty else f"shown as {SUPPRESSED_VALUE}"
    return (
        f"{cells:,} of {starred.size:,} cells of quasi-identifiers ({100 * cells / starred.size:.2g} "
        f"%) in {rows:,} of {len(records):,} rows are suppressed and {shown}: {listed}",
        "a suppressed cell counts as a separate value, which matches only other suppressed cells: an "
        "audit of the released rows counts classes in the same way",
    )


def _loss(records: Records, starred: Flags, labels: Ints, k: int) -> InformationLoss:
    """Return the information loss of the release; a suppressed cell counts as if it were replaced
    by the centroid of the table. `labels` has the class of each record.
    """
    cells = dict(zip((a.name for a in records.attributes), starred.T, strict=True))
    deviation = partial(relative_deviation, records, lambda own, away, _: away[cells[own.name]])
    return InformationLoss.of(RecordGroups.number(labels), k, deviation, float(starred.mean()))


LOCAL_SUPPRESSION = Anonymizer(
    "local-suppression",
    "Suppresses only cells, so that each record shares its values with k - 1 others.",
    "Cell suppression of Sweeney 2002 and Meyerson and Williams 2004; greedy by patterns",
    SuppressionOptions,
    Style.GENERALISED,
    "N log N per pattern of suppressed attributes",
    True,
    _run,
    by_cell=True,
)
