"""`aegis audit`: measure the privacy of any table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from aegis.cli.apply import choose
from aegis.cli.files import shown
from aegis.cli.opening import Opening, opens_table
from aegis.cli.options import (
    ConfigurationName,
    QuasiIdentifiers,
    Table,
    column_names,
)
from aegis.cli.output import PrintOptions
from aegis.cli.pages.audit import print_audit, print_check
from aegis.cli.progress import reporting
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.options import option

if TYPE_CHECKING:
    from aegis.policy import Policy
    from aegis.signing import PublicKey

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
class AskedRoles:
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
    def given(self) -> dict[str, object]:
        """The options that cannot be combined with a certificate: their values, by the name of the
        option.
        """
        return {
            "--quasi-identifiers": self.quasi_identifiers,
            "--sensitive": self.sensitive,
            "--person": self.person,
            "--configuration": self.configuration,
            "--name": self.name,
            "--k": self.k,
        }


@dataclass(frozen=True, kw_only=True)
class AskedCertificate:
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
        "The table before masking. Aegis also compares its rows, its digest and the utility "
        "with the certificate. Needs --certificate.",
        "TABLE",
    )

    def require(self) -> None:
        """Raise `PolicyError` if options for a certificate are given without one."""
        for name, value in (("--verify-key", self.verify_key), ("--original", self.original)):
            if value is not None and self.certificate is None:
                raise PolicyError(
                    f"{name} needs a certificate.",
                    hint="Add --certificate FILE.",
                )


@dataclass(frozen=True, kw_only=True)
class AuditCommand(PrintOptions):
    """All options of `aegis audit`."""

    table: Table
    roles: AskedRoles
    stated: AskedCertificate
    population: str | None = option(
        None,
        "The population that the rows are a sample of, masked as TABLE is: one row per "
        "person, or a column `rows` with counts. Used for k-map, journalist risk and "
        "delta-presence.",
        "TABLE",
    )
    opening: Opening


@opens_table
def command(asked: AuditCommand) -> None:
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

    roles, stated = asked.roles, asked.stated
    policy = None if roles.policy_file is None else load_policy(roles.policy_file)
    key = None if stated.verify_key is None else load_public_key(stated.verify_key)
    stated.require()
    if stated.certificate is None:
        passed = _audit(asked, policy)
    else:
        _refuse(roles.given | {"--population": asked.population})
        passed = _check(asked, stated.certificate, policy, key)
    if passed is False:
        raise typer.Exit(NoAdmissibleConfiguration.exit_code)


def _check(
    asked: AuditCommand, certificate: Path, policy: Policy | None, key: PublicKey | None
) -> bool:
    """Compare the table with its certificate and print the differences; return whether there are none."""
    from aegis.release import check_certificate

    with reporting(quiet=asked.quiet) as progress:
        check = check_certificate(
            asked.opening.subject(asked.table, quiet=asked.quiet),
            certificate,
            policy=policy,
            original=asked.stated.original,
            verify_key=key,
            progress=progress,
        )
    print_check(asked.shell, check, shown(asked.table), certificate)
    return check.passed


def _audit(asked: AuditCommand, policy: Policy | None) -> bool | None:
    """Measure the privacy of the table and print it; return whether it meets the rule."""
    from aegis.policy import load_configurations
    from aegis.privacy import PrivacyRule
    from aegis.release import audit

    roles, masks = asked.roles, None
    if roles.configuration is not None:
        if policy is None:
            raise PolicyError(
                "A configuration needs the policy that it belongs to.", hint="Add --policy FILE."
            )
        listed = load_configurations(roles.configuration, policy)
        masks = choose(listed, roles.name, roles.configuration)
    with reporting(quiet=asked.quiet) as progress:
        measured = audit(
            asked.opening.subject(asked.table, quiet=asked.quiet),
            quasi_identifiers=column_names(roles.quasi_identifiers),
            sensitive=column_names(roles.sensitive),
            person=roles.person,
            policy=policy,
            rule=None if roles.k is None else PrivacyRule.parse({"k": roles.k}),
            configuration=masks,
            population=asked.population,
            progress=progress,
        )
    print_audit(asked.shell, measured, shown(asked.table))
    return measured.passed


def _refuse(options: Mapping[str, object]) -> None:
    """Raise an error for the first of these options, which cannot be combined with a certificate."""
    for name, given in options.items():
        if given is not None:
            raise PolicyError(
                f"{name} cannot be used with a certificate, which states roles, rule and masks itself.",
                hint=f"Leave out {name} or --certificate.",
            )
