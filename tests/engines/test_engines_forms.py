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
    "10.0.0.1", "123-45-6789", "DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111", "https://example.org/a",
    "00:1B:44:11:3A:B7", "52.3702, 4.8952", "she said that it was not new", "123e4567-e89b-12d3-a456-426614174000",
)  # fmt: skip


FITTING = {
    "date": ["2024-01-31", "01.02.2020"],
    "icd10": ["E11.9"],
    "iban": ["DE89 3704 0044 0532 0130 00"],
    "card": ["4111 1111 1111 1111"],
    "url": ["https://example.org/a"],
    "mac": ["00:1B:44:11:3A:B7"],
    "coordinates": ["52.3702, 4.8952"],
    "prose": ["DE89 3704 0044 0532 0130 00", "she said that it was not new"],
}


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
    # A value has one form of those by which alone a column gets its role.
    alone = [
        names.index(n) for n in ("email", "uuid", "ip", "ssn", "phone", "person", "record", "icd10")
    ]
    for text, forms in rows.items():
        assert sum(forms[i] for i in alone) <= 1, text
    for form, fitting in FITTING.items():
        assert [t for t in TEXTS if rows[t][names.index(form)]] == fitting, form
    assert [t for t in TEXTS if rows[t][names.index("person")]] == list(TEXTS[:9])


def test_forms_on_postgresql(postgres: Server) -> None:
    assert found(ibis.connect(postgres.url)) == found(ibis.duckdb.connect())
