"""`aegis leak`: audit what a file reveals about single persons before you share it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import HTML, JSON, YAML, check_outputs
from aegis.cli.output import Column, Output, heading, line, number, table
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
from aegis.files import BUNDLE, read_text, write_text
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
    """Print what a file reveals alone and together with others; write the report if requested."""
    from aegis.safe.protect import LeakAudit

    shell, report = Output(options.format, options.quiet), options.report
    figures = leak.to_dict()
    if isinstance(leak, LeakAudit):
        figures |= {"with": jsonable(differences)}
    if report is not None:
        from aegis.safe.report.section import render_leak

        write_text(report, render_leak(figures, options.subject.name))
    if shell.format is Format.JSON:
        shell.json({"schema": SCHEMA, "file": str(options.subject)} | figures)
    elif shell.format is Format.CSV:
        shell.figures(figures)
    elif isinstance(leak, LeakAudit):
        _print_summary(shell, leak, differences)
    else:
        from aegis.safe.protect.documents import document_verdict

        text = document_verdict(leak.kind, passed=leak.clean)
        shell.show(line(text), *(line(f"- {text}") for text in leak.findings))


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
    from aegis.safe.protect.leak import part_legend, verdict

    shell.show(line(audit.subject), line(""))
    below = f"1 to {audit.threshold - 1} rows"
    columns = (Column("part"), number("counts"), number(f"of {below}"), number("of one row"))
    shell.show(
        table(columns, ([p.part, *map(_count, (p.cells, p.small, p.alone))] for p in audit.parts))
    )
    named = (
        Column("attribute", wraps=True),
        number("values named"),
        number("rare"),
        number("all of one label"),
        number("computable"),
    )
    rows = (
        [a.attribute, *map(_count, (a.named, a.rare, a.disclosed, a.derivable))]
        for a in audit.attributes
    )
    shell.show(
        line(part_legend([p.part for p in audit.parts]), style="dim"),
        line(""),
        table(named, rows),
        line(
            f"rare: values of fewer than {audit.threshold} rows. all of one label: values that "
            "reveal the label, because all their rows have the same one. computable: counts that "
            f"a reader can work out to a range of fewer than {audit.threshold} numbers.",
            style="dim",
        ),
        line(""),
        line(_alone(audit)),
    )
    for difference in differences:
        shell.show(line(""), heading(f"Together with {difference.other}"))
        for part in difference.parts:
            shell.show(
                line(
                    f"{part.part}: {part.cells:,} counts differ, {part.small:,} of them by {below}"
                )
            )
        shell.show(*(line(f"- {text}") for text in difference.findings))
    shell.warn(audit.findings)
    if audit.shortfalls:
        shell.show(line(""), heading(verdict(audit.demanded, passed=False)))
        shell.show(*(line(f"- {text}") for text in audit.shortfalls))
    else:
        shell.show(line(""), line(verdict(audit.demanded, audit.exceptions)))


def _alone(audit: LeakAudit) -> str:
    """Return a sentence on rows that are alone in their equivalence class."""
    if audit.persons_alone is None:
        return "The file has no frequency table, so it shows no combination of all attributes."
    return (
        f"{audit.persons_alone:,} rows are alone in their equivalence class. In larger classes, "
        f"{audit.classes_disclosed:,} rows share their label with all others of the class."
    )


def _count(value: int | None) -> Any:
    return "unknown" if value is None else f"{value:,}"
