"""Define `Study`, which answers every question about a table under a policy, and functions that
answer one question in one call.

The command line, notebooks and the service all use a `Study` and call its methods. The table is
read once, when the first question needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from aegis.advisor import Advice, Ranked
from aegis.files import SILENT, Progress, check_output, write_text
from aegis.options import checks_types, request_with
from aegis.policy import Configuration, Policy, as_policy
from aegis.requests import (
    AnonymizeOptions,
    AnonymizeRequest,
    ApplyRequest,
    SearchOptions,
    SearchRequest,
    StudyApplyOptions,
)
from aegis.study.advising import Advising
from aegis.study.subject import (
    Configurations,
    Subject,
    ask,
    check_report,
    draw_report,
)
from aegis.summary import Information, Summary, lock, withhold
from aegis.words import counted, html_table

if TYPE_CHECKING:
    from aegis.anonymizers import Recipe
    from aegis.release import AnonymizedRelease, Audit, Release
    from aegis.report import Reported
    from aegis.signing import PrivateKey


class Study(Advising):
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


class AdviseOptions(TypedDict, total=False):
    """The arguments of `Study.advise`, as keywords of a function."""

    configurations: Configurations | None
    generate_count: int | None
    measure: str | None
    top: int
    time_limit: float | None
    methods: Sequence[str | Recipe] | None
    explain_best: bool


class StudySearchOptions(SearchOptions, total=False):
    """The arguments of `Study.search`, as keywords of a function."""

    request: SearchRequest | None
    methods: Sequence[str | Recipe] | None


def advise(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Unpack[AdviseOptions],
) -> Advice:
    """Return the best configuration and its runners-up. This is `Study(table, policy).advise(...)`
    in one call: `exact`, `seed` and `progress` are arguments of `Study`, and `options` of `advise`.

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
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Unpack[StudySearchOptions],
) -> Advice:
    """Search all combinations of candidate masks for the best one that meets the rule. This is
    `Study(table, policy).search(...)` in one call: `exact`, `seed` and `progress` are arguments of
    `Study`, and `options` of `search`.

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
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Any,
) -> Any:
    """Train models on masked tables, and return the `Evaluation`. This is `Study(table,
    policy).evaluate(...)` in one call: `exact`, `seed` and `progress` are arguments of `Study`, and
    `options` of `evaluate`.

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
