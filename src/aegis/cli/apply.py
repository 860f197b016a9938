"""`aegis apply`: mask a table, verify what was written, certify it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.files import (
    JSON,
    check_outputs,
    next_step,
    repeated,
    written,
    written_dict,
)
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    After,
    ConfigurationName,
    Force,
    Format,
    FormatOption,
    LeaveOut,
    PolicyFile,
    Population,
    Quiet,
    ReleasedConfiguration,
    ReleaseSeed,
    RuleOverride,
    SafeCsv,
    SignCertificate,
    Table,
    UtilityMeasure,
    split_names,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import PolicyError
from aegis.files import TABLE_FORMATS
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.policy import Configuration, Policy
    from aegis.release import Release

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis apply table.csv -p policy.yaml -c best.yaml -o masked.parquet",
    "aegis apply table.csv -p policy.yaml -c all.yaml --name coarse -o coarse.csv",
    "aegis apply table.csv -p policy.yaml -c best.yaml -o out.csv --certificate out.json",
    "aegis apply table.csv -p policy.yaml -c best.yaml -o masked.csv --after best.yaml",
)


@opens_table
def command(
    table: Table,
    policy_file: PolicyFile,
    configuration: ReleasedConfiguration = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The masked table: .parquet, .csv, .tsv, .arrow or .feather; with --engine spark "
            "a folder of Parquet files, also hdfs://..., s3a://...",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into",
            metavar="NAME",
            help="In place of a file: the table to make in the database that holds the data.",
        ),
    ] = None,
    view: Annotated[
        bool, typer.Option("--view", help="Make a view, which follows the table, with --into.")
    ] = False,
    name: ConfigurationName = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="Write a certificate (JSON): digests, masks, every privacy figure. It goes with a "
            "file, so with --output, not with --into.",
        ),
    ] = None,
    sign: SignCertificate = None,
    measure: UtilityMeasure = None,
    after: After = None,
    leave_out: LeaveOut = None,
    suppressed_columns: Annotated[
        str | None,
        typer.Option(
            "--suppressed-columns",
            metavar="HOW",
            help="What to show of a column that the configuration suppresses: fill, `*` in every "
            "row, or leave-out; by default as the policy says, else fill.",
        ),
    ] = None,
    population: Population = None,
    safe_csv: SafeCsv = False,
    rule_override: RuleOverride = False,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    seed: ReleaseSeed = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Mask a table with one configuration, and verify the file that was written.

    In: a table, its policy and a configuration. Out: the masked table without
    identifiers and without the rows of classes that break the rule. Privacy is
    measured on the written file before it takes its name; when the rule is not
    met, nothing is written and the exit code is 1. The same configuration masks
    tomorrow's rows alike.
    """
    from aegis.advisor.composition import read_release
    from aegis.policy import (
        SuppressedColumns,
        load_configurations,
        load_policy,
        measure_of_choice,
        owner_of_choice,
        read_document,
    )
    from aegis.release import apply
    from aegis.signing import load_private_key

    if (output is None) == (into is None) or (view and into is None):
        raise PolicyError(
            "A release goes into a file or into a database.",
            hint="Give --output FILE, or --into NAME (and --view for a view).",
        )
    # Whether Spark can write is for Spark to say: its files may be on no disk of this machine.
    here = (
        None
        if output is None or (opening.engine is not None and opening.engine.elsewhere)
        else Path(output)
    )
    check_outputs(
        [(here, TABLE_FORMATS), (certificate, JSON)],
        force=force,
        inputs=(table, policy_file, configuration or policy_file),
    )
    dropped = split_names(leave_out)
    policy = load_policy(policy_file).without(dropped or ()).drawn_from(population)
    if suppressed_columns is not None:
        allowed = list(SuppressedColumns)
        if suppressed_columns not in allowed:
            raise PolicyError.unknown("way of showing", suppressed_columns, allowed)
        policy = replace(policy, suppressed_columns=SuppressedColumns(suppressed_columns))
    configuration = configuration_file(configuration, policy_file, policy)
    document = read_document(configuration, "configuration")
    chosen = choose(load_configurations(document, policy), name, configuration)
    key = None if sign is None else load_private_key(sign)
    with reporting(quiet=quiet) as progress:
        release = apply(
            opening.subject(table, policy, quiet=quiet),
            policy,
            chosen,
            output=output,
            into=into,
            form="view" if view else "table",
            certificate=certificate,
            key=key,
            measure=measure or measure_of_choice(document),
            after=[read_release(path, policy) for path in after or ()],
            force=force,
            safe_csv=safe_csv,
            made_under=owner_of_choice(document),
            rule_override=rule_override,
            seed=seed,
            progress=progress,
        )
    shell = Output(format, quiet)
    _print(shell, release, policy, [output, certificate])
    shell.caution(_cautions(release, policy, certified=certificate is not None))
    if shell.tabular:
        shell.say(*written([output, certificate]))
    if release.path is not None:
        shell.suggest(
            *next_step(
                "see every privacy figure of the output",
                "audit",
                release.path,
                *repeated(engine=opening.engine, master=opening.master),
                "--policy",
                str(policy_file),
                # The account of noise needs the masks that drew it.
                *repeated(
                    configuration=configuration if release.differential_privacy else None,
                    name=name if release.differential_privacy else None,
                ),
            )
        )


