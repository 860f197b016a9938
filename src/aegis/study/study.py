"""One table, one policy, every question: the public door of Aegis.

The command line, a notebook and a service do the same thing: they hold a `Study` and call its
methods. The table is read when the first question needs it, once, whatever is asked after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.advisor import Advice, PrivacyPlan, Ranked, rank_configurations
from aegis.errors import DataError
from aegis.policy import Configuration, Policy, as_policy
from aegis.progress import SILENT, Progress
from aegis.sources import Source
from aegis.study.answers import (
    Configurations,
    check_estimate,
    check_methods,
    check_report,
    complete_advice,
    draw_report,
    release_table,
    train_models,
    with_proxy,
)
from aegis.study.shown import describe_subject, subject_html
from aegis.study.subject import Subject
from aegis.summary import Summary, lock, save_bundle

if TYPE_CHECKING:
    from aegis.advisor.costs import MaskCost
    from aegis.advisor.estimate import Estimate
    from aegis.advisor.figures import Front
    from aegis.advisor.search import FrontRange
    from aegis.anonymizers import Recipe
    from aegis.evaluation import Evaluation
    from aegis.protect import ProtectedSummary
    from aegis.release import AnonymizedRelease, Audit, Release
    from aegis.summary import Information

SEARCH_SECONDS = 30.0
"""How long a search takes at most where nobody says."""


class Study:
    """A table, or its summary, under one policy: summarised once, for every question.

    Parameters
    ----------
    table
        Anything that holds rows: a path or glob, a URL of a database, pandas, Polars, PyArrow,
        DuckDB, Ibis. Or a summary, or the path of one (`.aegis`), which answers all but what takes
        rows: `apply`, `anonymize`, `audit`, `evaluate`.
    policy
        Roles, candidate masks, the privacy rule: a `Policy`, or the path of its YAML.
    exact
        Count co-occurrences on all rows, not on a sample of a large table.
    seed
        Seed of whatever is random: the same seed gives the same answers.
    progress
        Receives the steps of long work.
    rule_override
        Whether another rule than the one that a summary was made under is meant. What is weaker
        than a locked one is refused all the same.

    Raises
    ------
    PolicyError
        The policy is not valid, or a summary was made for another one or under another rule.
    DataError
        The table cannot be opened. What is in it is read later, by the first question.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> advice = study.rank(generate_count=20, seed=1)
    >>> advice.best.admissible
    True
    """

    def __init__(
        self,
        table: Any,
        policy: Policy | str | Path,
        *,
        exact: bool = False,
        seed: int = 0,
        progress: Progress = SILENT,
        rule_override: bool = False,
    ) -> None:
        self._subject = Subject.of(
            table,
            as_policy(policy),
            exact=exact,
            seed=seed,
            progress=progress,
            rule_override=rule_override,
        )

    @property
    def policy(self) -> Policy:
        """Roles, candidate masks, the privacy rule."""
        return self._subject.policy

    @property
    def seed(self) -> int:
        """Seed of whatever is random."""
        return self._subject.seed

    @property
    def source(self) -> Source | None:
        """The table; None where the study is of a summary."""
        return self._subject.source

    @property
    def summary(self) -> Summary:
        """The aggregates of the table, made at the first call."""
        return self._subject.summary

    @property
    def plan(self) -> PrivacyPlan:
        """What holds configurations against the rule."""
        return self._subject.plan

    def advise(
        self,
        configurations: Configurations | None = None,
        *,
        generate_count: int | None = None,
        measure: str | None = None,
        top: int = 10,
        time_limit: float | None = SEARCH_SECONDS,
        methods: Sequence[str | Recipe] | None = None,
    ) -> Advice:
        """Return the best release and its runners-up: a search, unless configurations are named.

        Parameters
        ----------
        configurations, generate_count, measure, methods
            As in `rank`. Configurations that the policy lists are ranked without being given.
        top, time_limit
            As in `search`; a search that is stopped says how far from the best it may be.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.advise(generate_count=5).best.admissible
        True
        """
        listed = configurations is not None or generate_count is not None
        if listed or self.policy.configurations:
            return self.rank(
                configurations, generate_count=generate_count, measure=measure, methods=methods
            )
        return self.search(measure=measure, top=top, time_limit=time_limit, methods=methods)

    def under(self, policy: Policy | str | Path, *, rule_override: bool = False) -> Study:
        """Return a study of the same table under another policy.

        What is known of the table serves where only the rule, the measure or weights differ, or
        candidates were left out; else the table is summarised again by its first question.
        `rule_override` is as of `Study`.

        Examples
        --------
        >>> import aegis
        >>> from dataclasses import replace
        >>> from aegis.privacy import PrivacyRule
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> summary = study.summary
        >>> stricter = replace(study.policy, privacy=PrivacyRule.parse({"k": 20}))
        >>> study.under(stricter).summary is summary
        True
        """
        subject = self._subject.under(as_policy(policy), rule_override=rule_override)
        return Study(subject, subject.policy)

    def costs(self, measure: str | None = None) -> tuple[MaskCost, ...]:
        """Return what each candidate mask costs by itself, every other attribute unmasked.

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
        from aegis.advisor.costs import mask_costs

        return mask_costs(self.summary, measure or self.policy.measure)

    def rank(
        self,
        configurations: Configurations | None = None,
        *,
        generate_count: int | None = None,
        measure: str | None = None,
        estimate: str | None = None,
        methods: Sequence[str | Recipe] | None = None,
        seed: int | None = None,
    ) -> Advice:
        """Rank masking configurations, admissible ones first and the best first among them.

        Parameters
        ----------
        configurations
            What to rank; by default the policy's own, else 50 random ones.
        generate_count
            Rank this many random combinations of the candidate masks instead.
        measure
            Name of a measure; by default the policy's, else the default of rankings.
        estimate
            Rank by the estimated deviation from the raw table instead, the smallest first, as
            Algorithm 1 of the AEGIS paper does: `aegis+1d`, `aegis-1d`, `sampling`,
            `all-evidence`, or `raw` for the deviation itself. It is of the measure where that is
            one of single attributes, else of mutual information; no methods are ranked beside.
        methods
            Record-level methods whose releases are ranked beside the configurations: names or
            recipes; by default those of the policy.
        seed
            Seed of the random configurations and methods, where it is not the study's.

        Raises
        ------
        PolicyError
            A measure, a mask or a method is unknown, or the rule does not fit the table.
        """
        own = self.seed if seed is None else seed
        if estimate is not None and methods is None:
            methods = ()
        check_estimate(estimate, methods)
        check_methods(self.policy, methods, own)
        advice = rank_configurations(
            self.summary,
            self.plan,
            self.policy,
            configurations=configurations,
            generate_count=generate_count,
            measure=measure,
            estimate=estimate,
            seed=own,
            progress=self._subject.progress,
        )
        return complete_advice(self._subject, advice, methods, own)

    def search(
        self,
        *,
        objective: str | None = None,
        measure: str | None = None,
        top: int = 5,
        time_limit: float | None = None,
        front: FrontRange | str | None = None,
        methods: Sequence[str | Recipe] | None = None,
        explain_best: bool = True,
        prefer: str = "least-masking",
    ) -> Advice:
        """Return the best of all combinations of candidate masks, with proof.

        Parameters
        ----------
        objective
            What is maximised: a measure, or an information loss to minimise; by default the
            measure.
        measure
            Scores what the search returns.
        top
            How many of the best to return, at least 1.
        time_limit
            Seconds for the search; then the best so far is returned with its gap, as after Ctrl-C.
            Summarising comes before.
        front
            Also the best for each of several rules, such as "k=2..50".
        methods
            Record-level methods whose releases are ranked beside, as in `rank`.
        explain_best
            Whether to find out what keeps the best from being finer.
        prefer
            Which comes first of configurations that their scores cannot tell apart:
            `least-masking`, `most-private`, or `score`, the highest score.

        Raises
        ------
        PolicyError
            The objective is unknown, `top` is below 1 or the time limit is negative.
        DataError
            The table cannot be summarised.
        """
        from aegis.advisor.search import check_request, rules_of, search_combinations

        check_request(self.policy, objective, measure, top, time_limit, front, prefer)
        check_methods(self.policy, methods, self.seed)
        if front is not None:
            self._subject.check_rules(rules_of(front, self.policy.privacy))
        advice = search_combinations(
            self.summary,
            self.plan,
            self.policy,
            source=self.source,
            objective=objective,
            measure=measure,
            top=top,
            time_limit=time_limit,
            front=front,
            explain_best=explain_best,
            prefer=prefer,
            progress=self._subject.progress,
        )
        return complete_advice(self._subject, advice, methods, self.seed)

    def front(
        self,
        span: FrontRange | str,
        *,
        objective: str | None = None,
        measure: str | None = None,
        time_limit: float | None = None,
    ) -> Front:
        """Return the best configuration for each of several strengths of the rule.

        Parameters
        ----------
        span
            What varies and over which values: "k=2..50", "k=2,5,10", "risk=0.05..0.5",
            "suppression=0..0.1".
        objective, measure, time_limit
            As in `search`.
        """
        advice = self.search(
            objective=objective,
            measure=measure,
            top=1,
            time_limit=time_limit,
            front=span,
            methods=(),
            explain_best=False,
        )
        if advice.front is None:
            raise DataError("The search was stopped before it came to the front.")
        return advice.front

    def estimate(
        self,
        configurations: Configuration | Sequence[Configuration],
        *,
        measure: str = "mi",
        know: Information | str | None = None,
        method: str | None = None,
    ) -> tuple[Estimate, ...]:
        """Estimate what configurations take from each attribute, without its raw joint.

        Parameters
        ----------
        configurations
            One or more configurations of candidate masks.
        measure
            A measure of single attributes.
        know
            What is known beside what masks show: `raw`, `histogram` or `nothing`; by default what
            the summary carries.
        method
            A method of reconstruction; by default all evidence.
        """
        from aegis.advisor.estimate import DEFAULT_METHOD, estimate_pud

        listed = [configurations] if isinstance(configurations, Configuration) else configurations
        how, progress = method or DEFAULT_METHOD, self._subject.progress
        return estimate_pud(
            self.summary, listed, measure=measure, know=know, method=how, progress=progress
        )

    def evaluate(self, configurations: Configurations | None = None, **options: Any) -> Evaluation:
        """Train models on every masked table and compare them with the advice.

        Parameters
        ----------
        configurations
            What to train on; by default as in `rank`.
        options
            As of `aegis.evaluation.evaluate_models`: `generate_count`, `models`, `metric`, `splits`,
            `test_share`, `unmasked`, `comparators`, `methods`, `store`, `jobs`.
        """
        return train_models(self._subject, configurations, options)

    def proxy(self, advice: Advice, models: Sequence[str] = ("lr",)) -> Advice:
        """Return an advice with what small models reach on 2,000 rows of its finalists."""
        return with_proxy(self._subject, advice, models)

    def report(
        self,
        advice: Advice | Evaluation | None = None,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        values: bool = True,
        force: bool = False,
    ) -> str:
        """Return the report on an advice as one HTML document, and write it where `path` says.

        Parameters
        ----------
        advice
            What `advise`, `rank`, `search` or `evaluate` returned; by default `advise()` is called.
        path
            File to write: .html, or .pdf where a Chromium browser is installed.
        title
            The report's heading.
        values
            Whether to show values of the table: columns before and after, rows of the release,
            who is left out.
        force
            Overwrite the file.
        """
        check_report(path, force=force)
        reported = self.advise() if advice is None else advice
        return draw_report(self._subject, reported, path, title=title, values=values)

    def apply(
        self,
        configuration: Configuration | Ranked | Advice,
        output: str | Path | None = None,
        **options: Any,
    ) -> Release:
        """Mask the table, leave out what fails the rule, and verify what was written.

        Parameters
        ----------
        configuration
            A configuration, an entry of a ranking, or an advice, of which the best is applied.
        output
            Path of the masked table; without one the rows come back in memory.
        options
            `into`, `form`, `certificate`, `measure`, `force`, `seed`, `made_under`,
            `rule_override`: see `aegis.apply`.

        Raises
        ------
        NoAdmissibleConfiguration
            The rule is not met; nothing is written.
        DataError
            The study is of a summary, or a value is in no mask and the policy says `unseen: error`.
        """
        return release_table(self._subject, configuration, output, options)

    def anonymize(self, method: str | Recipe, **options: Any) -> AnonymizedRelease:
        """Make a record-level release, and verify it: see `aegis.anonymize` for the options."""
        from aegis.release import anonymize

        options.setdefault("seed", self.seed)
        return anonymize(
            self._subject.rows_to("group"),
            self.policy,
            method,
            progress=self._subject.progress,
            **options,
        )

    def audit(self, *, population: Any = None) -> Audit:
        """Return the privacy of the table as it stands, held against the policy's rule."""
        from aegis.release import audit

        rows, progress = self._subject.rows_to("audit"), self._subject.progress
        return audit(rows, policy=self.policy, population=population, progress=progress)

    def protect(self, **options: Any) -> ProtectedSummary:
        """Return what may leave the house: see `aegis.protect.protect` for the options.

        Parameters
        ----------
        options
            `level`, and with it `epsilon`, `delta`, `unit`, `rows_per_person`, `person`, `public`
            for noise, or `key`, `method`, `threshold`, `step`, `variance` for counts; `verdicts`.
        """
        from aegis.protect import protect

        subject = self.summary if self.source is None else self.source
        return protect(subject, self.policy, progress=self._subject.progress, **options)

    def save(self, path: str | Path, *, locked: bool = False, force: bool = False) -> None:
        """Write the summary (.aegis); `Study(path, policy)` goes on from it without the table.

        Where it is `locked`, no rule weaker than the policy's is accepted with it.

        An existing file is overwritten only with `force`.
        """
        save_bundle(lock(self.summary) if locked else self.summary, path, force=force)

    def __repr__(self) -> str:
        return describe_subject(self._subject)

    def _repr_html_(self) -> str:
        return subject_html(self._subject)
