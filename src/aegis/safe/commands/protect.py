"""`aegis protect`: write a protected summary, which may leave your organisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aegis.cli.files import (
    Opening,
    check_outputs,
    next_step,
    opens_table,
    unused,
    written,
    written_dict,
)
from aegis.cli.output import Column, Output, line, number, reporting, table
from aegis.cli.parameters import (
    Force,
    Format,
    FormatOption,
    PolicyFile,
    Quiet,
    TableOrBundle,
    VerifyKey,
    output_file,
    split_names,
)
from aegis.errors import DataError, PolicyError
from aegis.options import option
from aegis.safe import PROTECTED
from aegis.safe.requests import ProtectRequest

if TYPE_CHECKING:
    from aegis.policy import Configuration, Policy
    from aegis.safe.protect import ProtectedSummary

SCHEMA = 1
"""Version of the JSON form; it changes if a field changes its meaning."""
PANEL = "Work from counts instead of rows"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis protect table.csv -p policy.yaml -o table.protected --epsilon 1 --delta 1e-6",
    "aegis protect table.csv -p policy.yaml -o table.protected --epsilon 1 --delta 1e-6 "
    "--ledger house.ledger --population patients",
    "aegis protect table.aegis -p policy.yaml -o table.protected --level counts --key-file secret.key",
)
FIRST = (
    "policy",
    "output",
    "level",
    "epsilon",
    "delta",
    "unit",
    "rows_per_person",
    "ledger",
    "force",
)
"""Parameters whose options the help lists first."""


@dataclass(frozen=True, kw_only=True)
class StatedVerdicts:
    """The options that select configurations for which the protected file states whether they meet
    the privacy rule.
    """

    configurations: Path | None = option(
        None, "Also store whether these configurations (YAML) meet the rule.", "FILE"
    )
    verdicts: int | None = option(
        None,
        "Also store for each combination of masks whether it meets the rule, if there are at "
        "most N combinations.",
        "N",
    )

    def of(self, policy: Policy) -> Mapping[str, Configuration] | int:
        """Return the selected configurations, or the number N of `--verdicts N`; empty without
        either.
        """
        from aegis.policy import load_configurations

        if self.configurations is not None and self.verdicts is not None:
            raise PolicyError(
                "Both --configurations and --verdicts were given.", hint="Give one of them."
            )
        if self.configurations is not None:
            return load_configurations(self.configurations, policy)
        return {} if self.verdicts is None else self.verdicts


@dataclass(frozen=True, kw_only=True)
class LedgerOptions:
    """The options for the ledger and for the population to which the cost is charged."""

    ledger: Path | None = option(
        None,
        "Charge the cost to this ledger, to the budget of --population. Aegis refuses if too "
        "little is left.",
        "FILE",
    )
    population: str | None = option(None, "The population whose budget is spent.", "NAME")
    new_version: bool = option(
        False,
        "Declare that the table is a new version of the one in the ledger. Level counts then "
        "needs a new key.",
    )


@dataclass(frozen=True, kw_only=True)
class ProtectCommand:
    """Options and arguments of `aegis protect`."""

    table: TableOrBundle
    policy: PolicyFile
    output: Annotated[Path, output_file("The protected summary to write (.protected).")]
    protection: ProtectRequest
    key_file: Path | None = option(
        None, "The secret key of level counts: a file of at least 16 random bytes.", "FILE"
    )
    verdicts: StatedVerdicts
    paid: LedgerOptions
    verify_key: VerifyKey = None
    opening: Opening
    format: FormatOption = Format.TABLE
    force: Force = False
    quiet: Quiet = False


@opens_table
def command(options: ProtectCommand) -> None:
    """Protect a summary, so that it may leave your organisation.

    You give a table or its exact summary, and a policy. Aegis writes one file
    (.protected) from which `aegis advise` ranks and searches. The file holds no values,
    no pairs and no frequency table. Level noise (the default) gives differential
    privacy with your epsilon and delta, for each row or each person. Level counts
    changes the counts by label until linear programming can derive no small cell. Level
    counts gives no formal guarantee. Aegis audits the file, and writes nothing if the
    file fails."""
    from aegis.policy import load_policy
    from aegis.safe.protect import release_protected

    output, paid = options.output, options.paid
    inputs = (options.table, options.policy)
    check_outputs([(output, (PROTECTED,))], force=options.force, inputs=inputs)
    declared = load_policy(options.policy)
    verdicts = options.verdicts.of(declared)
    subject = options.opening.subject(
        options.table, declared, quiet=options.quiet, verify_key=options.verify_key
    )
    public = options.protection.noise.public
    key = read_key(options.key_file)
    with reporting(quiet=options.quiet) as progress:
        protected = release_protected(
            subject,
            declared,
            output,
            options.protection,
            ledger=paid.ledger,
            population=paid.population,
            new_version=paid.new_version,
            force=options.force,
            progress=progress,
            public=split_names(list(public or ())) or (),
            key=key,
            verdicts=verdicts,
        )
    head = None
    if paid.ledger is not None:
        from aegis.safe.ledger import Ledger

        head = Ledger(paid.ledger).head
    shell = Output(options.format, options.quiet)
    print_protected(shell, protected, output, options.policy, head=head)


def read_key(path: Path | None) -> bytes | None:
    """Return the secret in a file; None if no file is given."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"Cannot read the key file {path}: {error.strerror}.", hint="Check the path."
        ) from error