def configuration_file(given: Path | None, policy_file: Path, policy: Policy) -> Path:
    """Return the file that holds the configuration: where none is given, the policy's own.

    Raises
    ------
    PolicyError
        The file does not exist, but the policy holds configurations.
    """
    if given is None:
        return policy_file
    if policy.configurations and not given.exists():
        raise PolicyError(
            f"No such file: {given}. {policy_file} holds the configurations "
            f"{', '.join(policy.configurations)}.",
            hint="To use one of them, leave --configuration out and give its name with --name.",
        )
    return given


def choose(
    configurations: Mapping[str, Configuration], name: str | None, file: Path
) -> Configuration:
    """Return the configuration of that name, or the only one where no name is given."""
    if name is not None:
        if name not in configurations:
            raise PolicyError.unknown(f"configuration of {file}:", name, configurations)
        return configurations[name]
    if len(configurations) > 1:
        raise PolicyError(
            f"{file} holds {len(configurations)} configurations: {', '.join(configurations)}.",
            hint="Choose one with --name.",
        )
    return next(iter(configurations.values()))


def nothing_to_predict(policy: Policy) -> str:
    """Return what is to be known of a release whose label tells no classes apart."""
    return (
        f"the label {policy.label.column} shows fewer than two classes in the released rows: there "
        "is nothing to predict, and the certificate states no utility"
    )


def _cautions(release: Release, policy: Policy, *, certified: bool) -> list[str]:
    """Return what to know before relying on a release."""
    account, override = release.differential_privacy, release.rule_override
    outside = release.audit.outside
    return [
        *release.warnings,
        *release.audit.report.cautions,
        *(() if outside is None else outside.sentences),
        *(() if override is None else (override.sentence,)),
        *(() if account is None else account.notes),
        *((nothing_to_predict(policy),) if certified and release.utility is None else ()),
    ]


def _print(
    shell: Output, release: Release, policy: Policy, paths: Sequence[str | Path | None]
) -> None:
    if not shell.tabular:
        data = {"schema": SCHEMA} | release.to_dict() | {"files": written_dict(paths)}
        shell.json(data) if shell.format is Format.JSON else shell.figures(data)
        return
    if shell.quiet:
        return
    from aegis.cli.tables import heading, line, pairs

    shell.show(
        line(
            f"Released {release.released_rows:,} of {counted(release.rows, 'row')}, verified on "
            f"{'the written file' if release.into is None else release.into}."
        )
    )
    shell.show(heading("Release"), pairs(_facts(release)))
    shell.show(heading("Privacy, measured on the output"), pairs(_privacy(release, policy)))


def _facts(release: Release) -> list[tuple[str, str]]:
    from aegis.cli.tables import percent, share

    figures = [
        ("configuration", release.configuration.name),
        ("rows suppressed", share(release.suppressed_rows, release.rows)),
    ]
    figures += [
        (f"unseen values, shown as *: {name}", counted(rows, "row"))
        for name, rows in release.unseen.items()
    ]
    if release.dropped:
        figures.append(("columns left out", ", ".join(release.dropped)))
    if release.noised_quasi_identifiers:
        noised = ", ".join(release.noised_quasi_identifiers)
        figures.append(
            ("quasi-identifiers with noise", f"{noised}: the rule was held to true values")
        )
    if release.differential_privacy is not None:
        account = release.differential_privacy
        exact = "" if account.covers_release else f"; not covered: {', '.join(account.exact)}"
        figures.append(("differential privacy", f"epsilon {account.epsilon:g}{exact}"))
    utility = release.utility
    if utility is not None:
        figures.append(("utility kept", f"{percent(utility.utility_kept)} ({utility.detail})"))
    return figures


def _privacy(release: Release, policy: Policy) -> list[tuple[str, str]]:
    from aegis.cli.tables import share

    report = release.audit.report
    met = [(str(criterion), "met") for criterion in policy.privacy.criteria]
    figures = [
        *met,
        ("smallest class (k)", f"{report.k:,}"),
        ("classes", f"{report.classes:,}"),
        ("rows unique by quasi-identifiers", f"{report.uniques:,}"),
    ]
    outside = release.audit.outside
    if outside is not None and outside.rows is not None and outside.unique_rows is not None:
        figures.append(("rows unique in all columns", share(outside.unique_rows, outside.rows)))
    return [*figures, ("rows at risk above 0.2", f"{report.at_risk['0.2']:,}")]
