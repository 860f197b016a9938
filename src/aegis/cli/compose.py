"""`aegis compose`: check several releases of one table together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.files import DEFAULT, Opening, opens_table
from aegis.cli.output import Column, Output, line, number, reporting, table
from aegis.cli.parameters import Format, FormatOption, PolicyFile, Quiet, RuleOverride, VerifyKey
from aegis.errors import NoAdmissibleConfiguration, PolicyError

if TYPE_CHECKING:
    from aegis.advisor.composition import Composition

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis compose best.yaml best.yaml -p policy.yaml table.csv",
    "aegis compose first.json best.yaml -p policy.yaml table.csv --format json",
)


@opens_table
def command(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="RELEASE... TABLE",
            help="Two or more releases, each a certificate (.json) or a configuration (.yaml). The "
            "last argument is their table, or its exact summary (.aegis).",
        ),
    ],
    policy_file: PolicyFile,
    rule_override: RuleOverride = False,
    verify_key: VerifyKey = None,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    quiet: Quiet = False,
) -> None:
    """Check several releases of one table together, in case somebody can link their
    rows.

    You give the releases in the order in which you made them, the table and the policy.
    Aegis prints the classes that the releases form together, and the rows that one
    release shows and another leaves out. It says whether the rule still holds. If the
    rule fails, Aegis names the attributes that break it, and the exit code is 1. A
    certificate records which earlier releases its release took into account. For a
    configuration, Aegis assumes that you apply it with `--after` and the earlier
    releases. To find and make releases that keep the rule together, use `aegis advise
    --after` and `aegis apply --after`."""
    from aegis.advisor.composition import compose, read_release, summary_of
    from aegis.policy import load_policy

    if len(subjects) < 3:
        raise PolicyError(
            "You named too few files: `compose` needs two releases and their table.",
            hint="Write: aegis compose A.yaml B.yaml -p policy.yaml TABLE.",
        )
    policy = load_policy(policy_file)
    releases = [read_release(Path(name), policy) for name in subjects[:-1]]
    with reporting(quiet=quiet) as progress:
        subject = opening.subject(subjects[-1], policy, quiet=quiet, verify_key=verify_key)
        summary = summary_of(subject, policy, releases, progress)
        composition = compose(
            summary,
            releases,
            policy.privacy,
            policy.protected_hierarchies,
            rule_override=rule_override,
        )
    _print(Output(format, quiet), composition)
    if not composition.admissible:
        raise typer.Exit(NoAdmissibleConfiguration.exit_code)


def _print(shell: Output, composition: Composition) -> None:
    figures = composition.to_dict()
    if shell.format is Format.JSON:
        shell.json({"schema": SCHEMA} | figures)
        return
    if shell.format is Format.CSV:
        shell.figures(figures)
        return
    rows = (
        [name, "meets it" if v.admissible else "breaks it", f"{v.suppressed_rows:,}"]
        for name, v in zip(composition.releases, composition.each, strict=True)
    )
    shell.show(
        table((Column("release"), Column("rule, alone"), number("rows that fail")), rows), line("")
    )
    shell.show(
        line(
            f"Together, before rows that fail are left out: {composition.classes:,} classes of "
            f"{composition.rows:,} rows, the smallest of {composition.verdict.smallest_before:,}; "
            f"{composition.alone:,} rows alone"
        ),
        line(
            f"The rule {'still holds' if composition.admissible else 'is broken'}: "
            f"{composition.verdict.suppressed_rows:,} rows fail, and the rule allows {composition.verdict.allowed_rows:,}"
        ),
        line(""),
    )
    shell.show(
        table(
            (Column("without attribute", wraps=True), number("rows that would still fail")),
            ([a.attribute, f"{a.suppressed_rows:,}"] for a in composition.attributes),
        )
    )
    if composition.rule_override is not None:
        shell.warn([composition.rule_override.sentence])
