"""`aegis apply`: mask a table, verify the written file, and certify it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.cli.files import (
    JSON,
    Opening,
    check_outputs,
    next_step,
    opens_table,
    written,
    written_dict,
)
from aegis.cli.output import (
    Output,
    PrintOptions,
    heading,
    line,
    pairs,
    percent,
    portion,
    reporting,
    share,
)
from aegis.cli.parameters import (
    After,
    ConfigurationName,
    LeaveOut,
    PolicyFile,
    Population,
    ReleasedConfiguration,
    SignCertificate,
    Table,
    split_names,
)
from aegis.errors import NoAdmissibleConfiguration, PolicyError, member, require_known
from aegis.files import TABLE_FORMATS
from aegis.options import option
from aegis.requests import ApplyRequest
from aegis.words import MOST_NAMED, counted, joined

if TYPE_CHECKING:
    from aegis.policy import Configuration, Located, Policy
    from aegis.release import Release
    from aegis.release.released import Released
    from aegis.release.writing import KeptWeight
    from aegis.signing import PrivateKey

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis apply table.csv -p policy.yaml -c best.yaml -o masked.parquet",
    "aegis apply table.csv -p policy.yaml -c all.yaml --name coarse -o coarse.csv",
    "aegis apply table.csv -p policy.yaml -c best.yaml -o out.csv --certificate out.json",
    "aegis apply table.csv -p policy.yaml -c best.yaml -o masked.csv --after best.yaml",
)
FIRST = (
    "policy_file",
    "configuration",
    "output",
    "certificate",
    "name",
    "after",
    "sign",
    "leave_out",
    "format",
    "force",
)
"""The options that the help explains first, by the names of their parameters."""


@dataclass(frozen=True, kw_only=True)
class PolicyChanges:
    """Options that change the policy for one command."""

    leave_out: LeaveOut = None
    suppressed_columns: str | None = option(
        None,
        "How to show a suppressed column: fill (`*` in every row) or leave-out (no column). "
        "By default: as the policy says, else fill.",
        "HOW",
    )
    population: Population = None

    def made_to(self, policy: Policy) -> Policy:
        """Apply the changes to a policy. Raise `PolicyError` if an attribute to leave out, or the
        way to show suppressed columns, is unknown.
        """
        from aegis.policy import SuppressedColumns

        changed = policy.without(split_names(self.leave_out) or ()).drawn_from(self.population)
        if self.suppressed_columns is None:
            return changed
        suppressed_columns = member(SuppressedColumns, self.suppressed_columns, "way of showing")
        return replace(changed, suppressed_columns=suppressed_columns)


@dataclass(frozen=True, kw_only=True)
class ApplyCommand(PrintOptions):
    """All options of `aegis apply`."""

    table: Table
    policy_file: PolicyFile
    configuration: ReleasedConfiguration = None
    name: ConfigurationName = None
    release: ApplyRequest
    view: bool = option(False, "With --into: make a view, which changes with the table.")
    sign: SignCertificate = None
    changes: PolicyChanges
    after: After = None
    opening: Opening


@opens_table
def command(options: ApplyCommand) -> None:
    """Mask a table with one configuration, and verify the written file.

    You give a table, its policy and a configuration. Aegis writes the masked table
    without identifiers and without the rows of classes that break the rule. It first
    writes to a temporary name, measures privacy on that file, and renames it only if it
    meets the rule. Otherwise, Aegis removes the file, and the exit code is 1. The same
    configuration masks next month's rows in the same way. If the table has changed since
    `aegis advise`, Aegis checks the rule on the changed table, and the certificate states
    the utility of this release. The figures of `advise` hold only for the former table."""
    from aegis.policy import load_configurations, load_policy, read_document
    from aegis.signing import load_private_key

    output, into, opening = options.release.output, options.release.into, options.opening
    if (output is None) == (into is None) or (options.view and into is None):
        raise PolicyError(
            "Give exactly one of --output FILE and --into NAME.",
            hint="--view makes a view: it needs --into NAME.",
        )
    # Whether Spark can write is for Spark to say: its files may be on no disk of this machine.
    elsewhere = opening.engine is not None and opening.engine.elsewhere
    check_outputs(
        [(None if elsewhere else output, TABLE_FORMATS), (options.release.certificate, JSON)],
        force=options.release.force,
        inputs=(options.table, options.policy_file, options.configuration or options.policy_file),
    )
    policy = options.changes.made_to(load_policy(options.policy_file))
    file = configuration_file(options.configuration, options.policy_file, policy)
    document = read_document(file, "configuration")
    listed = load_configurations(document, policy)
    chosen = choose(listed, options.name, file)
    key = None if options.sign is None else load_private_key(options.sign)
    try:
        release = _released(options, policy, chosen, document, key)
    except NoAdmissibleConfiguration as error:
        others = [other for other in listed.values() if other is not chosen]
        raise _with_other(error, options, policy, others, file) from error
    _report(options, release, policy, file)


def _released(
    options: ApplyCommand,
    policy: Policy,
    chosen: Configuration,
    document: Located,
    key: PrivateKey | None,
) -> Release:
    """Apply the chosen configuration, and return the release."""
    from aegis.advisor.composition import read_release
    from aegis.policy import measure_of_choice, owner_of_choice
    from aegis.release import apply

    with reporting(quiet=options.quiet) as progress:
        return apply(
            options.opening.source(options.table, policy, quiet=options.quiet),
            policy,
            chosen,
            options.release,
            form="view" if options.view else "table",
            key=key,
            measure=options.release.measure or measure_of_choice(document),
            after=[read_release(path, policy) for path in options.after or ()],
            made_under=owner_of_choice(document),
            progress=progress,
        )


def _with_other(
    error: NoAdmissibleConfiguration,
    options: ApplyCommand,
    policy: Policy,
    others: Sequence[Configuration],
    file: Path,
) -> NoAdmissibleConfiguration:
    """Return the error, with the first other configuration of the file that meets the rule."""
    from aegis.advisor.composition import read_release
    from aegis.release.applying import first_admissible

    if not others:
        return error
    with reporting(quiet=options.quiet) as progress:
        meets = first_admissible(
            options.opening.source(options.table, policy, quiet=options.quiet),
            policy,
            others,
            after=[read_release(path, policy) for path in options.after or ()],
            progress=progress,
        )
    if meets is None:
        hint = f"{error.hint} None of the other configurations in {file} meets the rule either."
    else:
        hint = f"{meets.name} in {file} meets the rule: choose it with --name {shlex.quote(meets.name)}."
    return NoAdmissibleConfiguration(error.message, hint=hint)


def _report(options: ApplyCommand, release: Release, policy: Policy, file: Path) -> None:
    """Print the release, its cautions, and the next step."""
    from aegis.present.cautions import cautions_of, release_document

    certificate, opening = options.release.certificate, options.opening
    by_weight = policy.weight is not None and not policy.population and policy.privacy.by_crowd
    paths = [options.release.output, certificate]
    shell = options.shell
    _print(shell, release, policy, paths)
    cautions = cautions_of(release_document(release, policy))
    shell.caution([*cautions, *(text for text in release.warnings if text not in cautions)])
    if shell.tabular:
        shell.say(*written(paths))
    if release.path is not None and (certificate or not by_weight):
        # A release shows no weights, so only the original table counts the people of a class.
        weighed = {"certificate": certificate, "original": options.table} if by_weight else {}
        # The account of noise needs the masks that drew it.
        masks = {"configuration": file, "name": options.name}
        shell.suggest(
            *next_step(
                "see every privacy figure of the output",
                "audit",
                release.path,
                engine=opening.engine,
                master=opening.master,
                policy=options.policy_file,
                **weighed,
                **(masks if release.differential_privacy else {}),
            )
        )


def configuration_file(path: Path | None, policy_file: Path, policy: Policy) -> Path:
    """Return the file that the user names, or else the policy. If it does not exist, the error
    names the policy's configurations, one of which may be meant.
    """
    if path is None:
        return policy_file
    if policy.configurations and not path.exists():
        raise PolicyError(
            f"No such file: {path}. {policy_file} holds the configurations "
            f"{', '.join(policy.configurations)}.",
            hint="To use one of them, leave --configuration out and give its name with --name.",
        )
    return path


def choose(
    configurations: Mapping[str, Configuration], name: str | None, file: Path
) -> Configuration:
    """Return the configuration with this name; if no name is given, the only one."""
    if name is not None:
        require_known(f"configuration of {file}:", name, configurations)
        return configurations[name]
    if len(configurations) > 1:
        raise PolicyError(
            f"{file} holds {len(configurations)} configurations: {', '.join(configurations)}.",
            hint="Choose one with --name.",
        )
    return next(iter(configurations.values()))


def _print(
    shell: Output, release: Release, policy: Policy, paths: Sequence[str | Path | None]
) -> None:
    data = {"schema": SCHEMA} | release.to_dict() | {"files": written_dict(paths)}
    if shell.as_data(data) or shell.quiet:
        return
    shell.show(
        line(
            f"Released {release.released_rows:,} of {counted(release.rows, 'row')}, verified on "
            f"{'the written file' if release.into is None else release.into}."
        )
    )
    shell.show(heading("Release"), pairs(_facts(release)))
    shell.show(heading("Privacy, measured on the output"), pairs(_privacy(release, policy)))


def suppressed(release: Released) -> list[tuple[str, str]]:
    """Return the suppressed rows and, if the rule counts persons, the persons who lost a row: its
    limit is a share of these.
    """
    figures = [("rows suppressed", share(release.suppressed_rows, release.rows))]
    if release.persons and release.suppressed_persons is not None:
        figures.append(("persons suppressed", share(release.suppressed_persons, release.persons)))
    return figures


def _facts(release: Release) -> list[tuple[str, str]]:
    figures = [
        ("configuration", release.configuration.name),
        *suppressed(release),
    ]
    figures += [
        (f"unseen values, shown as *: {name}", counted(rows, "row"))
        for name, rows in release.unseen.items()
    ]
    if release.weight is not None:
        figures += _weight(release.weight)
    if release.dropped:
        figures.append(("columns not released", joined(release.dropped, MOST_NAMED)))
    if release.noised_quasi_identifiers:
        noised = ", ".join(release.noised_quasi_identifiers)
        figures.append(
            ("quasi-identifiers with noise", f"{noised}: the rule was held to true values")
        )
    if release.differential_privacy is not None:
        figures.append(("differential privacy", release.differential_privacy.in_words))
    utility = release.utility
    if utility is not None:
        figures += [
            (
                f"utility kept: {name}" if name else "utility kept",
                f"{percent(figure.utility_kept)} ({figure.basis})",
            )
            for name, figure in utility.by_label.items()
        ]
    elif release.certificate is None and release.into is None:
        figures.append(("utility kept", "not measured: --certificate FILE measures and states it"))
    return figures


def _weight(weight: KeptWeight) -> list[tuple[str, str]]:
    """Return the weight of suppressed rows, and how many people could be found, as texts."""
    figures = [("weight suppressed", portion(weight.suppressed_share))]
    if weight.expected is not None and weight.largest is not None:
        figures.append(
            (
                "people found, if all records are tried",
                f"{weight.expected:,.1f} of {weight.released:,.0f}; the likeliest with a chance of "
                f"{portion(weight.largest)}",
            )
        )
    return figures


def _privacy(release: Release, policy: Policy) -> list[tuple[str, str]]:
    report = release.audit.report
    verdict = "met" if policy.quasi_identifiers else "met, but protects nothing"
    met = [(str(criterion), verdict) for criterion in policy.privacy.criteria]
    figures = [
        *met,
        (f"k, {report.unit} of the smallest class", f"{report.k:,}"),
        ("classes", f"{report.classes:,}"),
        (f"{report.unit} unique by quasi-identifiers", f"{report.uniques:,}"),
    ]
    outside = release.audit.outside
    if outside is not None and outside.rows is not None and outside.unique_rows is not None:
        figures.append((outside.unique_title, share(outside.unique_rows, outside.rows)))
    return [*figures, (f"{report.unit} at risk above 0.2", f"{report.at_risk['0.2']:,}")]
