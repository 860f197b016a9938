"""`aegis reconstruct`: estimate the joint counts of an attribute and the label from masked values."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import HTML, Opening, check_outputs, opens_table, written, written_dict
from aegis.cli.output import Output, RunOptions, console, fixed, heading, line, pairs, reporting
from aegis.cli.parameters import (
    Format,
    PolicyOfTable,
    TableOrBundle,
    VerifyKey,
    given_options,
)
from aegis.options import option
from aegis.registry import format_of_summary, refuse_added
from aegis.words import counted

if TYPE_CHECKING:
    from rich.table import Table

    from aegis.papers.commands.heat_map import HeatMap
    from aegis.papers.estimates.deviation import JointEstimate

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
PANEL = "Research"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis reconstruct table.aegis --attribute age",
    "aegis reconstruct table.csv -p policy.yaml --attribute age --method smooth --know nothing",
    "aegis reconstruct table.aegis --attribute age --method closed-form --mask quantiles",
)
MOST_LISTED = 24
"""Number of values in the table for people; the heat map shows all values."""


@dataclass(frozen=True, kw_only=True)
class AskedEvidence:
    """Options that select the masks and counts to use, and the method of reconstruction."""

    method: str = option(
        "all-evidence", "all-evidence, smooth, channel-em, closed-form, ipf or sampling.", "NAME"
    )
    know: str | None = option(
        None,
        "What the estimate may use besides masked values: raw (counts by value and label), "
        "histogram or nothing. By default: histogram, if the summary has it.",
        "WHAT",
    )
    mask: list[str] | None = option(
        None,
        "Use only this mask, such as quantiles or 'bucketize(width=10)'. Repeat the option "
        "for several. By default: all candidates.",
        "MASK",
    )
    measure: str = option(
        "mi", "Measure of one attribute to compare.", "NAME", short="-m", offers="measures"
    )


@dataclass(frozen=True, kw_only=True)
class ReconstructCommand:
    """Options and arguments of `aegis reconstruct`."""

    table: TableOrBundle
    attribute: Annotated[
        str, typer.Option("--attribute", "-a", metavar="NAME", help="The attribute to reconstruct.")
    ]
    policy: PolicyOfTable = None
    evidence: AskedEvidence
    plot: Path | None = option(None, "Write the heat map (.html or .svg).", "FILE")
    verify_key: VerifyKey = None
    opening: Opening
    running: RunOptions


@opens_table
def command(options: ReconstructCommand) -> None:
    """Estimate the joint distribution of an attribute and the label from its masked values.

    You give a table and its policy, or a summary. Aegis prints estimated and true
    numbers of rows by value and class, a heat map, and the total variation distance
    between both (0: equal, 1: nothing in common). It also prints the attribute's
    estimated predictive value, with guaranteed bounds. If a summary has no counts by
    raw value and label, Aegis shows no true numbers. For a protected summary, the
    label table reveals the number of rows in each cell and class. Aegis prints these
    numbers, each with its error."""
    from aegis.files import write_text
    from aegis.papers.estimates.deviation import measure_of_attributes
    from aegis.policy import load_policy
    from aegis.study import Study
    from aegis.summary import Information, Summary

    table, plot, evidence = options.table, options.plot, options.evidence
    check_outputs(
        [(plot, (*HTML, ".svg"))], force=options.running.force, inputs=(table, options.policy)
    )
    if evidence.know is not None:
        Information.of(evidence.know)
    measure_of_attributes(evidence.measure)
    shell = options.running.shell
    summary_format: Any = format_of_summary(table)
    if not hasattr(summary_format, "reconstruct"):
        refuse_added(table)
    else:
        exact = {"--plot": plot, "--verify-key": options.verify_key} | given_options(evidence)
        summary_format.reconstruct(table, options.attribute, exact, shell)
        return
    declared = None if options.policy is None else load_policy(options.policy)
    subject = options.opening.subject(
        table, declared, quiet=options.running.quiet, verify_key=options.verify_key
    )
    with reporting(quiet=options.running.quiet) as progress:
        policy = None if isinstance(subject, Summary) else declared  # a summary has its masks
        study = Study(subject, policy, seed=options.running.seed, progress=progress)
        estimate = study.reconstruct(
            options.attribute,
            know=evidence.know,
            method=evidence.method,
            masks=evidence.mask,
            measure=evidence.measure,
        )
    if plot is not None:
        picture = _picture(estimate)
        write_text(plot, picture.svg() if plot.suffix.lower() == ".svg" else picture.html())
    _print(shell, estimate, plot)


def _picture(estimate: JointEstimate) -> HeatMap:
    from aegis.papers.commands.heat_map import HeatMap

    attribute = estimate.attribute
    return HeatMap(
        title=f"Rows by {attribute.name} and {estimate.label}",
        across=attribute.name,
        values=estimate.values,
        classes=estimate.classes,
        estimate=estimate.reconstruction.table,
        truth=None if attribute.domain else attribute.joint.astype(float),
    )


def _print(shell: Output, estimate: JointEstimate, plot: Path | None) -> None:
    values, label_classes, truth = estimate.values, estimate.classes, estimate.truth
    data = {"schema": SCHEMA} | estimate.to_dict() | {"files": written_dict([plot])}
    header = ("value", *(f"{k}:{c}" for c in label_classes for k in ("estimate", "truth")))
    true_rows: Sequence[Sequence[int | None]] = truth or [[None] * len(label_classes)] * len(values)
    rows = zip(values, estimate.reconstruction.table.tolist(), true_rows, strict=True)
    lines = ([value, *chain(*zip(estimated, true, strict=True))] for value, estimated, true in rows)
    if shell.as_data(data, header, lines):
        if shell.format is Format.CSV:
            shell.say(*written([plot]))
        return
    shell.warn(estimate.reconstruction.notes)
    shell.show(pairs(_overview(estimate)))
    title = "Estimated rows" if truth is None else "Estimated and true rows"
    width = console(sys.stdout).width
    blocks = list(_values(estimate, width))
    shell.show(heading(title), blocks[0])
    for block in blocks[1:]:
        shell.show(line(""), block)
    if len(values) > MOST_LISTED:
        shell.show(
            line(
                f"The {MOST_LISTED} most frequent of {len(values):,} values; --format csv lists all.",
                style="dim",
            )
        )
    heat_map = line(_picture(estimate).text(width))
    shell.show(heading("Heat map (darker: more rows of the class)"), heat_map)
    shell.say(*written([plot]))


def _overview(estimate: JointEstimate) -> Iterator[tuple[str, str]]:
    attribute, joint, figures = estimate.attribute, estimate.reconstruction, estimate.figures
    sources = {
        "raw": "counts of all values by label",
        "histogram": "counts of masked values by label, and counts of all values",
    }
    ended = "converged" if joint.converged else "did not converge"
    yield "Attribute", f"{attribute.name}: {len(attribute.all_values):,} values"
    yield "Estimated from", sources.get(str(estimate.know), "counts of masked values by label")
    yield "Method", f"{joint.method}, {ended} after {counted(joint.iterations, 'iteration')}"
    true = "the true one is not in the summary"
    if joint.total_variation is not None:
        yield "Total variation distance", f"{fixed(joint.total_variation)} (0: equal to the truth)"
        true = f"{fixed(estimate.true)} true"
    yield f"{estimate.measure} with the label", f"{fixed(figures.estimate)} estimated, {true}"
    if figures.lower is not None:
        yield (
            "Guaranteed bounds",
            f"{fixed(figures.lower)} to {fixed(figures.upper)}; "
            f"the finest mask shows {fixed(figures.masked)}",
        )


def _values(estimate: JointEstimate, width: int) -> Iterator[Table]:
    from aegis.papers.commands.estimate_tables import estimate_tables

    attribute, table, values = estimate.attribute, estimate.reconstruction.table, estimate.values
    has_truth = attribute.domain is None
    rows_of: list[float] = attribute.counts.tolist() if has_truth else table.sum(axis=1).tolist()
    chosen = sorted(sorted(range(len(values)), key=lambda i: -rows_of[i])[:MOST_LISTED])
    cells = []
    for i in chosen:
        figures = [[fixed(float(estimated), 1)] for estimated in table[i]]
        if has_truth:
            for cell, count in zip(figures, attribute.joint[i].tolist(), strict=True):
                cell.append(f"{count:,}")
        cells.append(figures)
    return estimate_tables(
        attribute.name,
        [values[i] for i in chosen],
        estimate.classes,
        cells,
        titles=("estimate", "truth")[: 1 + has_truth],
        width=width,
    )
