"""What the package adds besides records: a command, a format of summaries, a section, a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.output import Output
from aegis.report import ReportSection

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.cli.formats import SummaryRequest
    from aegis.study import Study
    from aegis.summary import Summary

EXAMPLES = ("aegis count-towns t.csv",)
TAKEN_BY = "aegis advise takes a tally"
HOLDS = "is a tally"


def command(table: Annotated[Path, typer.Argument(help="The table to count.")]) -> None:
    """Count the towns of a table."""
    Output().json(dict(Counter(line.split(",")[0] for line in table.read_text().split("\n")[1:-1])))


def advise(asked: SummaryRequest) -> None:
    """Print what was asked of a tally."""
    asked.shell.json({"path": asked.path, "search": asked.search, "top": asked.options["--top"]})


def reconstruct(path: str, attribute: str, options: Mapping[str, Any], shell: Output) -> None:
    """Print which attribute was asked for."""
    shell.json({"path": path, "attribute": attribute, "options": len(options)})


def count_people(study: Study, role: str) -> int:
    """Return the rows of a study, whatever the role."""
    return study.summary.rows * len(role)


def towns_section(summary: Summary, advice: Advice) -> ReportSection:
    """Return a section that counts rows and configurations."""
    words = f"{summary.rows} rows & {len(advice.ranking)} configurations"
    return ReportSection("towns", "Towns", f'<section id="towns">{escape(words)}</section>')
