"""Quadratic methods on large tables: Mondrian cells first, the method inside each.

A cell holds `cell_size` records or more, so groups can only be worse where they would have crossed
a boundary between cells; cells are compact, so few would.
"""

from __future__ import annotations

import numpy as np

from aegis.anonymizers.groups import RecordGroups
from aegis.anonymizers.method import Method, Options, Outcome
from aegis.anonymizers.mondrian_cuts import mondrian
from aegis.anonymizers.records import Records
from aegis.progress import SILENT, Progress


def by_cells(
    method: Method,
    records: Records,
    options: Options,
    random: np.random.Generator,
    progress: Progress,
) -> Outcome:
    """Run `method` inside each Mondrian cell of at least `options.cell_size` records.

    Cells keep the domains and scales of the whole table, and l distinct sensitive values, so
    what can be met in the table can be met in each cell. The method's own details are not
    carried over; the notes of the cells are, each once.
    """
    least = max(options.cell_size, options.k)
    cells = RecordGroups.number(mondrian(records, least, distinct=options.l))
    labels = np.empty(len(records), dtype=np.int64)
    notes: dict[str, None] = {}
    offset = 0
    with progress.step("cells", len(records)) as step:
        for start, size in zip(cells.starts, cells.sizes, strict=True):
            rows = cells.order[start : start + size]
            outcome = method(records.take(rows), options, random, SILENT)
            labels[rows] = np.where(outcome.labels >= 0, outcome.labels + offset, -1)
            offset += int(outcome.labels.max()) + 1
            notes.update(dict.fromkeys(outcome.notes))
            step.advance(int(size))
    note = (
        f"{len(records)} records are above partition_above = {options.partition_above}: grouped "
        f"inside {len(cells)} Mondrian cells of {cells.sizes.min()} to {cells.sizes.max()} records."
    )
    return Outcome(labels, (note, *notes), {"cells": len(cells)})
