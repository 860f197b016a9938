"""What the package adds besides records: a command, a format of summaries, a section, a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from aegis.cli.output import Output
from aegis.report import ReportSection

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.files import Progress
    from aegis.policy import Policy
    from aegis.requests import RankRequest, SearchRequest
    from aegis.study import Study
    from aegis.summary import Summary

EXAMPLES = ("aegis count-towns t.csv",)
TAKEN_BY = "aegis advise takes a tally"
HOLDS = "is a tally"
REFUSED = {"proxy": "it has no rows"}


def command(table: Annotated[Path, typer.Argument(help="The table to count.")]) -> None:
    """Count the towns of a table."""
    Output().json(dict(Counter(line.split(",")[0] for line in table.read_text().split("\n")[1:-1])))


@dataclass(frozen=True)
class Tally:
    """A table, which answers as its exact summary does."""

    study: Study
    summary_format: ClassVar[str] = "tally"
    searchable: bool = True

    def rank(self, request: RankRequest, *, progress: Progress) -> Advice:
        """Rank configurations."""
        return self.study.rank(request.configurations, replace(request, configurations=None))

    def search(self, request: SearchRequest, *, progress: Progress) -> Advice:
        """Search all combinations."""
        return self.study.search(request)

    def report_sections(self, advice: Advice) -> Sequence[ReportSection]:
        """Return one section."""
        return (ReportSection("tally", "Tally", '<section id="tally">A tally.</section>'),)


def open_summary(given: Any, policy: Policy, *, rule_override: bool) -> Tally:
    """Return the tally of the table beside the file."""
    from aegis.study import Study

    return Tally(Study(str(Path(given).with_suffix(".csv")), policy, rule_override=rule_override))


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
