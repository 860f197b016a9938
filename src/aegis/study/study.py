"""Define `Study`, which answers every question about a table under a policy.

The command line, notebooks and the service all use a `Study` and call its methods. The table is
read once, when the first question needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from aegis.advisor import Advice, PrivacyPlan, Ranked, rank_configurations
from aegis.advisor.figures import mask_costs
from aegis.files import SILENT, Progress, check_output, write_text
from aegis.measures import MEASURES
from aegis.options import checks_types, request_with
from aegis.policy import Configuration, Policy, as_policy
from aegis.requests import (
    SEARCH_WORK,
    AnonymizeOptions,
    AnonymizeRequest,
    ApplyRequest,
    RankOptions,
    RankRequest,
    SearchOptions,
    SearchRequest,
    Span,
    StudyApplyOptions,
)
from aegis.sources import Source
from aegis.study.subject import (
    Configurations,
    Subject,
    added_summary,
    ask,
    check_estimate,
    check_methods,
    check_report,
    complete_advice,
    draw_report,
)
from aegis.summary import Information, Summary, lock, withhold
from aegis.words import counted, html_table

if TYPE_CHECKING:
    from aegis.advisor.figures import Front, MaskCost
    from aegis.advisor.ranked import Estimate
    from aegis.anonymizers import Recipe
    from aegis.release import AnonymizedRelease, Audit, Release
    from aegis.report import Reported
    from aegis.signing import PrivateKey


class Study:
    """A table, or its summary, under one policy. Aegis summarises the table only once, at the first
    question.

    Parameters
    ----------
    table
        A path or glob, a URL of a database, or a table of pandas, Polars, PyArrow, DuckDB or Ibis.
        You can also give a summary, or its path (`.aegis`). A summary contains no rows, so `apply`,
        `anonymize`, `audit` and `evaluate` do not work with it.
    policy
        The roles, the candidate masks and the privacy rule: a `Policy`, or the path of its YAML
        file. A summary contains its policy, so you need not give one.
    exact
        Whether to count pairs of values on all rows. By default, Aegis counts them on a sample if
        the table is large.
    seed
        Seed of samples, folds and estimates: the same seed gives the same answers. It does not
        affect draws that protect a release, such as noise. For such draws, give `seed` to `apply`
        or `anonymize`.
    progress
        Shows the progress of long work, step by step.
    rule_override
        Whether to accept a rule that differs from the rule that the summary's owner put into it. A
        locked summary still refuses a weaker rule.
    like
        The summary of another part of the same data. Aegis reuses its fitted masks and pooled
        groups, so that `aegis.merge` can add up both summaries.

    Raises
    ------
    PolicyError
        The policy is not valid, or the summary was made for another policy or under another rule.
    DataError
        The table cannot be opened. (Aegis reads its rows later, at the first question.)

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> advice = study.rank(generate_count=20, seed=1)
    >>> advice.best.admissible
    True
    """

    @checks_types
    def __init__(
        self,
        table: Any,
        policy: Policy | str | Path | Mapping[str, Any] | None = None,
        *,
        exact: bool = False,
        seed: int = 0,
        progress: Progress = SILENT,
        rule_override: bool = False,
        like: Summary | None = None,
    ) -> None:
        self._subject = Subject.of(
            table,
            None if policy is None else as_policy(policy),
            exact=exact,
            seed=seed,
            progress=progress,
            rule_override=rule_override,
            like=like,
        )

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

    @checks_types
    def under(
        self, policy: Policy | str | Path | Mapping[str, Any], *, rule_override: bool = False
    ) -> Study:
        """Return a study of the same table under another policy.

        If the new policy changes only the rule, the measure or weights, or leaves out candidates,
        Aegis reuses the summary. Otherwise, it summarises the table again at the first question.
        `rule_override` says whether to accept a rule that differs from the rule of the summary's
        owner.

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
        from aegis.advisor.search import check_request, search_combinations

        request = request_with(SearchRequest, request, options)
        objective = request.objective
        measure = objective if objective is not None and objective in MEASURES else None
        by = self.policy.measured_by(request.measure or measure)
        if by is not self.policy:
            plain = replace(request, measure=None, objective=None if measure else objective)
            return self.under(by).search(plain, methods=methods)
        plugin = added_summary(self._subject, request, methods)
        if plugin is not None:
            return plugin.search(request, progress=self.progress)
        check_request(self.policy, request)
        check_methods(self.policy, methods, self.seed)
        if request.front is not None and self.source is None:
            request = replace(request, front=self._subject.allowed_front(request.front))
        of, progress = (self.summary, self.plan, self.policy), self.progress
        with self._subject.holding(), self._subject.released().open() as rows:
            advice = search_combinations(*of, request, progress=progress, released=rows)
            measured = request.explain_best or request.measure is not None or measure == objective
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
        request = SearchRequest(
            objective=objective, measure=measure, top=1, time_limit=time_limit, front=span
        )
        return self.search(request, methods=()).require_front()

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
        how = {"know": know, "method": method, "masks": masks, "measure": measure}
        return ask("reconstruct", self, attribute, **how)

    def evaluate(
        self, configurations: Configurations | Advice | None = None, **options: Any
    ) -> Any:
        """Train models on every masked table, and return the `Evaluation`. If there are several
        labels, return one for each label, by column.

        Parameters
        ----------
        configurations
            The configurations whose masked tables are used; by default, those that the policy
            lists, or else random ones. If you give an advice, Aegis uses its first three entries
            that meet the rule, and the evaluation contains the advice.
        options
            The fields of `aegis.papers.requests.EvaluationRequest`, such as `models` and `metric`.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> len(evaluation.trainings)
        3
        """
        return ask("evaluate", self, configurations, **options)

    @checks_types
    def proxy(self, advice: Advice, models: Sequence[str] = ("lr",)) -> Advice:
        """Train small models on the best entries of an advice, and return the advice
        with their results.

        Aegis trains each model on 2,000 rows. `models` are names such as `lr` (logistic regression)
        or `nb` (naive Bayes).

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=2)
        >>> study.proxy(advice, models=("nb",)).proxy is None
        False
        """
        proxied: Advice = ask("proxy", self, advice, models)
        return proxied

    @checks_types
    def report(
        self,
        advice: Advice | Reported | None = None,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        values: bool = True,
        force: bool = False,
    ) -> str:
        """Return the report on an advice as one HTML document. If you give `path`, also write it to
        this file.

        Parameters
        ----------
        advice
            The result of `advise`, `rank`, `search` or `evaluate`. By default, the method calls
            `advise()`.
        path
            File to write: .html, or .pdf if a Chromium browser is installed.
        title
            The report's heading.
        values
            Whether to show values of the table: columns before and after masking, rows of the
            release, and suppressed groups.
        force
            Whether to overwrite an existing file.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> page = study.report(study.rank(generate_count=5), title="Wages")
        >>> "<title>Wages" in page
        True
        """
        check_report(path, force=force)
        reported = self.advise(explain_best=True) if advice is None else advice
        return draw_report(self._subject, reported, path, title=title, values=values)

    def apply(
        self,
        configuration: Configuration | Ranked | Advice,
        output: str | Path | None = None,
        request: ApplyRequest | None = None,
        **options: Unpack[StudyApplyOptions],
    ) -> Release:
        """Mask the table, suppress rows that fail the rule, and verify the written file.

        Parameters
        ----------
        configuration
            A configuration, an entry of a ranking, or an advice, whose best entry is applied.
        output
            Path of the masked table. If you give none, the rows of the release stay in memory.
        request, options
            How to make the release: an `ApplyRequest`, or keywords with the names of its fields.
            The measure and the rule come from the advice unless you give others.

        Raises
        ------
        NoAdmissibleConfiguration
            The release does not meet the rule. Aegis writes nothing.
        DataError
            The study has only a summary. Or a mask does not cover a value, and the policy has
            `unseen: error`.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> release = study.apply(study.rank(generate_count=5))
        >>> release.released_rows + release.suppressed_rows
        32561
        >>> release.audit.passed
        True
        """
        from aegis.release import apply

        request, rows = request_with(ApplyRequest, request, options), self.rows_to("mask")
        override = request.rule_override or self._subject.rule_override
        request = replace(request, output=output or request.output, rule_override=override)
        return apply(rows, self.policy, configuration, request, progress=self.progress)

    @checks_types
    def anonymize(
        self,
        method: str | Recipe,
        request: AnonymizeRequest | None = None,
        *,
        report: str | Path | None = None,
        **options: Unpack[AnonymizeOptions],
    ) -> AnonymizedRelease:
        """Make a record-level release, and verify it.

        Parameters
        ----------
        method
            Name of an anonymizer, or a `Recipe`.
        request, options
            How to make the release: an `AnonymizeRequest`, or keywords with the names of its
            fields. By default, methods that draw at random use the seed of the study.
        report
            Path of an HTML file for a report on the release.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> release = study.anonymize("mondrian")
        >>> release.audit.report.k >= 5
        True
        """
        from aegis.anonymizers import Recipe
        from aegis.release import anonymize

        request = request_with(AnonymizeRequest, request, options)
        if report is not None:
            check_output(Path(report), force=request.force, formats=(".html", ".htm"))
        if isinstance(method, str) and request.seed is None:
            method = Recipe(method, request.options or {}, style=request.style).repeating(self.seed)
            request = replace(request, options=None, style=None)
        rows = self.rows_to("group")
        release = anonymize(rows, self.policy, method, request, progress=self.progress)
        if report is not None:
            from aegis.report import render_anonymized

            page = render_anonymized(release, before=self.audit().report)
            write_text(Path(report), page)
        return release

    def audit(self, *, population: Any = None) -> Audit:
        """Measure the privacy of the unmasked table and compare it with the policy's rule.
        `population` is the table of the population, if the rule needs one.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.audit().passed
        False
        >>> study.audit().report.k
        1
        """
        from aegis.release import audit

        rows = self.rows_to("audit")
        return audit(rows, policy=self.policy, population=population, progress=self.progress)

    def protect(self, output: str | Path | None = None, **options: Any) -> Any:
        """Return a `ProtectedSummary`, a summary that may leave your organisation.

        The function `aegis.safe.protect.protect` describes the options.

        Parameters
        ----------
        output
            File to write, with the extension `.protected`. If you give it, you can also give the
            options `force`, `ledger`, `population` and `new_version`;
            `aegis.safe.protect.release_protected` describes them.
        options
            `level` ("noise" or "counts"), `verdicts`, and options for this level. For noise: `epsilon`,
            `delta`, `unit`, `rows_per_person`, `person` and `public`; for counts: `key`, `method`,
            `threshold`, `step` and `variance`.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> told = study.protect(level="noise", epsilon=1, delta=1e-6, public=["*"])
        >>> told.protection.epsilon
        1
        """
        return ask("protect", self, output, progress=self.progress, **options)

    @checks_types
    def save(
        self,
        path: str | Path,
        *,
        information: Information | str = Information.RAW,
        locked: bool = False,
        key: PrivateKey | None = None,
        force: bool = False,
    ) -> Summary:
        """Write the summary to a file and return it. `Study(path)` continues from the file.

        Parameters
        ----------
        path
            The file, with the extension `.aegis`.
        information
            Counts of unmasked values to include for each attribute: `raw` (by value and label),
            `histogram` (by value) or `nothing`.
        locked
            Whether the summary refuses rules that are weaker than the rule of the policy.
        key
            Private key that signs the file; `aegis.signing.load_private_key` reads one.
        force
            Whether to overwrite an existing file.

        Examples
        --------
        >>> import aegis
        >>> import pathlib, tempfile
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "adult.aegis")
        ...     summary = study.save(path, information="nothing")
        ...     aegis.Study(path).rank(generate_count=5).best.admissible
        True
        """
        from aegis.summary import save_bundle

        summary = withhold(self.summary, Information.of(information))
        summary = lock(summary) if locked else summary
        save_bundle(summary, path, force=force, key=key)
        return summary

    def __repr__(self) -> str:
        of = "a summary" if self.source is None else str(self.source.origin)
        summary = self._subject.summarised
        read = "not read yet" if summary is None else counted(summary.rows, "row")
        label = f"label {self.policy.label.column!r}" if self.policy.label else "no label"
        return f"Study({of}, {read}, {label}, {self.policy.privacy})"

    def _repr_html_(self) -> str:
        summary = self._subject.summarised
        line = f"<p>{escape(repr(self))}</p>"
        if summary is None:
            return line
        rows = (
            (
                a.name,
                str(a.role),
                f"{len(a.all_values):,}",
                ", ".join(str(c.declared) for c in a.candidates),
            )
            for a in summary.all_attributes
        )
        return line + html_table(("attribute", "role", "values", "candidate masks"), rows)
