"""Search one summary under several rules, which share scores and bounds; save a stopped search in a
file, so that a later search can continue it. Boxes and signed values are those of `objective`.

The file contains the best configurations, and the unsearched boxes with their bounds. Use only your
own files: Aegis does not check the bounds.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aegis.advisor.confidence import configuration_masking, with_confidence
from aegis.advisor.figures import SearchFigures, SearchWork
from aegis.advisor.plan import PrivacyPlan, rank_choice
from aegis.advisor.ranked import Ranked
from aegis.advisor.released import error_of
from aegis.advisor.scores import changed
from aegis.advisor.scoring import Choice, utility_kept
from aegis.advisor.search.branch import BranchAndBound, Found, OpenBox, find_closest, gap, suiting
from aegis.advisor.search.corner_classes import CornerClasses
from aegis.advisor.search.feasibility import BesidePopulation, Feasibility, InEngine, InMemory
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.objectives import SharesKept, make_objective
from aegis.advisor.search.problem import Box, Clock, Problem, make_problem
from aegis.advisor.search.shortlist import SPLITS, Shortlist
from aegis.advisor.several import scorer_of
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress, read_text, write_text
from aegis.measures import MEASURES, Direction
from aegis.policy import Policy, policy_digest
from aegis.privacy import PrivacyRule, Verdict
from aegis.summary import Summary
from aegis.words import amount

_FORMAT = 1
_SAVED = 10
"""Largest number of best configurations to save; a later search begins with them."""


@dataclass(frozen=True)
class SearchFile:
    """The file in which Aegis saves a search, to continue it later.

    Attributes
    ----------
    path
        Path of the file, which need not exist yet.
    digests
        Digests of the table and of the policy with its rule, and the measure. They identify the
        search, so that `read` can refuse the file of another search.
    full
        The box of all combinations.
    """

    path: Path
    digests: Mapping[str, str]
    full: Box

    @classmethod
    def of(
        cls, path: Path, policy: Policy, problem: Problem, plan: PrivacyPlan, objective: str
    ) -> SearchFile:
        """Return the file for a search of this search space under this policy and rule. `objective`
        identifies the objective and the number of requested configurations.
        """
        return cls(
            path,
            {
                "policy": policy_digest(replace(policy, privacy=plan.rule)),
                "table": _digest(*_counts(problem)),
                "measure or --top": objective,
            },
            tuple(variable.full for variable in problem.variables),
        )

    def read(self) -> tuple[tuple[Box, ...], tuple[OpenBox, ...]] | None:
        """Return the best configurations that an earlier search found, and the boxes that it did
        not search; None if the file does not exist yet.

        Raises
        ------
        PolicyError
            The file was not written by a search, or by one with another table, policy or measure.
        """
        if not self.path.exists():
            return None
        text = read_text(self.path, "search to resume", PolicyError)
        try:
            data = json.loads(text)
            digests = {name: data["of"][name] for name in self.digests}
            best = tuple(self._box(box) for box in data["best"])
            boxes = tuple(
                OpenBox(_bound(bound), self._box(box), bool(tight))
                for bound, tight, box in data["open"]
            )
            if data["aegis_search"] != _FORMAT:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise PolicyError(
                f"{self.path} is not a search that can be resumed.",
                hint="Give a file that --resume wrote, or a name that does not exist.",
            ) from error
        other = [name for name, digest in self.digests.items() if digests[name] != digest]
        if other:
            raise PolicyError(
                f"{self.path} is from a search with another {' and another '.join(other)}.",
                hint="Give another file, or the table, policy and measure of that search.",
            )
        return best, boxes

    def write(self, outcome: Found) -> None:
        """Write the best configurations that a search has found so far, and the boxes not yet
        searched.
        """
        data = {
            "aegis_search": _FORMAT,
            "of": dict(self.digests),
            "best": [list(map(str, box)) for _, box in outcome.best[:_SAVED]],
            "open": [
                [None if math.isinf(bound) else bound, tight, list(map(str, box))]
                for bound, box, tight in outcome.open
            ],
        }
        write_text(self.path, json.dumps(data))

    def _box(self, domains: Any) -> Box:
        box = tuple(int(domain) for domain in domains)
        if len(box) != len(self.full) or not all(
            0 < domain <= full and domain & full == domain
            for domain, full in zip(box, self.full, strict=True)
        ):
            raise ValueError
        return box


def _bound(number: Any) -> float:
    bound = math.inf if number is None else float(number)
    if math.isnan(bound):
        raise ValueError
    return bound


def _counts(problem: Problem) -> list[str]:
    """Return texts that identify the table and the masks of a search: its rows, the candidates, and
    a digest of each array of counts. Those by fold differ even between tables whose columns have
    the same counts.
    """
    summary = problem.summary
    pairs, frequency = summary.pairs, summary.frequency
    arrays = list(pairs.atom_counts if pairs.folds is None else pairs.folds.atom_counts)
    if frequency is not None:
        arrays += [frequency.counts, *(frequency.codes[name] for name in sorted(frequency.codes))]
    masks = [repr((v.name, [str(c.mask) for c in v.candidates])) for v in problem.variables]
    digests = [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays]
    return [str(summary.rows), *masks, *digests]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


LISTED, BRIEFLY = 100, 10
"""Largest number of configurations that are listed by the trace if the objective has no bound: in a
full search, and in a brief one.
"""
ENUMERATED = 3_000
"""If the objective has no bound and there are at most this many combinations, every admissible
configuration is scored.
"""
_PER_PAIR = 3e-8
"""Seconds in which a pair of values is counted without one fold of the rows."""
TRACES = ("adjusted-pillai", "pillai-plain")
"""The measures by which configurations are listed; the second one is used if the first one is never
above 0.
"""


class Searcher:
    """Searches one summary under several rules. The searches share all scores and bounds that do
    not depend on the rule.

    Parameters
    ----------
    summary, plan
        The counts from which scores are computed, and the plan that checks the rule.
    objective
        Name of the figure that the search maximises or minimises, with its options.
    measure
        Name of the measure by which the configurations that the search finds are scored.
    progress
        Shows the progress.
    """

    def __init__(
        self,
        summary: Summary,
        plan: PrivacyPlan,
        objective: str,
        measure: str,
        progress: Progress = SILENT,
    ) -> None:
        summary = summary.in_effective_rows()
        self.summary = summary
        self.plan = plan
        self.progress = progress
        self.scorer = scorer_of(summary)
        self.problem = make_problem(summary, plan.groups_of_people)
        self.objective = make_objective(objective, self.problem, self.scorer, plan)
        self.measure = MEASURES.get(measure)
        self._classes: dict[bool, CornerClasses] = {}
        listing = () if self.objective.bounded else TRACES
        self._traces = [
            make_objective(t, self.problem, self.scorer, plan, self.objective) for t in listing
        ]

    def for_label(self, index: int) -> Searcher:
        """Return a searcher that optimises only one of several labels, the one at `index`."""
        other = copy(self)
        other.objective = _of_label(self.objective, index)
        other._traces = [_of_label(trace, index) for trace in self._traces]
        return other

    def unmasked(self) -> float:
        """Return the score of the unmasked table by the measure."""
        return self.scorer.value(self.scorer.unmasked, self.measure)

    @property
    def by_measure(self) -> bool:
        """Whether the objective is the measure by which results are scored."""
        return self.objective.name == self.measure.name

    @property
    def sees_nothing(self) -> bool:
        """Whether the objective is the measure, and even the unmasked table has no utility by it.
        Then scores cannot compare masks, so no configuration is proven best.
        """
        if not self.by_measure or self.measure.direction is not Direction.HIGHER:
            return False
        return not self.unmasked() > self.measure.worst(self.scorer.label_rows)

    def under(self, plan: PrivacyPlan, progress: Progress) -> Searcher:
        """Return a searcher for the rule of another plan, which shares scores and bounds with this
        one.
        """
        if plan is self.plan and progress is self.progress:
            return self
        other = copy(self)
        other.objective = self.objective_under(plan.rule)
        other.plan, other.progress = plan, progress
        return other

    def _plan_of(self, rule: PrivacyRule) -> PrivacyPlan:
        return self.plan if rule is self.plan.rule else self.plan.under(rule)

    def feasibility(self, rule: PrivacyRule, clock: Clock | None = None) -> InMemory | InEngine:
        """Return an object that checks whether combinations meet a rule: from counts in memory, or
        else by database queries. Without a clock, it has no time limit.
        """
        plan, clock = self._plan_of(rule), clock or Clock(None)
        if self.summary.frequency is None:
            return InEngine(self.problem, plan, clock)
        counted = BesidePopulation if plan.by_population else InMemory
        return counted(self.problem, self.summary.frequency, plan, clock, self._classes)

    def objective_under(self, rule: PrivacyRule) -> Objective:
        """Return the objective under a rule: some penalise the rows that the rule suppresses."""
        if rule is self.plan.rule or not self.objective.follows_rule:
            return self.objective
        return self.objective.under(self.plan.under(rule))

    @one_blas_thread
    def run(
        self,
        rule: PrivacyRule,
        *,
        top: int,
        time_limit: Clock | float | None,
        start: tuple[Box, ...] = (),
        briefly: bool = False,
        prove: bool = False,
        file: SearchFile | None = None,
    ) -> tuple[Found, SearchFigures]:
        """Search for the best configurations that meet a rule. Return them and the figures of the
        search.

        Parameters
        ----------
        rule
            The privacy rule.
        top
            Number of best configurations to return.
        time_limit
            Seconds, or a clock; None for no limit.
        start
            Configurations to try first.
        briefly
            Whether to score only about 10 configurations (else 100) if the objective has no good
            bounds.
        prove
            Whether to continue, if the objective has no good bounds, until the best configuration
            is proven or time runs out.
        file
            The file in which an earlier search saved the boxes that it did not search. This search
            begins with them, and saves its own there.
        """
        began = time.perf_counter()
        clock = Clock.of(time_limit)
        feasibility = self.feasibility(rule, clock)
        objective = self.objective_under(rule)
        outcome = self._find(
            objective, feasibility, top, clock, start, file, briefly=briefly, prove=prove
        )
        if file is not None:
            file.write(outcome)
        work = SearchWork(
            combinations=self._size(),
            nodes=outcome.nodes,
            checked=feasibility.checked,
            seconds=time.perf_counter() - began,
            rule_monotone=rule.monotone,
        )
        return outcome, figures_of(
            outcome, objective, work, alone=top == 1, notes=tuple(self._notes(work))
        )

    def _find(
        self,
        objective: Objective,
        feasibility: Feasibility,
        top: int,
        clock: Clock,
        start: tuple[Box, ...],
        file: SearchFile | None,
        *,
        briefly: bool,
        prove: bool,
    ) -> Found:
        """Return the `top` best configurations that meet the rule of `feasibility`; the arguments
        are as in `run`.

        If the objective has good bounds, the search is branch and bound, or a strategy that a
        package adds. If it has none, the search scores a list of about 100 configurations (10 if
        `briefly`).
        """
        tried, resumed = (file and file.read()) or ((), None)
        start = (*start, *tried)
        space = self.problem, objective, feasibility
        named = math.prod(len(a.candidates) for a in self.summary.all_attributes)
        with self.progress.step(f"Searching {amount(named)} combinations") as step:
            if not objective.bounded:
                small = self._size() <= ENUMERATED
                most = max(BRIEFLY if briefly else LISTED, top)
                return Shortlist(
                    *space,
                    self._traces,
                    listed=self._size() + 1 if small else most,
                    bounds=not briefly,
                    prove=prove or file is not None,
                    clock=clock,
                    step=step,
                ).run(start, math.inf if small else SPLITS, resumed)
            # Only branch and bound can save its unsearched boxes.
            strategy = suiting(*space) if file is None else None
            if strategy is not None:
                return strategy.search(*space, top=top, clock=clock, step=step, start=start)
            return BranchAndBound(*space, top=top, clock=clock, step=step).run(start, resumed)

    def _notes(self, work: SearchWork) -> Iterator[str]:
        """Yield notes for the user on what limited the search: candidates that were left out,
        classes that only the database can count, and criteria that are not monotone.
        """
        yield from self.problem.duplicates
        if self.summary.frequency is None:
            yield "classes were counted in the engine, one query per configuration"
        if not work.rule_monotone:
            yield (
                "some criteria are not monotone under the suppression limit, so each configuration was "
                "checked separately; where possible, a bound on the rows that finer masks can keep "
                "excluded configurations"
            )

    def _size(self) -> int:
        return math.prod(len(v.candidates) for v in self.problem.variables)

    def rank(self, outcome: Found, clock: Clock) -> list[Ranked]:
        """Return the configurations that the search found as entries of the ranking, best first. If
        none meets the rule, return the one for which the fewest rows must be removed.
        """
        if outcome.best:
            return [
                self.ranked(f"best-{i + 1}", box, value)
                for i, (value, box) in enumerate(outcome.best)
            ]
        box = find_closest(self.problem, self.plan, clock)
        return [] if box is None else [self.ranked("closest", box, self.objective.bound(box))]

    def closest(self, rule: PrivacyRule, clock: Clock) -> Box | None:
        """Return the configuration for which the fewest rows must be removed; None if even this one
        does not meet the rule, or if no time is left.
        """
        box = find_closest(self.problem, self._plan_of(rule), clock)
        return None if box is None or not self.verdict(box, rule).admissible else box

    def settle_for_closest(
        self, outcome: Found, figures: SearchFigures, clock: Clock
    ) -> SearchFigures:
        """If a search stopped before it found a configuration, try the one for which the fewest
        rows must be removed. If it is admissible, add it to `outcome.best`, and return the figures
        with its value and a note.
        """
        box = None if outcome.complete else self.closest(self.plan.rule, clock)
        if box is None:
            return figures
        value = self.objective.bound(box)
        outcome.best.append((value, box))
        note = "this is the configuration that removes the fewest rows"
        return replace(
            figures,
            best=self.objective.sign * value,
            gap=gap(value, outcome.bound) if figures.exact else None,
            notes=(*figures.notes, note),
        )

    def ranked(self, name: str, box: Box, value: float) -> Ranked:
        """Return a configuration as an entry of the ranking, with its scores and whether it meets
        the rule. `value` is the signed value of the objective.
        """
        choice = self.problem.choice(box)
        ranked = rank_choice(name, choice, self.scorer, self.plan, self.measure)
        if self.by_measure:
            return ranked
        return changed(ranked, objective=self.objective.sign * value)

    def error(self, box: Box, clock: Clock) -> float | None:
        """Return the standard error of the score of a configuration; None if there is not enough
        time.
        """
        choice = self.problem.choice(box)
        if not self._errors_allowed([choice], box, clock):
            return None
        return error_of(self.scorer, choice, self.measure)

    def _errors_allowed(self, choices: Sequence[Choice], box: Box, clock: Clock) -> bool:
        """Return whether there is time to compute the standard errors of so many scores; the time
        for one is estimated from `box`.
        """
        # What is made of scores by part leaves parts out of them: no further fit.
        if self.measure.without_folds is not None:
            return True
        pairs = self.summary.pairs
        count = 0 if pairs.folds is None else len(pairs.folds.rows)
        each = self.objective.effort(box) * len(choices)
        return clock.allows(count * (_PER_PAIR * float(sum(pairs.sizes)) ** 2 + each))

    def verdict(self, box: Box, rule: PrivacyRule) -> Verdict:
        """Return whether a configuration meets a rule, with its suppressed rows and class sizes."""
        return self._plan_of(rule).check(self.problem.choice(box))

    def with_errors(
        self, ranking: list[Ranked], outcome: Found, clock: Clock
    ) -> tuple[list[Ranked], tuple[str, ...]]:
        """Return the ranking with how much each entry masks, and the standard error of its score.
        Also return notes on figures that were left out because they would take too long. The
        ranking is unchanged if the search optimised another figure than the measure.
        """
        if not self.by_measure:
            return ranking, ()
        choices = [self.problem.choice(box) for _, box in outcome.best]
        entries = [
            replace(ranked, masking=configuration_masking(choice, self.scorer))
            for ranked, choice in zip(ranking, choices, strict=True)
        ]
        if not self._errors_allowed(choices, outcome.best[0][1], clock):
            return entries, ("there was no time left to estimate standard errors",)
        with self.progress.step("Estimating standard errors"):
            by_score = max(range(len(entries)), key=lambda i: outcome.best[i][0])
            order = [by_score, *(i for i in range(len(entries)) if i != by_score)]
            compared = with_confidence(
                [entries[i] for i in order], [choices[i] for i in order], self.scorer, self.measure
            )
        placed = dict(zip(order, compared, strict=True))
        return [placed[i] for i in range(len(entries))], ()

    def with_notes(
        self,
        figures: SearchFigures,
        lacking: tuple[str, ...],
    ) -> SearchFigures:
        """Return the figures of a search, completed with notes.

        Parameters
        ----------
        figures
            The figures of the search.
        lacking
            Notes on figures that were left out for lack of time.
        """
        notes = (*figures.notes, *lacking)
        blind = self.sees_nothing
        if blind:
            notes = (
                *notes,
                f"by {self.measure.name} the unmasked table has no utility: it is too small, or its "
                "attributes predict too little, to compare masks. So Aegis recommends the least masking",
            )
        return replace(
            figures,
            optimal=figures.optimal and not blind,
            notes=notes,
            tells_masks_apart=not blind,
        )

    def utility_kept(self, box: Box) -> float | None:
        """Return how many percent of the unmasked utility a configuration keeps."""
        measure, scorer = self.measure, self.scorer
        score = scorer.value(self.problem.choice(box), measure)
        return utility_kept(
            score, scorer.value(scorer.unmasked, measure), measure, scorer.label_rows
        )


def _of_label(objective: Objective, index: int) -> Objective:
    """Return the part of an objective of several labels that belongs to one label; any other
    unchanged.
    """
    return objective.labels[index] if isinstance(objective, SharesKept) else objective


def figures_of(
    outcome: Found,
    objective: Objective,
    work: SearchWork,
    *,
    alone: bool,
    notes: tuple[str, ...] = (),
) -> SearchFigures:
    """Return the figures of a search: its best value, its bound, and what is proven. `alone` states
    whether only the best configuration was requested; `notes` are further notes.
    """
    exact = objective.bounded or outcome.bound < math.inf
    best = outcome.best[0][0] if outcome.best else -math.inf
    distance, sign = gap(best, outcome.bound), objective.sign
    optimal = exact and distance == 0
    why = "interrupt" if outcome.interrupted else "time limit"
    loose = exact and outcome.generous and not optimal
    return SearchFigures(
        objective=objective.name,
        optimal=optimal,
        exact=exact,
        best=sign * best if outcome.best else None,
        bound=sign * outcome.bound if exact and math.isfinite(outcome.bound) else None,
        gap=distance if exact else None,
        work=work,
        notes=(*_on_the_proof(outcome, loose=loose, first=optimal and not alone), *notes),
        stopped=None if outcome.complete else why,
        proven=outcome.proven,
    )


def _on_the_proof(outcome: Found, *, loose: bool, first: bool) -> Iterator[str]:
    """Yield notes on the proof, and on how the search ended. `loose` says whether the bound ignores
    the privacy rule and proves nothing yet; `first`, whether only the first of several is proven.
    """
    if loose:
        yield "the bound ignores the privacy rule, so it is not tight: with --time-limit the search continues and improves it"
    if first and not outcome.complete:
        yield "the first is proven best, the order of the others is not"
    if not outcome.complete:
        why = "was interrupted" if outcome.interrupted else "reached its limit"
        yield (
            f"the search {why}: this is the best configuration that it found"
            if outcome.best
            else f"the search {why} before it found an admissible configuration; there may be one"
        )
