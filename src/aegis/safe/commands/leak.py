"""`aegis leak`: audit what a file reveals about single persons before you share it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import HTML, JSON, YAML, check_outputs
from aegis.cli.output import Output
from aegis.cli.parameters import (
    Force,
    Format,
    FormatOption,
    Quiet,
    ReportFile,
    file_option,
    takes_records,
)
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.files import BUNDLE
from aegis.options import option
from aegis.safe import PROTECTED
from aegis.words import jsonable

if TYPE_CHECKING:
    from aegis.safe.protect import Difference, DocumentLeak, LeakAudit, ProtectedSummary
    from aegis.summary import Summary

SCHEMA = 1
"""Version of the JSON form; it changes if a field changes its meaning."""
PANEL = "Work from counts instead of rows"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis leak table.aegis",
    "aegis leak march.aegis --with january.aegis --format json",
    "aegis leak told.protected --report leak.html --force",
    "aegis leak policy.yaml --with table.aegis",
)
KINDS = {JSON: "certificate", HTML: "report", YAML: "policy"}
"""Kinds of documents by their extension."""


@dataclass(frozen=True, kw_only=True)
class LeakCommand:
    """Options and arguments of `aegis leak`."""

    subject: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A summary (.aegis), a protected summary (.protected), a certificate (.json), a "
            "report (.html) or a policy (.yaml).",
        ),
    ]
    others: Annotated[
        list[Path] | None,
        file_option(
            "--with",
            text="Another file that a reader may have, such as an older version or a part of a merge. "
            "For a document: the exact summary of the table. Repeat the option for several.",
        ),
    ] = None
    level: str | None = option(
        None,
        "The protection level to check: none, counts or noise. By default: the level that "
        "the file states.",
        "LEVEL",
    )
    threshold: int | None = option(
        None,
        "Cells with fewer rows count as small. By default: 5, or the threshold of a "
        "protected summary.",
        "N",
    )
    report: ReportFile = None
    format: FormatOption = Format.TABLE
    force: Force = False
    quiet: Quiet = False


@takes_records
def command(options: LeakCommand) -> None:
    """Show what a file reveals about single persons.

    You give a summary, a protected summary, or a document that you want to pass on.
    Aegis lists small cells, persons who are alone in their class, rare values, values
    that reveal the label, counts that linear programming can derive, and what two files
    reveal together. If the file does not keep its protection level, or the level that
    you name, the exit code is 1.
    """
    from aegis.safe.protect import LeakAudit

    subject, others, threshold = options.subject, options.others or [], options.threshold
    check_outputs([(options.report, HTML)], force=options.force, inputs=(subject, *others))
    kind = next((k for ends, k in KINDS.items() if subject.suffix.lower() in ends), None)
    leak, differences = (
        _summaries(subject, others, options.level, threshold)
        if kind is None
        else (_document(subject, kind, others, threshold), [])
    )
    _print(options, leak, differences)
    if not (leak.keeps_level if isinstance(leak, LeakAudit) else leak.clean):
        raise typer.Exit(NoAdmissibleConfiguration.exit_code)


def _print(
    options: LeakCommand, leak: LeakAudit | DocumentLeak, differences: list[Difference]
) -> None:
    """Print what a file reveals alone (`leak`) and together with other files (`differences`), in
    the format that the `options` request; write the report if one is requested.
    """
    from aegis.safe.protect import LeakAudit

    shell, report = Output(options.format, options.quiet), options.report
    figures = leak.to_dict()
    if isinstance(leak, LeakAudit):
        figures |= {"with": jsonable(differences)}
    if report is not None:
        from aegis.files import write_text
        from aegis.safe.report.section import render_leak

        write_text(report, render_leak(figures, options.subject.name))
    if shell.format is Format.JSON:
        shell.json({"schema": SCHEMA, "file": str(options.subject)} | figures)
    elif shell.format is Format.CSV:
        shell.figures(figures)
    elif isinstance(leak, LeakAudit):
        _print_summary(shell, leak, differences)
    else:
        from aegis.cli.output import line

        text = "nothing of single persons was found" if leak.clean else "values of single persons"
        shell.show(line(f"{leak.kind}: {text}"), *map(line, leak.findings))


def _read(path: Path) -> Summary | ProtectedSummary:
    if path.suffix.lower() == PROTECTED:
        from aegis.safe.protect import load_protected

        return load_protected(path)
    if path.suffix.lower() == BUNDLE:
        from aegis.summary import load_bundle

        return load_bundle(path)
    if path.is_dir():
        raise PolicyError(f"Cannot read {path}: it is a folder.", hint="Give a file in it.")
    raise PolicyError(
        f"{path} is neither a summary nor a document.",
        hint="Allowed: .aegis, .protected, .json, .html, .yaml.",
    )


def _summaries(
    subject: Path, others: list[Path], level: str | None, threshold: int | None
) -> tuple[LeakAudit, list[Difference]]:
    from aegis.safe.protect import audit_leak, compare

    newer = _read(subject)
    audit = audit_leak(newer, level=level, threshold=threshold)
    figures = [
        compare(newer, _read(path), other=str(path), threshold=audit.threshold) for path in others
    ]
    return audit, figures


def _document(subject: Path, kind: str, others: list[Path], threshold: int | None) -> DocumentLeak:
    from aegis.files import read_text
    from aegis.safe.protect import ProtectedSummary, audit_document

    summaries = []
    for path in others:
        summary = _read(path)
        if isinstance(summary, ProtectedSummary):
            raise PolicyError(
                f"{path} is protected, so Aegis cannot see which values are rare.",
                hint="Give the exact summary (.aegis).",
            )
        summaries.append(summary)
    text = read_text(subject, kind, DataError)
    return audit_document(text, kind, summaries, threshold=threshold or 5)


def _print_summary(shell: Output, audit: LeakAudit, differences: list[Difference]) -> None:
    from aegis.cli.output import Column, heading, line, number, table

    shell.show(line(f"{audit.subject}; states level {audit.level}"), line(""))
    below = f"1 to {audit.threshold - 1} rows"
    columns = (Column("part"), number("cells"), number(below), number("one row"))
    shell.show(
        table(columns, ([p.part, *map(_count, (p.cells, p.small, p.alone))] for p in audit.parts))
    )
    named = (
        Column("attribute", wraps=True),
        number("named"),
        number("rare"),
        number("tell the label"),
        number("derivable"),
    )
    rows = (
        [a.attribute, *map(_count, (a.named, a.rare, a.disclosed, a.derivable))]
        for a in audit.attributes
    )
    shell.show(line(""), table(named, rows), line(""))
    shell.show(
        line(
            f"{audit.persons_alone:,} rows are alone; {audit.classes_disclosed:,} rows are in classes "
            "of one label"
        )
    )
    for difference in differences:
        shell.show(line(""), heading(f"Together with {difference.other}"))
        for part in difference.parts:
            shell.show(
                line(f"{part.part}: {part.cells:,} cells differ, {part.small:,} of them by {below}")
            )
        shell.show(*(line(text) for text in difference.findings))
    shell.warn(audit.findings)
    if audit.shortfalls:
        shell.show(line(""), heading(f"Level {audit.demanded} is not held"))
        shell.show(*(line(text) for text in audit.shortfalls))
    else:
        less = f", except for what the table itself shows: {audit.exceptions}"
        shell.show(
            line(""), line(f"Level {audit.demanded} is held{less if audit.exceptions else ''}")
        )


def _count(value: int | None) -> Any:
    return "not told" if value is None else f"{value:,}"
