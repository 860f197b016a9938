"""Complete an answer with more than the ranking: record-level releases, privacy, utility and
reports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.advisor import Advice, Ranked, with_privacy, with_residual_risks
from aegis.advisor.advise import rule_notes
from aegis.advisor.caveats import with_first
from aegis.advisor.estimates import ESTIMATES
from aegis.advisor.owner import with_owner_rule
from aegis.advisor.rank import with_label_mask
from aegis.advisor.released import ReleasedRows, with_utility
from aegis.advisor.several import scorer_of
from aegis.errors import PolicyError
from aegis.options import checks_types
from aegis.policy import Configuration, Policy
from aegis.requests import ApplyRequest, RankRequest, SearchRequest
from aegis.study.questions import AddedSummary
from aegis.study.subject import Subject
from aegis.summary_formats import refuse_options

if TYPE_CHECKING:
    from aegis.anonymizers import Recipe
    from aegis.release import Release
    from aegis.report import Reported, ReportSection

Configurations = Mapping[str, Configuration] | Sequence[Configuration]


def added_summary(
    subject: Subject,
    request: RankRequest | SearchRequest,
    methods: Sequence[str | Recipe] | None,
) -> AddedSummary | None:
    """Return the summary of a study (`subject`) if an installed package defines its format; None
    for a table or an ordinary summary.

    `request` and `methods` say what the user wants to know.

    Raises
    ------
    PolicyError
        Summaries of this format do not support an option of the request.
    """
    if subject.added is not None:
        refuse_options(subject.added, {**vars(request), "methods": methods or None})
    return subject.added


def check_methods(policy: Policy, methods: Collection[str | Recipe] | None, seed: int) -> None:
    """Raise `PolicyError` before any work is done if a record-level method is unknown, or if the
    policy does not allow such methods because it has several labels.

    `methods` are the requested methods; None for those of the policy.
    """
    if methods or (methods is None and policy.anonymizers):
        policy.refuse_several("A record-level method")
    if methods:
        from aegis.advisor.methods import choose_recipes

        choose_recipes(policy, methods, seed=seed)


def check_estimate(estimate: str | None, methods: Iterable[str | Recipe] | None) -> None:
    """Raise `PolicyError` if the estimate is unknown, or if both an estimate and record-level
    methods are given.
    """
    if estimate is None:
        return
    ESTIMATES.get(estimate)
    if methods:
        raise PolicyError(
            "An estimate needs masks, and record-level releases have none.",
            hint="Leave out the methods or the estimate.",
        )


def complete_advice(
    subject: Subject,
    advice: Advice,
    methods: Sequence[str | Recipe] | None,
    seed: int,
    *,
    measured: bool = True,
) -> Advice:
    """Return the advice completed with record-level releases and with its privacy figures. Its
    warnings begin with warnings about the rule, followed by risks to persons.

    Parameters
    ----------
    subject
        The table or summary, with the policy.
    advice
        The advice of a ranking or a search.
    methods
        Record-level methods to rank, too; None for those of the policy.
    seed
        Seed of random draws.
    measured
        Whether to measure the utility on the rows that the best release keeps.
    """
    policy, summary = subject.policy, subject.summary
    if methods or (methods is None and policy.anonymizers):
        from aegis.advisor.methods import with_methods

        advice = with_methods(
            advice,
            summary,
            subject.source,
            policy,
            methods,
            seed=seed,
            progress=subject.progress,
        )
    advice = with_privacy(advice, summary, subject.plan, policy)
    scorer, best = scorer_of(summary), advice.best
    released = ReleasedRows(subject.plan, subject.source, policy, subject.seed, subject.known)
    stored: AbstractContextManager[ReleasedRows] = nullcontext(released)
    if measured and best is not None and best.method is None:
        stored = released.storing(scorer.choose(best.configuration))
    with stored as rows:
        if measured:
            advice = with_utility(advice, rows, scorer, subject.progress)
        advice = with_residual_risks(advice, rows)
    advice = with_first(advice, lambda: rule_notes(summary, subject.plan))
    if subject.source is None:
        advice = with_owner_rule(advice, summary, subject.overridden)
    return with_label_mask(advice, summary, policy)


@checks_types
def check_report(path: str | Path | None, *, force: bool) -> None:
    """Raise `PolicyError` if no report can be written to this path, before any work is done."""
    from aegis.files import check_output

    if path is not None:
        check_output(Path(path), force=force, formats=(".html", ".htm", ".pdf"))


def draw_report(
    subject: Subject,
    reported: Advice | Reported,
    path: str | Path | None,
    *,
    title: str | None,
    values: bool,
) -> str:
    """Return the report on an advice or an evaluation as HTML. If `path` is given, also write it to
    this file.

    `title` is the heading. `values` says whether the report may show values of the table.
    """
    from aegis.advisor.owner_preview import show_release
    from aegis.report import added_sections, render_report, write_page
    from aegis.report.section import advice_of

    with subject.progress.step("Drawing the report"):
        advice = advice_of(reported)
        shown, added = None, subject.added
        if added is None and values:
            shown = show_release(
                advice, subject.summary, subject.plan, subject.policy, subject.source
            )
        sections: Sequence[ReportSection] = (
            added_sections(subject.summary, advice)
            if added is None
            else added.report_sections(advice)
        )
        page = render_report(reported, title=title, shown=shown, sections=sections)
    if path is not None:
        write_page(Path(path), page)
    return page


def release_table(
    subject: Subject, configuration: Configuration | Ranked | Advice, request: ApplyRequest
) -> Release:
    """Apply a configuration to the table, and return the release.

    If an advice or an entry of a ranking is given, the certificate states the utility by its
    measure.
    """
    from aegis.release import apply

    override = request.rule_override or subject.rule_override
    given, rows = replace(request, rule_override=override), subject.rows_to("mask")
    return apply(rows, subject.policy, configuration, given, progress=subject.progress)
