"""`aegis reconstruct`: what masks let others infer of an attribute and the label."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli import completion
from aegis.cli.files import HTML, check_outputs, is_protected, written, written_dict
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    Force,
    Format,
    FormatOption,
    Quiet,
    Seed,
    TableOrBundle,
    VerifyKey,
)
from aegis.cli.output import Output, console
from aegis.cli.progress import reporting
from aegis.errors import PolicyError
from aegis.progress import Progress

if TYPE_CHECKING:
    from rich.table import Table

    from aegis.advisor.estimate import AttributeEstimate
    from aegis.cli.heat_map import HeatMap
    from aegis.reconstruction import Reconstruction
    from aegis.sources import Source
    from aegis.summary import AttributeSummary, Summary

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis reconstruct table.aegis --attribute age",
    "aegis reconstruct table.csv -p policy.yaml --attribute age --method smooth --know nothing",
    "aegis reconstruct table.aegis --attribute age --method closed-form --mask quantiles",
    "aegis reconstruct told.protected --attribute age",
)
SHOWN = 24
"""Values of the table for people; the heat map shows all of them."""


@opens_table
def command(
    table: TableOrBundle,
    attribute: Annotated[
        str,
        typer.Option(
            "--attribute", "-a", metavar="NAME", help="The attribute.", show_default=False
        ),
    ],
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="FILE",
            help="The policy (YAML); a summary holds its masks itself.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="all-evidence, smooth, channel-em, closed-form, ipf or sampling.",
        ),
    ] = "all-evidence",
    know: Annotated[
        str | None,
        typer.Option(
            "--know",
            metavar="WHAT",
            help="What is known beside what the masks show: raw (the joint), histogram or nothing. "
            "By default histogram, where the summary carries it.",
            show_default=False,
        ),
    ] = None,
    mask: Annotated[
        list[str] | None,
        typer.Option(
            "--mask",
            metavar="MASK",
            help="A candidate that was seen, such as quantiles or 'bucketize(width=10)'; may be "
            "given again. By default all.",
            show_default=False,
        ),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            "--measure",
            "-m",
            metavar="NAME",
            autocompletion=completion.measures,
            help="Measure of one attribute to compare.",
        ),
    ] = "mi",
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Write the heat map (.html or .svg).",
            show_default=False,
        ),
    ] = None,
    verify_key: VerifyKey = None,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the joint of an attribute and the label from what its masks show.

    In: a table and its policy, or a summary. Out: the estimated rows by value and
    class beside the true ones, their total variation distance (0 the same, 1
    nothing in common), a heat map, and what the estimate says of the attribute's
    predictive value, with bounds that hold whatever the truth is. A summary that
    was made without raw joints has no true rows to show. Of a protected summary:
    the rows by cell and class that its label table leaves, each with its error.
    """
    from aegis.advisor import Scorer
    from aegis.advisor.estimate import (
        information,
        known_of,
        reconstruct_attribute,
        unmasked_measure,
    )
    from aegis.files import write_text
    from aegis.measures import MEASURES, Scope
    from aegis.summary import Information

    check_outputs([(plot, (*HTML, ".svg"))], force=force, inputs=(table, policy))
    given, chosen = None if know is None else information(know), MEASURES.get(measure)
    if chosen.scope is not Scope.ATTRIBUTE:
        raise PolicyError(
            f"Measure {measure!r} is one of whole configurations.",
            hint="For example: mi, chi2, g3.",
        )
    if is_protected(table):
        from aegis.cli.protected import reconstruct_from_protected

        refused = {
            "--method": method if method != "all-evidence" else None,
            "--know": know,
            "--mask": mask,
            "--measure": measure if measure != "mi" else None,
            "--plot": plot,
            "--verify-key": verify_key,
        }
        reconstruct_from_protected(table, attribute, refused, Output(format, quiet))
        return
    with reporting(quiet=quiet) as progress:
        subject = opening.subject(table, quiet=quiet, verify_key=verify_key)
        summary = _summary(subject, policy, seed, progress)
        kept = summary.attributes.get(attribute)
        fallback = Information.HISTOGRAM if kept is None else known_of(kept)
        setting = given or fallback
        found = reconstruct_attribute(
            *(summary, attribute),
            know=setting,
            method=method,
            masks=mask,
            seed=seed,
            progress=progress,
        )
        scorer = Scorer(summary)
        own = summary.attributes[attribute]
        bounds = unmasked_measure(
            *(scorer, attribute, chosen), know=setting, method=method, masks=mask, found=found
        )
        true = None if own.domain else scorer.attribute(own, own.unmasked, chosen)
    page = Output(format, quiet)
    if plot is not None:
        picture = _picture(summary, own, found)
        write_text(plot, picture.svg() if plot.suffix.lower() == ".svg" else picture.html())
    _print(page, summary, own, found, str(setting), _Compared(measure, bounds, true), plot)


def _summary(
    subject: str | Source | Summary, policy: Path | None, seed: int, progress: Progress
) -> Summary:
    from aegis.policy import load_policy
    from aegis.summary import Summary, summarize

    if isinstance(subject, Summary):
        if not subject.label.there:
            raise PolicyError(
                "A reconstruction is of the joint with the label, and the summary has none.",
                hint="Summarise the table under a policy with `label: COLUMN`.",
            )
        return subject
    if policy is None:
        raise PolicyError(
            "A table needs a policy, which names its masks.",
            hint="Add --policy FILE, or give the table's summary (.aegis).",
        )
    declared = load_policy(policy)
    declared.require_label("A reconstruction")
    return summarize(subject, declared, seed=seed, progress=progress)


