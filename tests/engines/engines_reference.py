"""Write docs/reference/engines.md from the engine suite: `python tests/engines/engines_reference.py`."""

from __future__ import annotations

from pathlib import Path

from engines_cases import CASES, ENGINES, GAPS

PATH = Path(__file__).parents[2] / "docs" / "reference" / "engines.md"
HEAD = """# Engines

Written by `python tests/engines/engines_reference.py` from the suite that runs every mask on every
engine (`tests/engines`): do not edit.

Each mask is one Ibis expression, so it runs on every engine that Ibis supports. Our tests compare each
engine with the embedded engine, DuckDB. They use difficult values, for example nulls, NaN and infinities,
negative numbers, the limits of 64 bits, decimals, Unicode, long texts, quotes, dates before 1970, and times
with a zone. *yes* means that the engine gives the same result for every value. *no* means that we know a
difference. The section Gaps has the reasons.

| | DuckDB | PostgreSQL | Spark | other engines of Ibis |
|---|---|---|---|---|
| open | files, folders, globs, frames; `duckdb://FILE` with `--table` | `postgres://...` with `--table` | `--engine spark`: Parquet, tables in its catalog; in Python also DataFrames | an Ibis table, in Python; a table of Polars is copied into DuckDB |
| summarise, advise, audit | yes | yes; the server counts pairs | yes; the executors count pairs | as the engine's SQL allows |
| standard errors of scores | yes | yes | yes | no: Aegis does not know the hash functions of these engines |
| `apply` to a file | yes | yes | a folder, written by the executors | yes |
| `apply --into` a table or view | `duckdb://` | yes, in one transaction | with `aegis sql` | with `aegis sql` |
| masks with noise | yes | yes, Aegis draws the noise in its process | no: the driver would have to read all rows | yes, Aegis draws the noise in its process |
| record-level methods | yes | yes, in memory | no: the driver would have to read all rows | yes, in memory |
| `aegis sql` | yes | yes | yes | Snowflake, BigQuery, Trino, Databricks, ClickHouse |

"""


def reference() -> str:
    """Return the reference as Markdown."""
    lines = [HEAD + "| column and mask | " + " | ".join(ENGINES) + " |"]
    lines.append("|---" * (len(ENGINES) + 1) + "|")
    for case in CASES:
        marks = ["no" if (name, case.name) in GAPS else "yes" for name in ENGINES]
        lines.append(f"| {_cell(case.name)} | " + " | ".join(marks) + " |")
    lines.append("\n## Gaps\n")
    for (engine, case), gap in sorted(GAPS.items()):
        lines.append(f"- **{engine}**, {_cell(case)}: {gap.reason}.")
    if not GAPS:
        lines.append("None is known.")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\\_", "_").replace("*", "\\*").replace("_", "\\_")


if __name__ == "__main__":
    PATH.write_text(reference(), encoding="utf-8")
