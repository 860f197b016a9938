"""Advice from a protected summary: `aegis advise FILE.protected`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.files import next_step, unused, written
from aegis.cli.formats import SummaryRequest
from aegis.cli.options import Format
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import PolicyError
from aegis.files import write_text
from aegis.policy import dump_configurations, load_policy
from aegis.study import SEARCH_SECONDS
from aegis.words import amount

if TYPE_CHECKING:
    from aegis.policy import Policy
    from aegis.progress import Progress
    from aegis.safe.protect import ProtectedAdvice, ProtectedRanked, ProtectedSummary

NEEDS_EXACT = {
    "--measure": "a protected summary is scored by the held-out target-coded trace alone",
    "--objective": "a protected summary is scored by the held-out target-coded trace alone",
    "--front": "a front needs the classes of every configuration",
    "--after": "its owner holds the rule against earlier releases",
    "--merit": "what models reach is expected from exact counts",
    "--models": "what models reach is expected from exact counts",
    "--verify-key": "a protected summary is not signed",
    "--proxy": "models are trained on rows",
    "--with": "record-level methods need the rows",
    "--evaluate": "models are trained on rows",
    "--prefer": "it has no front to choose from",
    "--estimate": "its deviations are from what was protected, not from the raw table",
}


SHOWN_CHANGES = 8
"""Changes of one mask that are printed, the best first; JSON and the report hold all."""


TAKEN_BY = "aegis advise, report, reconstruct and leak take protected ones"
HOLDS = "is a protected summary"


def advise(asked: SummaryRequest) -> None:
    """Rank or search from a protected summary, and print and write what was found."""
    from aegis.safe.protect import load_protected, summary_under

    _refuse_exact(asked.options)
    options, shell = asked.options, asked.shell
    policy = load_policy(asked.policy_file)
    summary, override = summary_under(
        load_protected(asked.path), policy, rule_override=bool(options.get("--rule-override"))
    )
    summary = _without(summary, options.get("--leave-out") or ())
    with reporting(quiet=shell.quiet) as progress:
        advice = _ranked(asked, summary, policy, progress)
    if override is not None:
        advice = replace(
            advice, rule_override=override, warnings=(override.sentence, *advice.warnings)
        )
    best, made, report = advice.best, options.get("--output"), options.get("--report")
    if best is None:
        made = None
    elif made is not None:
        owner = None if advice.owner_rule is None else advice.owner_rule.to_dict()
        write_text(made, dump_configurations({best.name: best.configuration}, made_under=owner))
    if report is not None:
        _write_report(report, advice, summary)
    if asked.printed:
        _print(shell, advice, options.get("--top") or None)
    else:
        shell.warn(advice.warnings)
    shell.say(*written([made, report]))
    advice.require_best()
    if made is not None:
        _suggest(shell, asked.policy_file, made)


def _refuse_exact(options: Mapping[str, Any]) -> None:
    """Raise for the first option that needs exact counts or rows."""
    for name, why in NEEDS_EXACT.items():
        if options.get(name) is not None:
            raise PolicyError(
                f"{name} was given with a protected summary: {why}.",
                hint="Leave it out, or give the table or its exact summary (.aegis).",
            )


def _ranked(
    asked: SummaryRequest, summary: ProtectedSummary, policy: Policy, progress: Progress
) -> ProtectedAdvice:
    from aegis.safe.protect import rank_protected, search_protected

    options = asked.options
    if asked.search:
        seconds = options.get("--time-limit")
        return search_protected(
            summary,
            top=options.get("--top") or 10,
            time_limit=SEARCH_SECONDS if seconds is None else seconds,
            progress=progress,
        )
    return rank_protected(
        summary,
        asked.configurations,
        policy=policy,
        generate_count=options["--generate"],
        seed=options["--seed"],
        progress=progress,
    )


def _suggest(shell: Output, policy_file: Path, made: Path) -> None:
    shell.suggest(
        *next_step(
            "have its owner mask the table, which checks the rule",
            "apply",
            "TABLE",
            "--policy",
            str(policy_file),
            "--configuration",
            str(made),
            "-o",
            unused(made.with_name("masked.parquet")),
        )
    )


def _without(summary: ProtectedSummary, leave_out: Sequence[str]) -> ProtectedSummary:
    """Return a protected summary without some attributes; what is said of the rule goes with them."""
    from aegis.safe.protect.narrow import narrowed

    for name in leave_out:
        if name not in summary.attributes:
            raise PolicyError.unknown("attribute to leave out", name, summary.attributes)
    if not leave_out:
        return summary
    return narrowed(
        summary,
        {
            name: [candidate.declared for candidate in attribute.candidates]
            for name, attribute in summary.attributes.items()
            if name not in leave_out
        },
    )


def _write_report(path: Path, advice: ProtectedAdvice, summary: ProtectedSummary) -> None:
    from aegis.report import write_page
    from aegis.safe.protect import audit_leak
    from aegis.safe.report.protected import render_protected

    write_page(path, render_protected(advice, audit=audit_leak(summary)))


def _print(shell: Output, advice: ProtectedAdvice, top: int | None) -> None:
    if shell.format is Format.JSON:
        shell.json(advice.to_dict())
        return
    names = ("rank", "name", "score", "stderr", "kept", "tied", "rule")
    rows = [_row(i, ranked) for i, ranked in enumerate(advice.ranking[:top])]
    if shell.format is Format.CSV:
        shell.csv(names, rows)
        return
    from aegis.cli.tables import Column, heading, line, number, pairs, table

    figures = advice.summary["protection"]
    shell.show(
        line(
            f"{amount(advice.combinations)} combinations; scores by {_ESTIMATORS[advice.estimator]}, level "
            f"{figures['level']}"
        ),
        line(""),
    )
    columns = (
        number(names[0]),
        Column(names[1]),
        number(names[2]),
        number(names[3]),
        number(names[4]),
        Column(names[5]),
        Column(names[6]),
    )
    shell.show(table(columns, ([_text(v) for v in row] for row in rows)))
    if advice.best is not None:
        shell.show(line(""), heading(f"Best: {advice.best.name}"))
        shell.show(pairs(advice.best.declared.items()))
    if advice.what_if:
        shell.show(line(""), heading("Another mask of one attribute would change the score by"))
        changes = sorted(advice.what_if, key=lambda change: -change.change)[:SHOWN_CHANGES]
        shell.show(
            table(
                (
                    Column("attribute"),
                    Column("mask"),
                    number("change"),
                    number("stderr"),
                    Column(""),
                ),
                (
                    [w.attribute, w.mask, f"{w.change:+.4g}", f"{w.stderr:.2g}", "tied" * w.tied]
                    for w in changes
                ),
            )
        )
    shell.caution(advice.warnings)


_ESTIMATORS = {
    "codes": "held-out target-coded trace",
    "tables": "what each attribute says on rows held out, added up",
}
_RULE = {True: "meets it", False: "breaks it", None: "not said"}
_TIED = {True: "tied with best", False: "", None: ""}


def _row(index: int, ranked: ProtectedRanked) -> list[Any]:
    return [
        index + 1,
        ranked.name,
        ranked.score,
        ranked.stderr,
        ranked.utility_kept,
        _TIED[ranked.tied_with_best],
        _RULE[ranked.admissible],
    ]


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def reconstruct(path: str, attribute: str, options: Mapping[str, Any], shell: Output) -> None:
    """Print the joint of an attribute and the label as far as protection leaves it."""
    from aegis.safe.protect import load_protected, reconstruct_protected

    for name, given in options.items():
        if given is not None:
            raise PolicyError(
                f"{name} was given with a protected summary, whose label tables are all it knows.",
                hint="Leave it out, or give the table or its exact summary (.aegis).",
            )
    joint = reconstruct_protected(load_protected(path), attribute)
    if shell.format is Format.JSON:
        shell.json({"schema": 1} | joint.to_dict())
        return
    names = ("value", *(f"{kind}:{c}" for c in joint.classes for kind in ("estimate", "stderr")))
    rows = [
        [cell, *(figure for pair in zip(estimate, error, strict=True) for figure in pair)]
        for cell, estimate, error in zip(
            joint.cells, joint.table.tolist(), joint.stderr.tolist(), strict=True
        )
    ]
    if shell.format is Format.CSV:
        shell.csv(names, rows)
        return
    from aegis.cli.tables import Column, line, number
    from aegis.cli.tables import table as shown

    shell.show(
        line(
            f"{joint.attribute}: {len(joint.cells):,} cells; mean square contingency "
            f"{joint.contingency:.4g} ± {joint.contingency_stderr:.2g}"
        ),
        line(""),
    )
    columns = (Column(joint.attribute, wraps=True), *(number(c) for c in joint.classes))
    shell.show(
        shown(
            columns,
            (
                [cell, *(f"{n:,.1f} ± {e:.1f}" for n, e in zip(estimate, error, strict=True))]
                for cell, estimate, error in zip(
                    joint.cells, joint.table.tolist(), joint.stderr.tolist(), strict=True
                )
            ),
        )
    )
    shell.warn(["errors are those that protection adds; the true rows are not known here"])
