"""One table, one policy, every question: the public door of Aegis.

The command line, a notebook and a service do the same thing: they hold a `Study` and call its
methods. The table is read when the first question needs it, once, whatever is asked after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from aegis.advisor import Advice, Ranked
from aegis.options import asked
from aegis.policy import Configuration, Policy, as_policy
from aegis.progress import SILENT, Progress
from aegis.requests import AnonymizeOptions, AnonymizeRequest, ApplyRequest, StudyApplyOptions
from aegis.study.advising import Advising
from aegis.study.answers import (
    Configurations,
    check_report,
    draw_report,
    release_table,
)
from aegis.study.questions import ask
from aegis.study.representation import describe_subject, subject_html
from aegis.study.subject import Subject
from aegis.summary import Information, Summary, lock, withhold

if TYPE_CHECKING:
    from aegis.anonymizers import Recipe
    from aegis.release import AnonymizedRelease, Audit, Release
    from aegis.report import Reported
    from aegis.signing import PrivateKey


class Study(Advising):
    """A table, or its summary, under one policy: summarised once, for every question.

    Parameters
    ----------
    table
        Anything that holds rows: a path or glob, a URL of a database, pandas, Polars, PyArrow,
        DuckDB, Ibis. Or a summary, or the path of one (`.aegis`), which answers every question that
        needs no rows, so not `apply`, `anonymize`, `audit` and `evaluate`.
    policy
        Roles, candidate masks, the privacy rule: a `Policy`, or the path of its YAML. A summary contains
        its policy, so you need not give one.
    exact
        Count co-occurrences on all rows, not on a sample of a large table.
    seed
        Seed of samples, folds and estimates: the same seed gives the same answers. A release whose
        draws protect does not use it: `apply` and `anonymize` take a `seed` for that.
    progress
        Receives the steps of long work.
    rule_override
        Accept another rule than that of the summary. A rule weaker than a locked one is still
        refused.
    like
        The summary of another part of the same data: masks that it has fitted and groups that it
        pools are taken from it, so that `aegis.merge` can add both up.

    Raises
    ------
    PolicyError
        The policy is not valid, or a summary was made for another one or under another rule.
    DataError
        The table cannot be opened. Its rows are read later, by the first question.

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
        policy: Policy | str | Path | None = None,
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

    def under(self, policy: Policy | str | Path, *, rule_override: bool = False) -> Study:
        """Return a study of the same table under another policy.

        The summary is used again if only the rule, the measure or weights differ, or
        candidates were left out; else the table is summarised again by its first question.
        `rule_override` has the same meaning as in `Study`.

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
        """Return the `Evaluation` of models that are trained on every masked table.

        Parameters
        ----------
        configurations
            Configurations to train on; by default as in `rank`. For an advice, these are its first
            three entries that meet the rule; the evaluation then shows that advice.
        options
            As of `aegis.papers.evaluation.evaluate_models`: `generate_count`, `models`, `metric`, `splits`,
            `test_share`, `unmasked`, `comparators`, `methods`, `store`, `jobs`.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> len(evaluation.trainings)
        3
        """
        return ask("evaluate", self, configurations, **options)

    def proxy(self, advice: Advice, models: Sequence[str] = ("lr",)) -> Advice:
        """Return an advice with the results of small models on 2,000 rows of its finalists.

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

    def report(
        self,
        advice: Advice | Reported | None = None,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        values: bool = True,
        force: bool = False,
    ) -> str:
        """Return the report on an advice as one HTML document, and write it if `path` is given.

        Parameters
        ----------
        advice
            The result of `advise`, `rank`, `search` or `evaluate`; by default `advise()` is called.
        path
            File to write: .html, or .pdf where a Chromium browser is installed.
        title
            The report's heading.
        values
            Whether to show values of the table: columns before and after, rows of the release,
            who is left out.
        force
            Overwrite the file.

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
        """Mask the table, leave out rows that fail the rule, and verify the written file.

        Parameters
        ----------
        configuration
            A configuration, an entry of a ranking, or an advice, of which the best is applied.
        output
            Path of the masked table; without one the rows come back in memory.
        request, options
            How to make the release, as in `aegis.apply`: an `ApplyRequest`, or its fields as
            keywords. By default measure and rule are those of the advice.

        Raises
        ------
        NoAdmissibleConfiguration
            The rule is not met; nothing is written.
        DataError
            The study is of a summary, or a value is in no mask and the policy says `unseen: error`.

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
        given = asked(ApplyRequest, request, options)
        if output is not None:
            given = replace(given, output=output)
        return release_table(self._subject, configuration, given)

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
            How to make the release, as in `aegis.anonymize`: an `AnonymizeRequest`, or its fields
            as keywords. Methods that draw use the seed of the study by default.
        report
            Write a report on the release there, one HTML file.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> release = study.anonymize("mondrian")
        >>> release.audit.report.k >= 5
        True
        """
        from aegis.anonymizers import Recipe
        from aegis.files import check_output, write_text
        from aegis.release import anonymize

        given = asked(AnonymizeRequest, request, options)
        if report is not None:
            check_output(Path(report), force=given.force, formats=(".html", ".htm"))
        if isinstance(method, str) and given.seed is None:
            method = Recipe(method, given.options or {}, style=given.style).repeating(self.seed)
            given = replace(given, options=None, style=None)
        rows, progress = self._subject.rows_to("group"), self._subject.progress
        release = anonymize(rows, self.policy, method, given, progress=progress)
        if report is not None:
            from aegis.report import render_anonymized

            page = render_anonymized(release, before=self.audit().report)
            write_text(Path(report), page)
        return release

    def audit(self, *, population: Any = None) -> Audit:
        """Return the privacy of the unmasked table, compared with the policy's rule.

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

        rows, progress = self._subject.rows_to("audit"), self._subject.progress
        return audit(rows, policy=self.policy, population=population, progress=progress)

    def protect(self, output: str | Path | None = None, **options: Any) -> Any:
        """Return the `ProtectedSummary` that may leave your organisation: see `aegis.safe.protect.protect` for the options.

        Parameters
        ----------
        output
            Write it there, with the extension `.protected`; then `force`, `ledger`,
            `population` and `new_version` are options too: see `aegis.safe.protect.release_protected`.
        options
            `level`, and with it `epsilon`, `delta`, `unit`, `rows_per_person`, `person`, `public`
            for noise, or `key`, `method`, `threshold`, `step`, `variance` for counts; `verdicts`.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> told = study.protect(level="noise", epsilon=1, delta=1e-6, public=["*"])
        >>> told.protection.epsilon
        1
        """
        return ask("protect", self, output, progress=self.progress, **options)

    def save(
        self,
        path: str | Path,
        *,
        information: Information | str = Information.RAW,
        locked: bool = False,
        key: PrivateKey | None = None,
        force: bool = False,
    ) -> Summary:
        """Write the summary and return it: `Study(path)` continues from it.

        Parameters
        ----------
        path
            The file, with the extension `.aegis`.
        information
            Counts of each attribute beyond its masked values: `raw`, the joint with the label;
            `histogram`; or `nothing`.
        locked
            Whether no rule weaker than the policy's is accepted with it.
        key
            Sign it with this private key, as `aegis.signing.load_private_key` reads it.
        force
            Overwrite an existing file.

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
        return describe_subject(self._subject)

    def _repr_html_(self) -> str:
        return subject_html(self._subject)
