"""Print a record-level release for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aegis.cli.output import Output
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.policy import Policy
    from aegis.release import AnonymizedRelease


def print_release(shell: Output, release: AnonymizedRelease, policy: Policy) -> None:
    """Print a release with its information loss and its privacy."""
    from aegis.cli.tables import heading, line, pairs

    how = "verified on the written file" if release.path else "verified in memory, not written"
    shell.show(
        line(f"Released {release.released_rows:,} of {counted(release.rows, 'row')}, {how}.")
    )
    shell.show(heading("Release"), pairs(_facts(release)))
    shell.show(heading("Information loss, lower is better"), pairs(_losses(release)))
    shell.show(heading("Privacy, measured on the output"), pairs(_privacy(release, policy)))


def _facts(release: AnonymizedRelease) -> list[tuple[str, str]]:
    from aegis.cli.tables import percent, share

    grouped = release.grouped
    figures = [
        ("method", f"{release.recipe.method} ({release.recipe.anonymizer.reference})"),
        (
            "groups",
            f"{len(grouped.groups):,}, the smallest of {counted(grouped.smallest, 'record')}",
        ),
        ("rows suppressed", share(release.suppressed_rows, release.rows)),
        ("time to group", f"{grouped.seconds:.2f} s"),
    ]
    figures += [
        (f"unseen values, shown as *: {name}", counted(rows, "row"))
        for name, rows in release.unseen.items()
    ]
    if release.dropped:
        figures.append(("columns not released", ", ".join(release.dropped)))
    utility = release.utility
    if utility is not None:
        figures.append(("utility kept", f"{percent(utility.utility_kept)} ({utility.detail})"))
    return figures


def _losses(release: AnonymizedRelease) -> list[tuple[str, str]]:
    from aegis.cli.tables import fixed

    loss = release.grouped.loss
    return [
        ("IL on z-scores", fixed(loss.scaled)),
        ("IL on numbers as they are", fixed(loss.unscaled)),
        ("normalised certainty penalty", fixed(loss.penalty)),
        ("discernibility", f"{loss.discernibility:,}"),
        ("average class size", f"{loss.average_class_size:.2f}"),
        ("the same over k", f"{loss.normalised_class_size:.2f}"),
    ]


def _privacy(release: AnonymizedRelease, policy: Policy) -> list[tuple[str, str]]:
    report = release.audit.report
    criteria = [(str(criterion), "met") for criterion in policy.privacy.criteria]
    claims = release.claims
    claimed = "none: the method promises no k" if claims is None else f"k = {claims['k']}, met"
    return [
        *criteria,
        ("claimed by the method", claimed),
        (f"k, {report.unit} of the smallest class", f"{report.k:,}"),
        ("classes", f"{report.classes:,}"),
        (f"{report.unit} unique by quasi-identifiers", f"{report.uniques:,}"),
        (f"{report.unit} at risk above 0.2", f"{report.at_risk['0.2']:,}"),
    ]


def print_front(shell: Output, release: AnonymizedRelease) -> None:
    """Print the settings that MO-OBAM has tried, and mark those on the Pareto front."""
    from aegis.cli.tables import Column, fixed, heading, line, number, table_of

    shell.show(heading("Information loss against diversity"))
    shell.show(
        table_of(
            release.front,
            (number("clusters"), lambda point: f"{point.clusters:,}"),
            (number("weight"), lambda point: f"{point.weight:g}"),
            (number("IL"), lambda point: fixed(point.information_loss)),
            (number("entropy (bits)"), lambda point: fixed(point.entropy)),
            (number("smallest"), lambda point: f"{point.smallest:,}"),
            (Column("on the front"), lambda point: "yes" if point.efficient else ""),
        ),
        line(
            "\nentropy: sum over sensitive attributes of the least entropy of a cluster.",
            style="dim",
        ),
    )
