"""Run methods of quadratic cost on large tables: Mondrian cuts the table into cells, and the method
runs in each cell.

A cell has at least `cell_size` records. The cut costs information only for groups that would have
crossed a boundary between cells. Cells are compact, so there are few such groups.
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

    Each cell uses the domains and scales of the whole table, and contains l distinct sensitive
    values. So if the table can meet the options, each cell can, too. The result has the notes of
    all cells, without duplicates; it does not have the method's details.
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
        f"There are more records ({len(records)}) than partition_above = {options.partition_above}, so "
        f"they were grouped inside {len(cells)} Mondrian cells of {cells.sizes.min()} to "
        f"{cells.sizes.max()} records."
    )
    return Outcome(labels, (note, *notes), {"cells": len(cells)})