def print_protected(
    shell: Output, summary: ProtectedSummary, output: Path, policy: Path, *, head: str | None = None
) -> None:
    """Print what the file `output` contains; `head` is the ledger's last hash, if there is one."""
    figures = summary.to_dict() | ({} if head is None else {"ledger_head": head})
    names = ("attribute", "role", "cells", "masks")
    rows = [
        [name, entry["role"], entry["cells"], len(entry["candidates"])]
        for name, entry in figures["attributes"].items()
    ]
    data = {"schema": SCHEMA} | figures | {"files": written_dict([output])}
    if shell.as_data(data, names, rows):
        return
    shell.show(line(_overview(summary)), line(""))
    columns = (Column(names[0], wraps=True), Column(names[1]), number("groups"), number(names[3]))
    shell.show(table(columns, ([*r[:2], *(f"{n:,}" for n in r[2:])] for r in rows)))
    shell.warn(summary.notes)
    if head is not None:
        shell.show(line(note_of_head(head)))
    shell.say(*written([output]))
    shell.suggest(
        *next_step(
            "rank configurations from the protected file",
            "advise",
            output,
            "--policy",
            policy,
            "-o",
            unused("best.yaml"),
        )
    )


def note_of_head(head: str) -> str:
    """Return a note to store `head`, the hash of the ledger's last event, in another place."""
    return (
        f"Ledger head: {head}\n"
        "Keep a copy of this line in another place. Later, aegis ledger FILE verify --head SHA256 "
        "shows whether somebody changed earlier entries."
    )


def _overview(summary: ProtectedSummary) -> str:
    protection = summary.protection
    promise = f"level {protection.level}: {protection.words()}"
    promise += (
        ". Linear programming derives no small count"
        if protection.epsilon is None
        else f" (rho {protection.rho:.4g})"
    )
    moments = (
        "no correlations are included"
        if summary.moments is None
        else f"{summary.moments.error:.4f} per correlation"
    )
    verdicts = (
        f"The file states for {len(summary.verdicts):,} configurations whether they meet the privacy rule."
        if summary.verdicts
        else "The file does not state which configurations meet the privacy rule: add --verdicts for that."
    )
    return (
        f"{summary.rows_words.capitalize()}; label {summary.label}\n"
        f"Protection {promise}\n"
        f"Typical error: {summary.cell_error:.1f} rows per count, {moments}\n{verdicts}"
    )
