"""`aegis audit`: measure the privacy of any table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aegis.cli.apply import choose
from aegis.cli.files import Opening, opens_table
from aegis.cli.output import (
    Column,
    Output,
    PrintOptions,
    figure,
    fixed,
    heading,
    line,
    number,
    pairs,
    portion,
    reporting,
    share,
    shown_location,
    table,
)
from aegis.cli.parameters import ConfigurationName, QuasiIdentifiers, Table, column_names, refuse
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.options import option
from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.policy import Policy
    from aegis.privacy import PrivacyReport
    from aegis.privacy.report import AttributeFigures
    from aegis.release import Audit, CertificateCheck
    from aegis.signing import PublicKey

ATTRIBUTES_PER_TABLE = 3
"""Number of sensitive attributes that one table shows side by side."""
RECURSIVE, NEVER = "c, recursive, l = ", "never"
"""Start of the titles of rows on recursive (c,l)-diversity, and the figure if no c suffices."""
LONGEST_BAR = 30
CHECK_SCHEMA = 1
"""Version of the JSON form of the check of a certificate."""


def print_audit(shell: Output, audited: Audit, origin: str) -> None:
    """Print every figure of an audit of the table `origin`. The verdict comes last."""
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
    if check.audit is not None:
        shell.show(*_head(check.audit, origin), *_identity(check.audit.report))
        shell.show(*_sensitive(check.audit.report), *_outside(check.audit))
        shell.warn((*check.audit.warnings, *check.audit.report.notes))
    if not check.passed:
        differing = map(line, dict.fromkeys(each.in_words for each in check.mismatches))
        shell.show(heading(f"Failed: {certificate} does not match this file"), *differing)
    if check.unchecked:
        shell.show(heading("Not checked"), *(line(in_words(text)) for text in check.unchecked))
    if check.passed:
        but = ", except for the fields listed above as not checked" if check.unchecked else ""
        shell.show(heading("Certificate"), line(f"{certificate} matches this file{but}."))


def in_words(unchecked: str) -> str:
    """Return, in words, which fields of a certificate were not checked, and why.

    >>> in_words("utility.stderr, utility.kept: needs the original table (--original TABLE)")
    'sampling error of the utility, percentage of the utility kept: needs the original table (--original TABLE)'
    """
    from aegis.release.field_words import field_in_words

    fields, colon, why = unchecked.partition(": ")
    return f"{', '.join(map(field_in_words, fields.split(', ')))}{colon}{why}"


def _head(audited: Audit, origin: str) -> Iterator[RenderableType]:
    account = audited.differential_privacy
    yield pairs(
        (
            ("Table", f"{origin}: {counted(audited.report.rows, 'row')}"),
            ("Quasi-identifiers", ", ".join(audited.quasi_identifiers) or "none"),
            ("Sensitive", ", ".join(audited.sensitive) or "none"),
            *([] if account is None else [("Differential privacy", account.in_words)]),
        )
    )


def _identity(report: PrivacyReport) -> Iterator[RenderableType]:
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
    unit, members = report.unit, report.members
    yield heading(f"{unit.capitalize()} by size of their class")
    yield table(
        (number("size"), number("classes"), number(unit), Column(f"share of {unit}")),
        (
            (band.size, f"{band.classes:,}", f"{band.rows:,}", _bar(band.rows, members))
            for band in report.class_size_histogram
        ),
    )


def _bar(rows: int, total: int) -> str:
    if not rows:
        return ""
    return "#" * max(1, round(LONGEST_BAR * rows / total))


def _sensitive(report: PrivacyReport) -> Iterator[RenderableType]:
    names = list(report.attributes)
    for start in range(0, len(names), ATTRIBUTES_PER_TABLE):
        attributes = names[start : start + ATTRIBUTES_PER_TABLE]
        columns = [_attribute_figures(report.attributes[name], report) for name in attributes]
        columns = _without_repeats(columns)
        yield heading("What can be learned of a person?")
        yield table(
            [Column("figure"), *map(number, attributes)],
            ([title, *(column[title] for column in columns)] for title in columns[0]),
        )
    if len(names) > 1 and report.homogeneous_rows_any is not None:
        yield line(
            f"\n{report.unit.capitalize()} in classes where any of them is constant: {report.homogeneous_rows_any:,}"
        )


def _without_repeats(columns: list[dict[str, str]]) -> list[dict[str, str]]:
    """Leave out recursive (c,l)-diversity for larger l if no attribute reaches a smaller l."""
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
    texts = {
        f"{report.unit} in homogeneous classes": f"{figures.homogeneous_rows:,}",
        f"alpha, with k = {report.k:,}": fixed(figures.alpha),
        "l, distinct": "-"
        if figures.diversity.distinct is None
        else f"{figures.diversity.distinct:,}",
        "l, entropy": fixed(figures.diversity.entropy),
    }
    texts |= {
        f"{RECURSIVE}{n}: above": NEVER if c is None else fixed(c)
        for n, c in figures.diversity.recursive_c.items()
    }
    return texts | {
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
    outside = audited.outside
    if outside is None or outside.rows is None or outside.unique_rows is None:
        return
    yield heading("Outside the quasi-identifiers")
    yield pairs(((outside.unique_title, share(outside.unique_rows, outside.rows)),))
    yield from (line(f"{sentence[:1].upper()}{sentence[1:]}.") for sentence in outside.sentences)


def _verdict(audited: Audit) -> Iterator[RenderableType]:
    from rich.text import Text

    if audited.rule is None:
        yield line("\nNo rule to check: give --k 5 or --policy FILE.")
        return
    criteria = "; ".join(map(str, audited.rule.criteria)) or "no demand"
    yield heading(f"Rule: {criteria}")
    if audited.passed:
        yield Text("Met: the table meets the rule as it is.", style="green")
        return
    yield Text("Not met by the table as it is:", style="red")
    for violation in audited.violations:
        yield line(f"  {violation}")


EXAMPLES = (
    "aegis audit table.csv --quasi-identifiers age,sex,zip --sensitive diagnosis",
    "aegis audit table.csv --quasi-identifiers age,sex --k 2",
    "aegis audit visits.csv --quasi-identifiers age,sex --person patient",
    "aegis audit table.csv -p policy.yaml --format json",
    "aegis audit table.csv --quasi-identifiers age,sex --population people.csv",
    "aegis audit masked.parquet --certificate certificate.json",
    "aegis audit masked.parquet --certificate certificate.json --original table.csv",
    "aegis audit masked.parquet --certificate certificate.json --verify-key hospital.pub",
)
FIRST = (
    "quasi_identifiers",
    "sensitive",
    "person",
    "k",
    "policy",
    "configuration",
    "certificate",
    "original",
    "verify_key",
    "format",
)
"""The options that the help explains first, by the names of their parameters."""


@dataclass(frozen=True, kw_only=True)
class RoleOptions:
    """Options for roles, rule and masks of the audited table."""

    quasi_identifiers: QuasiIdentifiers = None
    sensitive: list[str] | None = option(
        None,
        "Columns whose values nobody may learn, separated by commas.",
        "A,B,...",
        offers="columns",
    )
    person: str | None = option(
        None,
        "Column that identifies the person, if a person can have several rows. Aegis then "
        "counts persons, not rows.",
        "COLUMN",
        offers="columns",
    )
    policy_file: Path | None = option(
        None, "Take roles and the rule from this policy (YAML).", "FILE", name="policy", short="-p"
    )
    configuration: Path | None = option(
        None,
        "The configuration with which you made the table (YAML). Aegis takes its noise into account. "
        "Needs --policy.",
        "FILE",
        short="-c",
    )
    name: ConfigurationName = None
    k: int | None = option(
        None, "Check k-anonymity with this k, instead of the policy's rule.", "K"
    )

    @property
    def by_option(self) -> dict[str, object]:
        """The options that cannot be combined with a certificate: their values, by name."""
        return {
            "--quasi-identifiers": self.quasi_identifiers,
            "--sensitive": self.sensitive,
            "--person": self.person,
            "--configuration": self.configuration,
            "--name": self.name,
            "--k": self.k,
        }


@dataclass(frozen=True, kw_only=True)
class CertificateOptions:
    """Options for the certificate with which a table is compared."""

    certificate: Path | None = option(
        None,
        "Compare the table with this certificate (JSON): digest, masks, rule and every "
        "figure. Aegis takes roles and rule from the certificate.",
        "FILE",
    )
    verify_key: Path | None = option(
        None,
        "Also require a valid signature of the certificate for this public key (PEM, from "
        "aegis keygen). Needs --certificate.",
        "FILE",
    )
    original: str | None = option(
        None,
        "The table before masking. Aegis also compares its rows and the utility with the "
        "certificate. Needs --certificate.",
        "TABLE",
    )
    signing_key: Path | None = option(
        None,
        "The private key that signed the certificate (PEM, from aegis keygen). Aegis also compares "
        "the digest of the table before masking. Needs --original.",
        "FILE",
    )

    def require(self) -> None:
        """Raise `PolicyError` if options for a certificate are given without one."""
        for name, value in (("--verify-key", self.verify_key), ("--original", self.original)):
            if value is not None and self.certificate is None:
                raise PolicyError(
                    f"{name} needs a certificate.",
                    hint="Add --certificate FILE.",
                )
        if self.signing_key is not None and self.original is None:
            raise PolicyError(
                "--signing-key needs the table before masking.", hint="Add --original TABLE."
            )


@dataclass(frozen=True, kw_only=True)
class AuditCommand(PrintOptions):
    """All options of `aegis audit`."""

    table: Table
    roles: RoleOptions
    certificate_options: CertificateOptions
    population: str | None = option(
        None,
        "The population that the rows are a sample of, masked as TABLE is: one row per "
        "person, or a column `rows` with counts. Used for k-map, journalist risk and "
        "delta-presence.",
        "TABLE",
    )
    opening: Opening


@opens_table
def command(options: AuditCommand) -> None:
    """Measure the privacy of any table, even if Aegis did not make it.

    You give a table and its quasi-identifiers, by option or in a policy. Aegis prints
    class sizes, every privacy model and the risk of re-identification. If you give a
    rule, it also says whether the table meets the rule. If the table does not, the exit
    code is 1.

    With a certificate, Aegis says whether the certificate matches this file. It prints
    a line for each field that differs. If a field differs, the exit code is 1. Aegis
    also lists the fields that it could not check. To check more fields, give the
    original table (--original).
    """
    from aegis.policy import load_policy
    from aegis.signing import load_public_key

    roles, certified = options.roles, options.certificate_options
    policy = None if roles.policy_file is None else load_policy(roles.policy_file)
    key = None if certified.verify_key is None else load_public_key(certified.verify_key)
    certified.require()
    if certified.certificate is None:
        passed = _audit(options, policy)
    else:
        refuse(
            roles.by_option | {"--population": options.population},
            "cannot be used with a certificate, which states roles, rule and masks itself",
            "Leave out {} or --certificate.",
        )
        passed = _check(options, certified.certificate, policy, key)
    if passed is False:
        raise typer.Exit(NoAdmissibleConfiguration.exit_code)


def _check(
    options: AuditCommand, certificate: Path, policy: Policy | None, key: PublicKey | None
) -> bool:
    """Compare the table with its certificate and print the differences; return whether there are none."""
    from aegis.release import check_certificate
    from aegis.signing import load_private_key

    signing = options.certificate_options.signing_key
    with reporting(quiet=options.quiet) as progress:
        check = check_certificate(
            options.opening.source(options.table, quiet=options.quiet),
            certificate,
            policy=policy,
            original=options.certificate_options.original,
            verify_key=key,
            signing_key=None if signing is None else load_private_key(signing),
            progress=progress,
        )
    print_check(options.shell, check, shown_location(options.table), certificate)
    return check.passed


def _audit(options: AuditCommand, policy: Policy | None) -> bool | None:
    """Measure the privacy of the table and print it; return whether it meets the rule."""
    from aegis.policy import load_configurations
    from aegis.privacy import PrivacyRule
    from aegis.release import audit

    roles, masks = options.roles, None
    if roles.configuration is not None:
        if policy is None:
            raise PolicyError(
                "A configuration needs the policy that it belongs to.", hint="Add --policy FILE."
            )
        listed = load_configurations(roles.configuration, policy)
        masks = choose(listed, roles.name, roles.configuration)
    with reporting(quiet=options.quiet) as progress:
        measured = audit(
            options.opening.source(options.table, quiet=options.quiet),
            quasi_identifiers=column_names(roles.quasi_identifiers),
            sensitive=column_names(roles.sensitive),
            person=roles.person,
            policy=policy,
            rule=None if roles.k is None else PrivacyRule.parse({"k": roles.k}),
            configuration=masks,
            population=options.population,
            progress=progress,
        )
    print_audit(options.shell, measured, shown_location(options.table))
    return measured.passed