def _picture(summary: Summary, attribute: AttributeSummary, found: Reconstruction) -> HeatMap:
    from aegis.cli.heat_map import HeatMap

    return HeatMap(
        title=f"Rows by {attribute.name} and {summary.label.column}",
        across=attribute.name,
        values=_labels(attribute),
        classes=summary.label.classes,
        estimate=found.table,
        truth=None if attribute.domain else attribute.joint.astype(float),
    )


def _labels(attribute: AttributeSummary) -> tuple[str, ...]:
    from aegis.masks.mapping import text_of

    if attribute.domain is None:
        return attribute.unmasked.labels
    shown = attribute.domain.values.to_pylist()
    return tuple("null" if value is None else str(text_of(value)) for value in shown)


@dataclass(frozen=True)
class _Compared:
    """A measure of the attribute as it is: estimated, bounded and true."""

    measure: str
    bounds: AttributeEstimate
    true: float | None
    """None where the summary does not carry the raw joint."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.measure,
            "estimate": self.bounds.estimate,
            "lower": self.bounds.lower,
            "upper": self.bounds.upper,
            "finest_mask": self.bounds.masked,
            "true": self.true,
        }


def _print(
    page: Output,
    summary: Summary,
    attribute: AttributeSummary,
    found: Reconstruction,
    know: str,
    compared: _Compared,
    plot: Path | None,
) -> None:
    labels, classes = _labels(attribute), summary.label.classes
    truth = None if attribute.domain else attribute.joint.tolist()
    if page.format is Format.JSON:
        page.json(
            {"schema": SCHEMA, "attribute": attribute.name, "label": summary.label.column}
            | {"know": know, "values": list(labels), "classes": list(classes)}
            | found.to_dict()
            | {"truth": truth, "measure": compared.to_dict()}
            | {"files": written_dict([plot])}
        )
        return
    if page.format is Format.CSV:
        header = ("value", *(f"{k}:{c}" for c in classes for k in ("estimate", "truth")))
        unknown = [[None] * len(classes)] * len(labels)
        both = zip(labels, found.table.tolist(), truth or unknown, strict=True)
        page.csv(
            header,
            (
                [value, *(cell for pair in zip(estimate, true, strict=True) for cell in pair)]
                for value, estimate, true in both
            ),
        )
        page.say(*written([plot]))
        return
    from aegis.cli.tables import heading, line, pairs

    page.warn(found.notes)
    page.show(pairs(_overview(attribute, found, know, compared)))
    title = "Estimate, rows" if truth is None else "Estimate and truth, rows"
    width = console(sys.stdout).width
    blocks = list(_values(labels, classes, found, attribute, width))
    page.show(heading(title), blocks[0])
    for block in blocks[1:]:
        page.show(line(""), block)
    if len(labels) > SHOWN:
        page.show(
            line(
                f"{SHOWN} of {len(labels):,} values, the most frequent; --format csv gives all.",
                style="dim",
            )
        )
    picture = _picture(summary, attribute, found)
    shown = line(picture.text(width))
    page.show(heading("Heat map, darker where a class has more rows"), shown)
    page.say(*written([plot]))


def _overview(
    attribute: AttributeSummary, found: Reconstruction, know: str, compared: _Compared
) -> Iterator[tuple[str, str]]:
    from aegis.cli.tables import fixed

    ended = "converged" if found.converged else "did not converge"
    yield "Attribute", f"{attribute.name}: {len(attribute.all_values):,} values"
    yield "Known", {"raw": "the raw joint", "histogram": "masks and histogram"}.get(know, "masks")
    yield "Method", f"{found.method}, {ended} after {found.iterations:,} iterations"
    true = "the summary carries no truth"
    if found.total_variation is not None:
        yield "Total variation distance", fixed(found.total_variation)
        true = f"{fixed(compared.true)} true"
    yield (
        f"{compared.measure} of the attribute",
        f"{fixed(compared.bounds.estimate)} estimated, {true}",
    )
    if compared.bounds.lower is not None:
        yield (
            "Bounds whatever the truth",
            f"{fixed(compared.bounds.lower)} to {fixed(compared.bounds.upper)}; "
            f"the finest mask has {fixed(compared.bounds.masked)}",
        )


def _values(
    labels: Sequence[str],
    classes: Sequence[str],
    found: Reconstruction,
    own: AttributeSummary,
    width: int,
) -> Iterator[Table]:
    from aegis.cli.estimates import estimate_tables
    from aegis.cli.tables import fixed

    known = own.domain is None
    rows_of = own.counts.tolist() if known else found.table.sum(axis=1).tolist()
    chosen = sorted(sorted(range(len(labels)), key=lambda i: -rows_of[i])[:SHOWN])
    cells = []
    for i in chosen:
        figures = [[fixed(float(estimate), 1)] for estimate in found.table[i]]
        for cell, count in zip(figures, own.joint[i].tolist() if known else (), strict=known):
            cell.append(f"{count:,}")
        cells.append(figures)
    return estimate_tables(
        *(own.name, [labels[i] for i in chosen], classes, cells),
        titles=("estimate", "truth")[: 1 + known],
        width=width,
    )
