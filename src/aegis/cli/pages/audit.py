"""Print an audit, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.cli.output import Output
from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.privacy import PrivacyReport
    from aegis.privacy.report import AttributeFigures
    from aegis.release import Audit, CertificateCheck

BESIDE = 3
"""Number of sensitive attributes that one table shows side by side."""
RECURSIVE, NEVER = "c, recursive, l = ", "never"
"""Start of the titles of rows on recursive (c,l)-diversity, and the figure if no c suffices."""
LONGEST_BAR = 30
FIELDS = {
    "after": "earlier releases",
    "aegis": "version of Aegis",
    "configuration.name": "name of the configuration",
    "created": "time of the certificate",
    "dropped_columns": "columns left out",
    "input": "rows and digest of the original table",
    "input.origin": "name of the original table",
    "input.sha256": "digest of the original table",
    "output.file": "name of the released file",
    "output.sha256": "digest of the released file",
    "persons": "number of persons",
    "policy.sha256": "digest of the policy",
    "privacy.outside.implied": "released columns that give away masked ones",
    "seeded_noise": "columns whose noise has a seed",
    "suppressed_persons": "persons suppressed",
    "unseen_rows": "values that a mask did not know",
    "utility.columns.*.weight": "utility of each column",
    ".unmasked and .kept": "",
    "utility.kept": "percentage of the utility kept",
    "utility.lost_classes": "label classes of which no row is left",
    "utility.reference": "utility of the original table",
    "utility.reference_rmse": "error of predictions from the original table",
    "utility.stderr": "sampling error of the utility",
}
"""Words for the parts of field names in a certificate. The text is empty if earlier parts of the
name already say the same.
"""
MASK_FIELD = "configuration.masks."
OF_LABELS = " of each label"
CHECK_SCHEMA = 1
"""Version of the JSON form of the check of a certificate."""


def print_audit(shell: Output, audited: Audit, origin: str) -> None:
    """Print every figure of an audit. The verdict comes last."""
    if shell.as_data(audited.to_dict()):
        return
    shell.show(*_head(audited, origin), *_identity(audited.report), *_sizes(audited.report))
    shell.show(*_sensitive(audited.report))
    shell.show(*_outside(audited))
    shell.warn((*audited.warnings, *audited.report.notes))
    if audited.differential_privacy is not None:
        shell.warn(audited.differential_privacy.notes)
    shell.show(*_verdict(audited))


def print_check(shell: Output, check: CertificateCheck, origin: str, certificate: Path) -> None:
    """Print the measured figures, and a line for each figure that differs from the certificate."""
    data = {"schema": CHECK_SCHEMA, "certificate": str(certificate), **check.to_dict()}
    data["audit"] = None if check.audit is None else check.audit.to_dict()
    rows = ([each.what, each.certified, each.measured] for each in check.mismatches)
    if shell.as_data(data, ("what", "certified", "measured"), rows):
        return
    from aegis.cli.tables import heading, line

    if check.audit is not None:
        shell.show(*_head(check.audit, origin), *_identity(check.audit.report))
        shell.show(*_outside(check.audit))
        shell.warn((*check.audit.warnings, *check.audit.report.notes))
    if not check.passed:
        differing = map(line, map(str, check.mismatches))
        shell.show(heading(f"{certificate} differs"), *differing)
    if check.unchecked:
        shell.show(heading("Not checked"), *(line(in_words(text)) for text in check.unchecked))
    if check.passed:
        but = ", except for the fields listed above as not checked" if check.unchecked else ""
        shell.show(heading("Certificate"), line(f"{certificate} matches this file{but}."))


def in_words(unchecked: str) -> str:
    """Return, in words, which fields of a certificate were not checked, and why.

    Examples
    --------
    >>> in_words("utility.stderr, utility.kept: needs the original table (--original TABLE)")
    'sampling error of the utility, percentage of the utility kept: needs the original table (--original TABLE)'
    """
    fields, colon, why = unchecked.partition(": ")
    named = filter(None, map(_field, fields.split(", ")))
    return f"{', '.join(named)}{colon}{why}"


def _field(name: str) -> str:
    if name.startswith(MASK_FIELD):
        return f"mask of {name.removeprefix(MASK_FIELD)}"
    each = OF_LABELS if name.endswith(OF_LABELS) else ""
    own = name.removesuffix(each)
    return f"{FIELDS.get(own, own)}{each}"


def _head(audited: Audit, origin: str) -> Iterator[RenderableType]:
    from aegis.cli.tables import pairs

    account = audited.differential_privacy
    yield pairs(
        (
            ("Table", f"{origin}: {counted(audited.report.rows, 'row')}"),
            ("Quasi-identifiers", ", ".join(audited.quasi_identifiers) or "none"),
            ("Sensitive", ", ".join(audited.sensitive) or "none"),
            *([] if account is None else [("Differential privacy", account.stated)]),
        )
    )


def _identity(report: PrivacyReport) -> Iterator[RenderableType]:
    from aegis.cli.tables import Column, figure, heading, number, pairs, portion, share, table

    unit, members = report.unit, report.members
    yield heading("Can a person be found?")
    yield pairs(
        (
            (f"k, {unit} of the smallest class", f"{report.k:,}"),
            ("equivalence classes", f"{report.classes:,}"),
            (f"mean {unit} per class", figure(report.mean_class_size)),
            (f"unique {unit}", share(report.uniques, members)),
        )
    )
    yield heading("Risk of re-identification")
    yield table(
        (Column("attack"), number("worst row"), number("average"), Column("on", wraps=True)),
        (
            (
                "prosecutor",
                portion(report.prosecutor.maximum),
                portion(report.prosecutor.average),
                "a person known to be in the table",
            ),
            (
                "journalist",
                portion(report.journalist.maximum),
                portion(report.journalist.average),
                "any person of the population",
            ),
            ("marketer", "", portion(report.marketer), "all rows at once"),
        ),
    )
    yield heading(f"{unit.capitalize()} at risk")
    yield pairs((f"above {tau}", share(n, members)) for tau, n in report.at_risk.items())


def _sizes(report: PrivacyReport) -> Iterator[RenderableType]:
    from aegis.cli.tables import Column, heading, number, table

    unit, members = report.unit, report.members
    yield heading(f"{unit.capitalize()} by size of their class")
    yield table(
        (number("size"), number("classes"), number(unit), Column(f"share of {unit}")),
        (
            (band.size, f"{band.classes:,}", f"{band.rows:,}", _bar(band.rows, members))
            for band in report.class_size_histogram
        ),
    )


def _bar(rows: int, whole: int) -> str:
    if not rows:
        return ""
    return "#" * max(1, round(LONGEST_BAR * rows / whole))


def _sensitive(report: PrivacyReport) -> Iterator[RenderableType]:
    from aegis.cli.tables import Column, heading, number, table

    names = list(report.attributes)
    for start in range(0, len(names), BESIDE):
        shown = names[start : start + BESIDE]
        columns = [_attribute_figures(report.attributes[name], report) for name in shown]
        columns = _without_repeats(columns)
        yield heading("What can be learned of a person?")
        yield table(
            [Column("figure"), *map(number, shown)],
            ([title, *(column[title] for column in columns)] for title in columns[0]),
        )
    if len(names) > 1 and report.homogeneous_rows_any is not None:
        from aegis.cli.tables import line

        yield line(
            f"\n{report.unit.capitalize()} in classes where any of them is constant: {report.homogeneous_rows_any:,}"
        )


def _without_repeats(columns: list[dict[str, str]]) -> list[dict[str, str]]:
    """Leave out recursive (c,l)-diversity for larger l if no attribute has it for a smaller one."""
    never = [
        title
        for title in columns[0]
        if title.startswith(RECURSIVE) and all(column[title] == NEVER for column in columns)
    ]
    return [
        {title: text for title, text in column.items() if title not in never[1:]}
        for column in columns
    ]


def _attribute_figures(figures: AttributeFigures, report: PrivacyReport) -> dict[str, str]:
    """Return the figures of one sensitive attribute, by their titles."""
    from aegis.cli.tables import fixed

    shown = {
        f"{report.unit} in homogeneous classes": f"{figures.homogeneous_rows:,}",
        f"alpha, with k = {report.k:,}": fixed(figures.alpha),
        "l, distinct": "-"
        if figures.diversity.distinct is None
        else f"{figures.diversity.distinct:,}",
        "l, entropy": fixed(figures.diversity.entropy),
    }
    shown |= {
        f"{RECURSIVE}{n}: above": NEVER if c is None else fixed(c)
        for n, c in figures.diversity.recursive_c.items()
    }
    return shown | {
        "t, equal distance": fixed(figures.closeness.equal),
        "t, ordered distance": fixed(figures.closeness.ordered),
        "t, hierarchical distance": fixed(figures.closeness.hierarchical),
        "beta, basic": fixed(figures.likeness.basic),
        "beta, enhanced": fixed(figures.likeness.enhanced),
        "delta-disclosure: above": fixed(figures.disclosure.all),
        "  over values present": fixed(figures.disclosure.present),
    }


def _outside(audited: Audit) -> Iterator[RenderableType]:
    """Yield the risks that the rule does not cover."""
    from aegis.cli.tables import heading, line, pairs, share

    outside = audited.outside
    if outside is None or outside.rows is None or outside.unique_rows is None:
        return
    yield heading("Outside the quasi-identifiers")
    yield pairs((("rows unique in all columns", share(outside.unique_rows, outside.rows)),))
    yield from (line(f"{sentence[:1].upper()}{sentence[1:]}.") for sentence in outside.sentences)


def _verdict(audited: Audit) -> Iterator[RenderableType]:
    from rich.text import Text

    from aegis.cli.tables import heading, line

    if audited.rule is None:
        yield line("\nNo rule was given: --k 5 or --policy FILE holds the table against one.")
        return
    asked = "; ".join(map(str, audited.rule.criteria)) or "no demand"
    yield heading(f"Rule: {asked}")
    if audited.passed:
        yield Text("Met: the table meets the rule as it is.", style="green")
        return
    yield Text("Not met by the table as it is:", style="red")
    for violation in audited.violations:
        yield line(f"  {violation}")
