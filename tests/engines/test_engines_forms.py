"""The forms of texts by which `aegis init` goes mean the same on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ibis
import pyarrow as pa

from aegis.policy.suggest.profile import SHAPES

if TYPE_CHECKING:
    from ibis.backends import BaseBackend

    from conftest import Server

TEXTS = (
    "Ann Lee", "Ann123 Lee", "Zoë Müller", "Élodie Ünal", "李伟", "Müller, Zoë", "J. R. Smith", "Jan van der Berg",
    "O'Neil Ann-Marie", "ann", "Ann", "big house", "Street 12", "A-1", "12 Main St", "", "Some text, more. Words",
    "A [b] C", "A ^ C", "A_b C_d", "`A C", "A\\b C", "{A} C", "+49 30 1234567", "(212) 555-0123", "030 123456",
    "01 23 45 67 89", "2024-01-31", "01.02.2020", "00123456", "MRN-00123", "P000123", "E11.9", "a@b.org",
    "10.0.0.1", "123-45-6789", "123e4567-e89b-12d3-a456-426614174000",
)  # fmt: skip


def found(connection: BaseBackend) -> list[tuple[bool, ...]]:
    table = ibis.memtable(pa.table({"place": range(len(TEXTS)), "text": TEXTS}))
    forms = {name: table["text"].re_search(form) for name, form in SHAPES.items()}
    try:
        rows = connection.to_pyarrow(table.select("place", **forms).order_by("place")).to_pylist()
    finally:
        connection.disconnect()
    return [tuple(row[name] for name in SHAPES) for row in rows]


def test_forms_on_duckdb() -> None:
    rows = dict(zip(TEXTS, found(ibis.duckdb.connect()), strict=True))
    names = list(SHAPES)
    for text, forms in rows.items():
        assert sum(forms) <= 1, text
    assert [t for t in TEXTS if rows[t][names.index("person")]] == list(TEXTS[:9])


def test_forms_on_postgresql(postgres: Server) -> None:
    assert found(ibis.connect(postgres.url)) == found(ibis.duckdb.connect())
