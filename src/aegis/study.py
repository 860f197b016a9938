"""One table, one policy, every question: the public door of Aegis.

The command line, a notebook and a service do the same thing: they hold a `Study` and call its
methods. The table is read when the first question needs it, once, whatever is asked after that.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from aegis.advisor import (
    Advice,
    PrivacyPlan,
    Ranked,
    plan_of,
    rank_configurations,
    with_privacy,
    with_uncovered,
)
from aegis.advisor.plan import require_same
from aegis.errors import DataError, PolicyError
from aegis.policy import Configuration, Policy, as_policy
from aegis.progress import SILENT, Progress
from aegis.sources import Source, open_table
from aegis.summary import Summary, load_bundle, save_bundle, summarize
from aegis.words import counted

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

BUNDLE = ".aegis"
"""Extension of a summary on disk."""

SEARCH_SECONDS = 30.0
"""How long a search takes at most where nobody says."""

Configurations = Mapping[str, Configuration] | Sequence[Configuration]


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

    Raises
    ------
    PolicyError
        The policy is not valid, or a summary was made for another one.
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
    ) -> None:
        self.policy = as_policy(policy)
        self.exact = exact
        self.seed = seed
        self.progress = progress
        self._lock = RLock()
        self._summary: Summary | None = None
        self._plan: PrivacyPlan | None = None
        self._source: Source | None = None
        if _is_protected(table):
            raise PolicyError(
                "A protected summary answers no question that takes rows or exact counts.",
                hint="Give the table or its exact summary, or rank the protected one: "
                "aegis.protect.rank_protected.",
            )
        if isinstance(table, str | Path) and str(table).lower().endswith(BUNDLE):
            table = load_bundle(table)
        if isinstance(table, Summary):
            require_same(table, self.policy)
            self._summary = table
        else:
            self._source = open_table(table, reading=self.policy.reading)

    @property
    def source(self) -> Source | None:
        """The table; None where the study is of a summary."""
        return self._source

    @property
    def summary(self) -> Summary:
        """The aggregates of the table, made at the first call."""
        with self._lock:
            if self._summary is None:
                self._summary = summarize(
                    self._rows("summarise"),
                    self.policy,
                    exact=self.exact,
                    seed=self.seed,
                    progress=self.progress,
                )
            return self._summary

    @property
    def plan(self) -> PrivacyPlan:
        """What holds configurations against the rule."""
        with self._lock:
            if self._plan is None:
                self._plan = plan_of(self.summary, self.policy, self._source)
            return self._plan

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
        configurations
            Rank these, as `rank` does. Those that the policy lists are ranked without being given.
        generate_count
            Rank this many random combinations of the candidate masks, for experiments.
        measure
            Name of a measure.
        top
            How many of the best a search returns.
        time_limit
            Seconds of a search; None lets it run until the best is proven. A search that is stopped
            says how far from the best it may be.
        methods
            Record-level methods whose releases are ranked beside.

        Raises
        ------
        PolicyError
            A measure, a mask or a method is unknown, or the rule does not fit the table.
        DataError
            The table cannot be summarised.

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

    def under(self, policy: Policy | str | Path) -> Study:
        """Return a study of the same table under another policy.

        What is known of the table serves where only the rule, the measure or weights differ, or
        candidates were left out; else the table is summarised again by its first question.

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

        Raises
        ------
        PolicyError
            The policy is not valid; or the study is of a summary that does not serve it.
        """
        from aegis.summary.narrow import narrow

        asked = as_policy(policy)
        with self._lock:
            served = None if self._summary is None else narrow(self._summary, asked)
        subject = self._source if self._source is not None else (served or self.summary)
        other = Study(subject, asked, exact=self.exact, seed=self.seed, progress=self.progress)
        other._summary = served if served is not None else other._summary
        return other

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
        methods
            Record-level methods whose releases are ranked beside the configurations: names or
            recipes; by default those of the policy.
        seed
            Seed of the random configurations and methods, where it is not the study's.

        Raises
        ------
        PolicyError
            A measure, a mask or a method is unknown, or the rule does not fit the table.
        DataError
            The table cannot be summarised.
        """
        own = self.seed if seed is None else seed
        self._check_methods(methods, own)
        advice = rank_configurations(
            self.summary,
            self.plan,
            self.policy,
            configurations=configurations,
            generate_count=generate_count,
            measure=measure,
            seed=own,
            progress=self.progress,
        )
        return self._complete(advice, methods, own)

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
            `least-masking`, `most-private`, or `score`, the one ahead by a hair.

        Raises
        ------
        PolicyError
            The objective is unknown, `top` is below 1 or the time limit is negative.
        DataError
            The table cannot be summarised.
        """
        from aegis.advisor.search import check_request, search_combinations

        check_request(self.policy, objective, measure, top, time_limit, front, prefer)
        self._check_methods(methods, self.seed)
        advice = search_combinations(
            self.summary,
            self.plan,
            self.policy,
            source=self._source,
            objective=objective,
            measure=measure,
            top=top,
            time_limit=time_limit,
            front=front,
            explain_best=explain_best,
            prefer=prefer,
            progress=self.progress,
        )
        return self._complete(advice, methods, self.seed)

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
        return estimate_pud(
            self.summary,
            listed,
            measure=measure,
            know=know,
            method=method or DEFAULT_METHOD,
            progress=self.progress,
        )

    def evaluate(self, configurations: Configurations | None = None, **options: Any) -> Evaluation:
        """Train models on every masked table and compare them with the advice.

        Parameters
        ----------
        configurations
            What to train on; by default as in `rank`.
        options
            `generate_count`, `models`, `metric`, `splits`, `test_share`, `unmasked`,
            `comparators`, `methods`, `store`, `jobs`: see `aegis.evaluation.evaluate_models`.

        Raises
        ------
        PolicyError
            A model, metric, comparator, method or mask is unknown, a parameter is out of range,
            or scikit-learn is missing.
        DataError
            The study is of a summary, or no row is left to test on.
        """
        from aegis.evaluation import check_request, evaluate_models

        source = self._rows("train models on")
        check_request(**options)
        options.setdefault("seed", self.seed)
        evaluation = evaluate_models(
            source,
            self.summary,
            self.plan,
            self.policy,
            configurations=configurations,
            progress=self.progress,
            **options,
        )
        advice = with_privacy(evaluation.advice, self.summary, self.plan, self.policy)
        return replace(evaluation, advice=advice)

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
        from aegis.advisor.shown import show_release
        from aegis.files import check_output
        from aegis.report import render_report, write_page

        if path is not None:
            check_output(Path(path), force=force, formats=(".html", ".htm", ".pdf"))
        given = self.advise() if advice is None else advice
        with self.progress.step("Drawing the report"):
            advised = given if isinstance(given, Advice) else given.advice
            shown = None
            if values:
                shown = show_release(advised, self.summary, self.plan, self.policy, self._source)
            page = render_report(given, title=title, shown=shown)
        if path is not None:
            write_page(Path(path), page)
        return page

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
            `into`, `form`, `certificate`, `measure`, `force`, `seed`: see `aegis.apply`.

        Raises
        ------
        NoAdmissibleConfiguration
            The rule is not met; nothing is written.
        DataError
            The study is of a summary, or a value is in no mask and the policy says `unseen: error`.
        """
        from aegis.release import apply

        chosen, measure = _chosen(configuration)
        options.setdefault("seed", self.seed)
        if options.get("measure") is None and self.policy.measure is None and output is not None:
            options["measure"] = measure
        return apply(
            self._rows("mask"),
            self.policy,
            chosen,
            output=output,
            progress=self.progress,
            **options,
        )

    def anonymize(self, method: str | Recipe, **options: Any) -> AnonymizedRelease:
        """Make a record-level release, and verify it: see `aegis.anonymize` for the options."""
        from aegis.release import anonymize

        options.setdefault("seed", self.seed)
        return anonymize(
            self._rows("group"), self.policy, method, progress=self.progress, **options
        )

    def audit(self) -> Audit:
        """Return the privacy of the table as it stands, held against the policy's rule."""
        from aegis.release import audit

        return audit(self._rows("audit"), policy=self.policy, progress=self.progress)

    def protect(self, **options: Any) -> ProtectedSummary:
        """Return what may leave the house: see `aegis.protect.protect` for the options.

        Parameters
        ----------
        options
            `level`, and with it `epsilon`, `delta`, `unit`, `rows_per_person`, `person`, `public`
            for noise, or `key`, `method`, `threshold`, `step`, `variance` for counts; `verdicts`.

        Raises
        ------
        PolicyError
            An option is out of range, or what would be published lets small cells be derived.
        """
        from aegis.protect import protect

        subject = self.summary if self._source is None else self._source
        return protect(subject, self.policy, progress=self.progress, **options)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the summary (.aegis); `Study(path, policy)` goes on from it without the table.

        Raises
        ------
        PolicyError
            The file exists and `force` is not set.
        """
        save_bundle(self.summary, path, force=force)

    def _rows(self, purpose: str) -> Source:
        """Return the table; raise where there is only a summary."""
        if self._source is None:
            raise DataError(f"A summary holds no rows to {purpose}.", hint="Give the table itself.")
        return self._source

    def _check_methods(self, methods: Iterable[str | Recipe] | None, seed: int) -> None:
        """Raise for unknown record-level methods before any work is done."""
        if methods:
            from aegis.advisor.methods import choose_recipes

            choose_recipes(self.policy, tuple(methods), seed=seed)

    def _complete(
        self, advice: Advice, methods: Sequence[str | Recipe] | None, seed: int
    ) -> Advice:
        """Return the advice with record-level releases and with its figures of privacy."""
        if methods or (methods is None and self.policy.anonymizers):
            from aegis.advisor.methods import with_methods

            advice = with_methods(
                advice,
                self.summary,
                self._source,
                self.policy,
                methods,
                seed=seed,
                progress=self.progress,
            )
        advice = with_uncovered(advice, self.summary, self.policy, self._source)
        return with_privacy(advice, self.summary, self.plan, self.policy)

    def __repr__(self) -> str:
        of = "a summary" if self._source is None else str(self._source.origin)
        read = "not read yet" if self._summary is None else counted(self._summary.rows, "row")
        return f"Study({of}, {read}, label {self.policy.label.column!r}, {self.policy.privacy})"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>" + (
            "" if self._summary is None else _attributes_html(self._summary)
        )


def _is_protected(given: Any) -> bool:
    if isinstance(given, str | Path):
        return str(given).lower().endswith(".protected")
    from aegis.protect.model import ProtectedSummary

    return isinstance(given, ProtectedSummary)


def _chosen(given: Configuration | Ranked | Advice) -> tuple[Configuration, str | None]:
    """Return a configuration to apply, and the measure that chose it where that is known.

    Raises
    ------
    NoAdmissibleConfiguration
        The advice has none.
    PolicyError
        The best is a record-level release, which has no masks.
    """
    if isinstance(given, Configuration):
        return given, None
    measure = None
    if isinstance(given, Advice):
        measure, given = given.measure, given.require_best()
    if given.method is not None:
        raise PolicyError(
            f"{given.name} groups records; it has no masks to apply.",
            hint="Give its recipe to anonymize.",
        )
    return given.configuration, measure


def _attributes_html(summary: Summary) -> str:
    """Return the attributes of a summary as a table."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(text)}</td>"
            for text in (
                a.name,
                str(a.role),
                f"{len(a.all_values):,}",
                ", ".join(str(c.declared) for c in a.candidates),
            )
        )
        + "</tr>"
        for a in summary.all_attributes
    )
    head = "".join(f"<th>{h}</th>" for h in ("attribute", "role", "values", "candidate masks"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def advise(
    table: Any,
    policy: Policy | str | Path,
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Any,
) -> Advice:
    """Return the best release and its runners-up: `Study(table, policy).advise(...)`, in one call.

    Examples
    --------
    >>> import aegis
    >>> advice = aegis.advise("data/adult.parquet", "examples/adult/policy.yaml", generate_count=5)
    >>> len(advice.ranking)
    5
    """
    return Study(table, policy, exact=exact, seed=seed, progress=progress).advise(**options)


def search(
    table: Any,
    policy: Policy | str | Path,
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Any,
) -> Advice:
    """Return the best of all combinations: `Study(table, policy).search(...)`, in one call.

    Examples
    --------
    >>> import aegis
    >>> advice = aegis.search("data/adult.parquet", "examples/adult/policy.yaml", top=1)
    >>> advice.optimal, advice.best.admissible
    (True, True)
    """
    return Study(table, policy, exact=exact, seed=seed, progress=progress).search(**options)


def evaluate(
    table: Any,
    policy: Policy | str | Path,
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Any,
) -> Evaluation:
    """Train models on masked tables: `Study(table, policy).evaluate(...)`, in one call.

    Examples
    --------
    >>> import aegis
    >>> evaluation = aegis.evaluate(
    ...     "data/adult.parquet",
    ...     "examples/adult/policy.yaml",
    ...     generate_count=2,
    ...     models=("nb",),
    ...     comparators=(),
    ... )
    >>> len(evaluation.trainings)
    3
    """
    return Study(table, policy, exact=exact, seed=seed, progress=progress).evaluate(**options)
