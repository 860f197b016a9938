"""Read times with a time zone as the local times of this zone, without the zone.

The embedded engine stores a moment without its zone, and computes its day in UTC: 00:30 on the first
of January in Berlin would fall on the last of December. Persons know the local date.
"""

from __future__ import annotations

import re
from dataclasses import replace

import ibis
import ibis.expr.types as ir
import pyarrow as pa

from aegis.sources.functions import engine_function
from aegis.sources.source import Source

_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "+00:00", "-00:00"}
_in_zone = engine_function("timezone", ("string", "timestamp('UTC')"), "timestamp(6)")
_OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})")


def in_local_time(source: Source, schema: pa.Schema) -> Source:
    """Return the source with local times in columns whose type names a time zone other than UTC.

    Parameters
    ----------
    source
        A table of the embedded engine.
    schema
        The Arrow types of the columns, which name the zones; the engine's types do not.
    """
    zones = {
        field.name: field.type.tz
        for field in schema
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, *_UTC)
    }
    if not zones:
        return source

    def local(table: ir.Table) -> ir.Table:
        return table.mutate(**{name: _local(table[name], zone) for name, zone in zones.items()})

    numbered = None if source.numbered is None else local(source.numbered)
    notes = (f"{n}: times are read as local times of {z}." for n, z in zones.items())
    return replace(
        source, table=local(source.table), numbered=numbered, notes=(*source.notes, *notes)
    )


def _local(column: ir.Column, zone: str) -> ir.Value:
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return _in_zone(zone, column)
    sign, hours, minutes = offset.groups()
    return _in_zone("UTC", column) + ibis.interval(
        minutes=int(f"{sign}1") * (60 * int(hours) + int(minutes))
    )
