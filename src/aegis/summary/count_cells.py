"""Count the cells of the frequency table, by a query to the engine or from rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa

from aegis.arrays import Int32s, Ints
from aegis.masks import Hierarchy, Mask, join_lookups
from aegis.privacy import ClassTable
from aegis.sources import Source
from aegis.summary.classes import PERSON, count_classes
from aegis.summary.coded_rows import CodedRows, count_by
from aegis.summary.codes import code_values, encode
from aegis.summary.frequency import FrequencyTable, PersonCells
from aegis.summary.model import AttributeSummary

CONSTANT = "constant"
"""Name of the column of a table in which only the rows are counted."""
MAX_CELLS = 50_000_000
"""Largest number of cells of a frequency table in memory."""


CountedCells = tuple[dict[str, Int32s], Ints, Ints | None]
"""The codes by column, the numbers of rows, and the persons of counted cells."""


def count_cells(
    source: Source,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    attributes: Mapping[str, AttributeSummary],
    label: str,
    label_class: Callable[[ir.Table], ir.Value],
    classes: pa.Array,
    *,
    person: str | None = None,
    max_cells: int = MAX_CELLS,
    coded_rows: CodedRows | None = None,
) -> FrequencyTable | None:
    """Count rows by combination of quasi-identifiers, sensitive attributes and label. If there are
    more than `max_cells` cells, or pairs of cell and person, the result is None.

    If one candidate mask of an attribute refines all others, the attribute is counted by the groups
    of this mask, otherwise by its values. Groups give fewer cells, and the counts under each
    candidate are the same.

    Parameters
    ----------
    source, quasi, sensitive, attributes
        The table, its quasi-identifiers and sensitive attributes, and their summaries.
    label, label_class, classes
        The name of the label column, a function that returns the class of each row of a table, and
        all classes in their order.
    person
        Column that identifies persons; then the frequency table also counts persons.
    coded_rows
        The rows, if they have been read. Then only a count of persons needs a query.
    """
    if coded_rows is not None and person is None:
        table, _ = coded_rows.frequency(quasi, sensitive, attributes, label)
        return table if table.cells <= max_cells else None
    named = dict.fromkeys((*quasi, *sensitive))
    finest = {n: _finest_mask(attributes.get(n)) for n in named if n != label}
    with_lookups = join_lookups(source, source.table, finest)
    masked = with_lookups.table
    keys: dict[str, ir.Value] = {}
    sets: dict[str, pa.Array] = {}
    representatives: dict[str, Int32s] = {}
    for i, name in enumerate(dict.fromkeys((*quasi, *sensitive, label))):
        if name == label:
            keys[f"k{i}"] = label_class(masked)
            sets[name] = pa.concat_arrays([classes, pa.nulls(1, classes.type)])
        else:
            keys[f"k{i}"] = with_lookups.masked(name, finest[name])
            _, representatives[name], sets[name] = attributes[name].key_groups
    of_person = {} if person is None else {PERSON: masked[person]}
    read = _read(source, count_by(source, masked, keys | of_person), sets, max_cells)
    if read is None:
        return None
    codes, counts, persons = read
    # The engine returns groups in any order; sorted, equal tables give equal bytes.
    table, cell = FrequencyTable.of((quasi, sensitive, label), codes, representatives, counts)
    if persons is None:
        return table
    return replace(table, persons=PersonCells.of_pairs(cell.astype(np.int64), persons, table.cells))


def _read(
    source: Source, counted: ir.Table, sets: Mapping[str, pa.Array], most: int
) -> CountedCells | None:
    """Read the counted cells from the engine; None if there are more than `most`. `sets` has the
    values of each column.
    """
    codes: dict[str, list[Int32s]] = {name: [] for name in sets}
    counts, persons = [], []
    cells = 0
    for batch in source.batches(counted, rows=1 << 20):
        cells += len(batch)
        if cells > most:
            return None
        for i, (name, values) in enumerate(sets.items()):
            codes[name].append(code_values(batch.column(f"k{i}"), values).astype(np.int32))
        counts.append(batch.column("n").to_numpy().astype(np.int64))
        if PERSON in batch.schema.names:
            persons.append(batch.column(PERSON))
    joined = {name: np.concatenate(parts) for name, parts in codes.items()}
    numbers = encode(pa.concat_arrays(persons))[0] if persons else None
    return joined, np.concatenate(counts), numbers


def _finest_mask(attribute: AttributeSummary | None) -> Mask | None:
    """Return the mask by whose groups the frequency table counts an attribute; None: by its values."""
    finest = None if attribute is None else attribute.finest_key
    return None if finest is None else finest.mask


def count_in_engine(
    source: Source,
    quasi: tuple[str, ...],
    sensitive: tuple[str, ...],
    hierarchies: Mapping[str, Hierarchy] | None = None,
    person: str | None = None,
) -> Callable[[Mapping[str, Mask]], ClassTable]:
    """Return a function that counts, by a query to the engine, the classes (of persons, if `person`
    is given) that masks form. It is used if the frequency table does not fit in memory.
    """

    def classes(masks: Mapping[str, Mask]) -> ClassTable:
        names = dict.fromkeys((*quasi, *sensitive))
        chosen = {name: masks.get(name) for name in names}
        joined = join_lookups(source, source.table, chosen)
        columns = {name: joined.masked(name, mask) for name, mask in chosen.items()}
        if person is not None:
            columns[PERSON] = joined.table[person]
        # Without columns all rows are one class; a table that shows none cannot be asked for.
        masked = joined.table.select(columns or {CONSTANT: ibis.literal(0)})
        return count_classes(
            source,
            quasi,
            sensitive,
            table=masked,
            hierarchies=hierarchies,
            person=None if person is None else PERSON,
        ).table

    return classes
