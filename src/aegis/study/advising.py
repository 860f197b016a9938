"""Answer the questions that need only the summary: advice, fronts, costs and estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from aegis.advisor import Advice, PrivacyPlan, rank_configurations
from aegis.advisor.figures import mask_costs
from aegis.files import Progress
from aegis.measures import MEASURES
from aegis.options import checks_types, request_with
from aegis.policy import Configuration, Policy
from aegis.requests import SEARCH_WORK, RankOptions, RankRequest, SearchOptions, SearchRequest, Span
from aegis.sources import Source
from aegis.study.subject import (
    Configurations,
    Subject,
    added_summary,
    ask,
    check_estimate,
    check_methods,
    complete_advice,
)
from aegis.summary import Summary

if TYPE_CHECKING:
    from aegis.advisor.figures import Front, MaskCost
    from aegis.advisor.ranked import Estimate
    from aegis.advisor.released import ReleasedRows
    from aegis.advisor.search import Prepared
    from aegis.anonymizers import Recipe
    from aegis.summary import Information


def _measure_of(objective: str | None) -> str | None:
    """Return the name of an objective of the search if this objective is a measure, else None."""
    return objective if objective is not None and objective in MEASURES else None


def _loss_of(objective: str | None) -> str | None:
    """Return the name of an objective if it is a loss instead of a measure, else None."""
    return None if _measure_of(objective) else objective


class Advising(ABC):
    """A table under one policy, and the questions that can be answered from its counts."""

    _subject: Subject

    @property
    def policy(self) -> Policy:
        """The policy: roles, candidate masks and privacy rule."""
        return self._subject.policy

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        return self._subject.seed

    @property
    def source(self) -> Source | None:
        """The table; None if the study has only a summary."""
        return self._subject.source

    @property
    def progress(self) -> Progress:
        """The object that shows the progress of long work."""
        return self._subject.progress

    @abstractmethod
    def under(
        self, policy: Policy | str | Path | Mapping[str, Any], *, rule_override: bool = False
    ) -> Advising:
        """Return a study of the same table under another policy. `rule_override` says whether to
        accept a rule that differs from the rule of the summary's owner.
        """

    @property
    def searchable(self) -> bool:
        """Whether there are candidate masks to combine; a summary of masked tables has none.

        Examples
        --------
        >>> import aegis
        >>> aegis.Study("data/adult.parquet", "examples/adult/policy.yaml").searchable
        True
        """
        plugin = self._subject.plugin
        return plugin is None or plugin.searchable

    @checks_types
    def rows_to(self, purpose: str) -> Source:
        """Return the table, to be used for `purpose`; raise `DataError` if the study has only a
        summary. A summary contains no rows, and the error says for which purpose they are needed.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.rows_to("count").rows
        32561
        """
        return self._subject.rows_to(purpose)

    @property
    def summary(self) -> Summary:
        """The summary of the table, which is made when it is first used."""
        return self._subject.summary

    @property
    def plan(self) -> PrivacyPlan:
        """The plan that checks configurations against the privacy rule."""
        return self._subject.plan

    def advise(
        self,
        configurations: Configurations | None = None,
        *,
        generate_count: int | None = None,
        measure: str | None = None,
        top: int = 10,
        time_limit: float | None = None,
        methods: Sequence[str | Recipe] | None = None,
        explain_best: bool = False,
    ) -> Advice:
        """Return the best configuration and its runners-up: search all combinations, or rank the
        configurations that you give.

        Parameters
        ----------
        configurations, generate_count, measure, methods
            Configurations to rank, or how many random ones to generate; the name of the measure;
            and record-level methods whose releases Aegis ranks, too. If the policy lists
            configurations, Aegis ranks these by default.
        top, time_limit, explain_best
            How many configurations to return, the time limit in seconds, and whether to explain the
            best one: as in `search`. With a time limit, the search continues until its result is
            proven or the time is over. Without one, it stops after work that takes about 30 seconds
            on an idle machine. The advice then says how much better another configuration could be.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.advise(generate_count=5).best.admissible
        True
        """
        listed = configurations is not None or generate_count is not None
        if listed or self.policy.configurations or not self.searchable:
            return self.rank(
                configurations, generate_count=generate_count, measure=measure, methods=methods
            )
        return self.search(
            measure=measure,
            top=top,
            time_limit=time_limit,
            work=SEARCH_WORK,
            prove=time_limit is not None,
            methods=methods,
            explain_best=explain_best,
        )

    @checks_types
    def costs(self, measure: str | None = None) -> tuple[MaskCost, ...]:
        """Return how much utility each candidate mask loses if it is the only mask in the table.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> costs = study.costs()
        >>> costs[0].attribute, costs[0].mask
        ('age', 'bucketize(width=5)')
        >>> costs[0].lost < 1
        True
        """
        by = self.policy.measured_by(measure)
        if by is not self.policy:
            return self.under(by).costs()
        return mask_costs(self.summary, measure or self.policy.measure)

    def rank(
        self,
        configurations: Configurations | None = None,
        request: RankRequest | None = None,
        *,
        methods: Sequence[str | Recipe] | None = None,
        exact: bool = False,
        **options: Unpack[RankOptions],
    ) -> Advice:
        """Rank masking configurations by score. Configurations that meet the rule come first.

        Parameters
        ----------
        configurations
            Configurations to rank; by default, those that the policy lists, or else 50 random
            configurations.
        request, options
            How to rank: a `RankRequest`, or keywords with the names of its fields.
        methods
            Record-level methods (names or recipes) whose releases Aegis ranks together with the
            configurations. By default, these are the methods of the policy; if you give `estimate`,
            there are none.
        exact
            Whether to count pairs of values on all rows for this ranking; `Study(exact=True)` does
            so for all questions.

        Raises
        ------
        PolicyError
            A measure, a mask or a method is unknown, or the rule does not fit the table.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=20, measure="mi")
        >>> len(advice.ranking), advice.measure
        (20, 'mi')
        >>> advice.best.name == advice.ranking[0].name
        True
        """
        request = request_with(RankRequest, request, options)
        by = self.policy.measured_by(request.measure)
        if by is not self.policy:
            plain = replace(request, measure=None)
            return self.under(by).rank(configurations, plain, methods=methods, exact=exact)
        seed = self.seed if request.seed is None else request.seed
        listed = replace(request, configurations=configurations, seed=seed)
        plugin = added_summary(self._subject, listed, methods)
        if plugin is not None:
            return plugin.rank(listed, progress=self.progress)
        if request.estimate is not None and methods is None:
            methods = ()
        check_estimate(request.estimate, methods)
        check_methods(self.policy, methods, seed)
        chosen = self._subject.counted_exactly() if exact else self._subject
        with chosen.holding() as subject, subject.released().open() as rows:
            of, progress = (subject.summary, subject.plan), self.progress
            advice = rank_configurations(*of, self.policy, listed, progress=progress, released=rows)
            return complete_advice(subject, advice, methods, seed, rows=rows)

    def search(
        self,
        request: SearchRequest | None = None,
        *,
        methods: Sequence[str | Recipe] | None = None,
        **options: Unpack[SearchOptions],
    ) -> Advice:
        """Search all combinations of candidate masks for the best one that meets the rule.

        If `optimal` is True in the advice, the search has proven that its result is the best.

        Parameters
        ----------
        request, options
            How to search: a `SearchRequest`, or its fields as keywords. Without `time_limit` and
            `work`, the search runs to its end. Only `advise` and the command `aegis advise` set
            `work` by default.
        methods
            Record-level methods whose releases Aegis also ranks, as in `rank`.

        Raises
        ------
        PolicyError
            The objective is unknown, `top` is below 1 or the time limit is negative.
        DataError
            The table cannot be summarised.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.search(top=2)
        >>> advice.optimal, len(advice.ranking), f"{advice.combinations:,}"
        (True, 2, '1,105,920')
        """
        from aegis.advisor.search import FrontRange, check_request, front_under_owner

        request = request_with(SearchRequest, request, options)
        by = self.policy.measured_by(request.measure or _measure_of(request.objective))
        if by is not self.policy:
            plain = replace(request, measure=None, objective=_loss_of(request.objective))
            return self.under(by).search(plain, methods=methods)
        plugin = added_summary(self._subject, request, methods)
        if plugin is not None:
            return plugin.search(request, progress=self.progress)
        check_request(self.policy, request)
        check_methods(self.policy, methods, self.seed)
        if request.front is not None and self.source is None:
            terms = self.summary.terms
            span = front_under_owner(
                terms.owner if terms is not None and terms.binding else None,
                FrontRange.of(request.front),
                self.policy.privacy,
                override=self._subject.rule_override,
            )
            request = replace(request, front=span)
        with self._subject.holding(), self._subject.released().open() as rows:
            return self._completed(self._searched(request, rows=rows), request, methods, rows)

    def _searched(
        self,
        request: SearchRequest,
        *,
        progress: Progress | None = None,
        prepared: Prepared | None = None,
        rows: ReleasedRows | None = None,
    ) -> Advice:
        """Search all combinations, scored from the summary's counts. Rows are read only to measure
        the release of the best configuration, and if the summary cannot check the rule, so that the
        table's engine must. `prepared` and `rows` are made if they are None.
        """
        from aegis.advisor.search import search_combinations

        progress = self._subject.progress if progress is None else progress
        return search_combinations(
            self.summary,
            self.plan,
            self.policy,
            request,
            progress=progress,
            prepared=prepared,
            released=rows or self._subject.released(),
        )

    def _completed(
        self,
        advice: Advice,
        request: SearchRequest,
        methods: Sequence[str | Recipe] | None = None,
        rows: ReleasedRows | None = None,
    ) -> Advice:
        """Complete the advice of a search with figures that need the rows, such as the utility of
        the released rows, and with record-level methods.
        """
        by_loss = request.objective is not None and request.objective not in MEASURES
        measured = request.explain_best or request.measure is not None or not by_loss
        return complete_advice(
            self._subject, advice, methods, self.seed, measured=measured, rows=rows
        )

    def front(
        self,
        span: Span | str,
        *,
        objective: str | None = None,
        measure: str | None = None,
        time_limit: float | None = None,
    ) -> Front:
        """Return the best configuration for each of several values of a privacy parameter.

        Parameters
        ----------
        span
            The parameter to vary and its values: "k=2..50", "k=2,5,10", "risk=0.05..0.5",
            "suppression=0..0.1", or a parameter of a privacy model that the policy requires:
            "l=2..4", "t=0.1..0.4".
        objective, measure, time_limit
            The figure that the searches optimise, the measure of the results, and the limit in
            seconds of all searches together.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> front = study.front("k=5,50")
        >>> [(point.value, round(point.utility_kept)) for point in front.points]
        [(5.0, 97), (50.0, 94)]
        """
        return self.search(
            objective=objective,
            measure=measure,
            top=1,
            time_limit=time_limit,
            front=span,
            methods=(),
        ).require_front()

    @checks_types
    def estimate(
        self,
        configurations: Configuration | Sequence[Configuration],
        *,
        measure: str = "mi",
        know: Information | str | None = None,
        method: str | None = None,
    ) -> tuple[Estimate, ...]:
        """Estimate from masked values how much masking lowers the measure of each attribute.

        Parameters
        ----------
        configurations
            The configurations for which to estimate the change. They consist of candidate masks.
        measure
            A measure that scores each attribute separately.
        know
            What the estimate may use besides masked values: `raw`, `histogram` or `nothing`. By
            default, it uses everything that the summary contains.
        method
            A method of reconstruction. By default: the one that uses all evidence.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> masked = study.rank(generate_count=5).best.configuration
        >>> [estimate] = study.estimate(masked, know="nothing")
        >>> lower, upper = estimate.interval
        >>> lower <= estimate.pud <= upper
        True
        """
        estimates: tuple[Estimate, ...] = ask(
            "estimate", self, configurations, measure=measure, know=know, method=method
        )
        return estimates

    @checks_types
    def reconstruct(
        self,
        attribute: str,
        *,
        know: Information | str | None = None,
        method: str | None = None,
        masks: Sequence[str] | None = None,
        measure: str = "mi",
    ) -> Any:
        """Estimate the joint distribution of an attribute and the label from masked values.

        Returns a `JointEstimate`.

        Parameters
        ----------
        attribute
            Name of the attribute.
        know
            What the estimate may use besides masked values: `raw`, `histogram` or `nothing`. By
            default, it uses the histogram if the summary contains it.
        method
            A method of reconstruction. By default: the one that uses all evidence.
        masks
            The candidate masks that the estimate uses, such as `quantiles`; by default, all.
        measure
            A measure of single attributes. Aegis estimates its value and computes bounds.

        Raises
        ------
        PolicyError
            There is no label, or the attribute, the method, a mask or the measure is unknown or not
            suitable.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> estimate = study.reconstruct("education")
        >>> estimate.reconstruction.table.shape
        (16, 2)
        >>> round(estimate.reconstruction.total_variation, 2)
        0.02
        """
        return ask(
            "reconstruct",
            self,
            attribute,
            know=know,
            method=method,
            masks=masks,
            measure=measure,
        )
