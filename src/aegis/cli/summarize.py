"""`aegis summarize`: write the counts of a table to one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.files import (
    Opening,
    check_outputs,
    is_bundle,
    next_step,
    opens_table,
    read_summary,
    unused,
    written,
    written_dict,
)
from aegis.cli.output import Column, Output, RunOptions, clean, line, number, reporting, table
from aegis.cli.parameters import (
    ExactPairs,
    PolicyFile,
    Table,
    VerifyKey,
)
from aegis.errors import PolicyError
from aegis.files import BUNDLE
from aegis.options import option
from aegis.present import label_words
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.summary import Summary

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
CONTENTS = {
    "raw": "rows by value and label, of each attribute",
    "histogram": "rows by value, and rows by masked value and label, of each attribute",
    "nothing": "rows by masked value and label, of each attribute",
}
"""What a summary contains, in words, for each information setting."""
EXAMPLES = (
    "aegis summarize table.csv -p policy.yaml -o table.aegis",
    "aegis summarize table.csv -p policy.yaml -o table.aegis --exact --force",
    "aegis summarize table.csv -p policy.yaml -o shared.aegis --information nothing",
    "aegis summarize march.parquet -p policy.yaml -o march.aegis --like january.aegis",
    "aegis summarize table.csv -p policy.yaml -o table.aegis --sign hospital.key --locked",
)


@dataclass(frozen=True, kw_only=True)
class SummaryOptions:
    """Options for how a summary is made, and for what it contains."""

    exact: ExactPairs = False
    like: Path | None = option(
        None,
        "Use the fitted masks, label classes and frequent groups of this summary (.aegis) of "
        "another part of the data, so that aegis merge can add up both.",
        "SUMMARY",
    )
    carried: str = option(
        "raw",
        "The counts of raw values to keep for each attribute: raw (by value and label), "
        "histogram (by value) or nothing (masked values only).",
        "WHAT",
        name="information",
    )
    sign: Path | None = option(
        None,
        "Sign the summary with this private key (PEM, from aegis keygen). Anyone with the "
        "public key can then check who made it.",
        "FILE",
    )
    locked: bool = option(
        False,
        "Allow no weaker rule than this policy's wherever the summary is used. Without this "
        "option, others can use a weaker rule with --rule-override, and results say so.",
    )
    verify_key: VerifyKey = None


@dataclass(frozen=True, kw_only=True)
class SummarizeCommand:
    """All options of `aegis summarize`."""

    table: Table
    policy_file: PolicyFile
    output: Path = option(MISSING, "The summary to write (.aegis).", "FILE", short="-o")
    summary: SummaryOptions
    opening: Opening
    running: RunOptions


@opens_table
def command(options: SummarizeCommand) -> None:
    """Reduce a table to the counts that advice needs, in one file.

    You give a table and its policy. Aegis writes a summary (.aegis), from which `aegis
    advise` works without the table. The summary contains counts, not rows. But exact
    counts of rare values can reveal a person, so protect it like the table. With
    --information nothing, the summary contains only counts of masked values; rankings
    and searches stay the same. To share counts safely, use aegis protect.
    """
    check_outputs(
        [(options.output, (BUNDLE,))],
        force=options.running.force,
        inputs=(options.table, options.policy_file),
    )
    summary, person = _summarized(options)
    shell = options.running.shell
    _print(summary, options.output, options.policy_file, shell, options.table, person)


def _summarized(options: SummarizeCommand) -> tuple[Summary, str | None]:
    """Write the summary of a table; return it and the name of the column with persons."""
    from aegis.policy import load_policy
    from aegis.signing import load_private_key
    from aegis.study import Study
    from aegis.summary import Information

    request = options.summary
    Information.of(request.carried)
    policy = load_policy(options.policy_file)
    if request.verify_key is not None and request.like is None:
        raise PolicyError(
            "--verify-key checks the summary of --like, which you did not give.",
            hint="Leave it out.",
        )
    model = None if request.like is None else read_summary(request.like, request.verify_key)
    key = None if request.sign is None else load_private_key(request.sign)
    if is_bundle(options.table):
        raise PolicyError(
            f"{options.table} is a summary already.", hint="Give the table that it was made from."
        )
    subject = options.opening.subject(options.table, policy, quiet=options.running.quiet)
    with reporting(quiet=options.running.quiet) as progress:
        study = Study(
            subject,
            policy,
            exact=request.exact,
            seed=options.running.seed,
            like=model,
            progress=progress,
        )
        summary = study.save(
            options.output,
            information=request.carried,
            locked=request.locked,
            key=key,
            force=options.running.force,
        )
    return summary, study.policy.person


def _print(
    summary: Summary,
    output: Path,
    policy_file: Path,
    shell: Output,
    origin: str,
    person: str | None,
) -> None:
    figures = summary.to_dict()
    if person is not None:
        shell.warn(
            [
                f"the summary counts rows, and not who has which: advice under a policy that counts "
                f"persons ({person}) needs the table"
            ]
        )
    names = ("attribute", "role", "kind", "values", "nulls", "masks")
    rows = [
        [name, *(entry[key] for key in names[1:-1]), len(entry["candidates"])]
        for name, entry in figures["attributes"].items()
    ]
    data = {"schema": SCHEMA} | figures | {"files": written_dict([output])}
    if shell.as_data(data, names, rows):
        return
    columns = (
        Column(names[0], wraps=True),
        Column(names[1]),
        Column(names[2]),
        *(number(name) for name in names[3:]),
    )
    shell.show(line(_overview(figures)), line(""))
    shell.show(table(columns, ([*r[:3], *(f"{n:,}" for n in r[3:])] for r in rows)))
    shell.say(*written([output]))
    why = "rank configurations" + (" from the summary alone" if person is None else "")
    subject = output if person is None else origin
    shell.suggest(*next_step(why, "advise", subject, policy=policy_file, o=unused("best.yaml")))


def _label(figures: Mapping[str, Any]) -> str:
    """Describe the label or labels of a summary, with the first classes and their numbers of rows."""
    if figures.get("labels"):
        each = (f"{name} ({label_words(label)})" for name, label in figures["labels"].items())
        return f"labels {', '.join(each)}"
    label_classes = ", ".join(
        f"{name} {rows:,}" for name, rows in list(figures["classes"].items())[:5]
    )
    if figures.get("label_number"):
        label_classes = label_words(figures)
    more = ", ..." if len(figures["classes"]) > 5 else ""
    return f"label {figures['label']}: {label_classes}{more}"


def _overview(figures: dict[str, Any]) -> str:
    cells = figures["quasi_identifier_classes"]
    cell_count = "none kept" if cells is None else f"{cells:,}"
    basis = "a sample of " if figures["sampled"] else "all "
    return (
        f"{counted(figures['rows'], 'row')}; {_label(figures)}\n"
        f"{_weights(figures)}"
        f"Counts in the file: {CONTENTS[figures['information']]}\n"
        f"Combinations of values (frequency table): {cell_count}; pairs of values counted on "
        f"{basis}{counted(figures['cooccurrence_rows'], 'labelled row')}"
        + "".join(f"\nText read as: {_dialect(dialect)}" for dialect in figures["dialects"])
    )


def _weights(figures: dict[str, Any]) -> str:
    """Name the column of weights, and say how many rows of equal weight are worth the same; empty
    if the rows of the summary have no weights.
    """
    weights = figures.get("weights")
    if weights is None:
        return ""
    worth = counted(round(weights["effective_rows"]), "row")
    return f"Weighted by {weights['column']}: worth {worth} of equal weight\n"


def _dialect(dialect: dict[str, Any]) -> str:
    """Describe how a text file is written: encoding, separator, quotes, and a line of names."""
    quote, escape = dialect["quote"], dialect["escape"]
    quoting = f"quote {quote}" if quote else "no quotes"
    quoting += f", escape {escape}" if escape not in ("", quote) else ""
    return (
        f"{dialect['encoding']}, delimiter {clean(dialect['delimiter'])}, {quoting}, "
        f"{'names' if dialect['header'] else 'no names'} in the first line"
    )
