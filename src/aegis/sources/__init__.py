"""Open anything tabular as an Ibis table. No other package refers to a certain engine."""

from aegis.sources.database import open_database, open_named, table_names, transaction
from aegis.sources.dialect import Reading, TextDialect
from aegis.sources.embedded import embedded, limit_memory, query_progress
from aegis.sources.open import FORMATS, is_table_file, open_part, open_table, parts_of
from aegis.sources.proposing import open_proposing
from aegis.sources.source import DIGESTED, Source

__all__ = [
    "DIGESTED",
    "FORMATS",
    "Reading",
    "Source",
    "TextDialect",
    "embedded",
    "is_table_file",
    "limit_memory",
    "open_database",
    "open_named",
    "open_part",
    "open_proposing",
    "open_table",
    "parts_of",
    "query_progress",
    "table_names",
    "transaction",
]
