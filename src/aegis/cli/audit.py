"""`aegis audit`: the privacy of any table, as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from aegis.cli import completion
from aegis.cli.apply import choose
from aegis.cli.files import shown
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    ConfigurationName,
    Format,
    FormatOption,
    QuasiIdentifiers,
    Quiet,
    Table,
    column_names,
)
from aegis.cli.output import Output
from aegis.cli.pages.audit import print_audit, print_check
from aegis.cli.progress import reporting
from aegis.errors import NoAdmissibleConfiguration, PolicyError

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


@opens_table
def command(
    table: Table,
    quasi_identifiers: QuasiIdentifiers = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(
            "--sensitive",
            metavar="A,B,...",
            autocompletion=completion.columns,
            help="Columns whose values nobody may learn, given in the same way.",
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            metavar="COLUMN",
            autocompletion=completion.columns,
            help="Column that names the person a row is about: distinct persons are counted in "
            "place of rows.",
        ),
    ] = None,
    policy_file: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="FILE",
            help="Take roles and the rule from this policy (YAML).",
        ),
    ] = None,
    configuration: Annotated[
        Path | None,
        typer.Option(
            "--configuration",
            "-c",
            metavar="FILE",
            help="The masks that the table was made with (YAML): its noise is accounted for. "
            "Needs --policy.",
        ),
    ] = None,
    name: ConfigurationName = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            metavar="K",
            help="Ask for k-anonymity with this k, instead of the policy's rule.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="Compare the table with this certificate (JSON): digest, masks, rule and every "
            "figure. Roles and rule are then those of the certificate.",
        ),
    ] = None,
    verify_key: Annotated[
        Path | None,
        typer.Option(
            "--verify-key",
            metavar="FILE",
            help="Ask that the certificate is signed with the private key that belongs to this "
            "public key (PEM; aegis keygen makes pairs). Needs --certificate.",
        ),
    ] = None,
    original: Annotated[
        str | None,
        typer.Option(
            "--original",
            metavar="TABLE",
            help="The table that the release was made from: its rows, its digest and the utility that "
            "only it shows are compared with the certificate. Needs --certificate.",
        ),
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            metavar="TABLE",
            help="All persons that the rows are drawn from, shown as TABLE shows them: a row "
            "each, or a column `rows` that counts them. For k-map, journalist risk and "
            "delta-presence.",
        ),
    ] = None,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """Measure the privacy of any table, also one that Aegis did not make.

    In: a table and its quasi-identifiers, named here or in a policy. Out: class
    sizes, every privacy model, the risk of re-identification; with a rule also
    whether the table meets it as it stands. Exit code 1 when it does not. With a
    certificate: whether it matches this file, a line for each field that differs,
    and exit code 1 when any does. The fields that were not checked are listed;
    with --original fewer are left.
    """
    from aegis.policy import load_configurations, load_policy
    from aegis.privacy import PrivacyRule
    from aegis.release import audit, check_certificate
    from aegis.signing import load_public_key

    policy = None if policy_file is None else load_policy(policy_file)
    key = None if verify_key is None else load_public_key(verify_key)
    for option, value in (("--verify-key", key), ("--original", original)):
        if value is not None and certificate is None:
            raise PolicyError(
                f"{option} is for a certificate, which is not given.",
                hint="Add --certificate FILE.",
            )
    if certificate is not None:
        given = {
            "--quasi-identifiers": quasi_identifiers,
            "--sensitive": sensitive,
            "--person": person,
            "--configuration": configuration,
            "--name": name,
            "--k": k,
            "--population": population,
        }
        _refuse(given)
        with reporting(quiet=quiet) as progress:
            subject = opening.subject(table, quiet=quiet)
            check = check_certificate(
                subject,
                certificate,
                policy=policy,
                original=original,
                verify_key=key,
                progress=progress,
            )
        print_check(Output(format, quiet), check, shown(table), certificate)
        if not check.passed:
            raise typer.Exit(NoAdmissibleConfiguration.exit_code)
        return
    masks = None
    if configuration is not None:
        if policy is None:
            raise PolicyError(
                "A configuration needs the policy that it belongs to.", hint="Add --policy FILE."
            )
        masks = choose(load_configurations(configuration, policy), name, configuration)
    with reporting(quiet=quiet) as progress:
        measured = audit(
            opening.subject(table, quiet=quiet),
            quasi_identifiers=column_names(quasi_identifiers),
            sensitive=column_names(sensitive),
            person=person,
            policy=policy,
            rule=None if k is None else PrivacyRule.parse({"k": k}),
            configuration=masks,
            population=population,
            progress=progress,
        )
    print_audit(Output(format, quiet), measured, shown(table))
    if measured.passed is False:
        raise typer.Exit(NoAdmissibleConfiguration.exit_code)


def _refuse(options: Mapping[str, object]) -> None:
    """Raise for the first of these options that was given beside a certificate."""
    for name, given in options.items():
        if given is not None:
            raise PolicyError(
                f"{name} is not for a certificate, which states roles, rule and masks itself.",
                hint=f"Leave out {name} or --certificate.",
            )
