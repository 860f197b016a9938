"""Advice from the counts of masked tables: `aegis advise FILE.published`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.cli.advice import print_advice
from aegis.cli.files import written
from aegis.cli.formats import SummaryRequest
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import PolicyError

TAKEN_BY = "aegis advise and aegis report take the counts of masked tables"
HOLDS = "holds the counts of masked tables"
REFUSED = (
    "--objective",
    "--front",
    "--prefer",
    "--search",
    "--configurations",
    "--generate",
    "--with",
    "--after",
    "--population",
    "--output",
    "--verify-key",
    "--proxy",
    "--merit",
    "--models",
    "--evaluate",
    "--leave-out",
)
"""Options that need the table or its summary."""


def advise(asked: SummaryRequest) -> None:
    """Rank masked tables, and print and write what was found."""
    from aegis.papers.published import load_published, rank_published
    from aegis.policy import load_policy
    from aegis.report import render_report, write_page

    options, shell = asked.options, asked.shell
    _refuse({name: options.get(name) for name in REFUSED})
    policy = load_policy(asked.policy_file)
    with reporting(quiet=shell.quiet) as progress:
        advice = rank_published(
            load_published(asked.path),
            policy,
            measure=options.get("--measure"),
            estimate=options.get("--estimate"),
            rule_override=bool(options.get("--rule-override")),
            progress=progress,
        )
    report = options.get("--report")
    if report is not None:
        write_page(report, render_report(advice))
    if asked.printed:
        print_advice(shell, advice, asked.path, policy, options.get("--top") or None)
    else:
        shell.warn(advice.warnings)
    shell.say(*written([report]))
    advice.require_best()


def _refuse(options: Mapping[str, object]) -> None:
    for name, given in options.items():
        if given:
            raise PolicyError(f"{name} is not for masked tables.", hint="Leave it out.")


def reconstruct(
    path: str,
    attribute: str,  # noqa: ARG001 - of the seam
    options: Mapping[str, Any],  # noqa: ARG001
    shell: Output,  # noqa: ARG001
) -> None:
    """Refuse: the counts are of masked values."""
    raise PolicyError(
        f"{path} {HOLDS}, and this needs a table or its exact summary (.aegis).",
        hint=f"Give one of these; {TAKEN_BY}.",
    )
