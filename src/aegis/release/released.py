"""Define the common part of all releases: figures, utility and certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import numpy as np
import pyarrow as pa

from aegis._version import __version__
from aegis.advisor import Scorer, as_it_is, as_released, measure_for, tells_classes_apart
from aegis.advisor.released import KeptRows, lost_classes
from aegis.advisor.utility import UtilityFigure
from aegis.errors import InternalError
from aegis.masks import SUPPRESSED
from aegis.measures import MEASURES
from aegis.measures.several import combined
from aegis.policy import Policy, policy_digest, policy_mapping, shown_policy
from aegis.release.auditing import Audit
from aegis.signing import PrivateKey, keyed_digest
from aegis.sources import Reading, Source, open_table
from aegis.summary import Summary, count_classes, summarize
from aegis.summary.build import summarize_held
from aegis.summary.coded_rows import stored_rows
from aegis.words import json_fields, jsonable

if TYPE_CHECKING:
    import pandas
    import polars

CERTIFICATE_VERSION = 2
"""Version of the JSON form of the certificate."""


def utility_of(
    source: Source,
    output: Source,
    policy: Policy,
    *,
    measure: str | None = None,
    measured: Source | None = None,
    labels: int = 1,
    earlier: bool = False,
) -> UtilityFigure | None:
    """Return the utility of the released table relative to the input table.

    The measure is `measure`, else the policy's measure, else the default for the input. With
    several labels, the result combines the shares of utility that are kept for each label, and also
    lists these shares; it is never None. With one label or none, the result is None if the output
    shows only one label class, or if the measure cannot score the output.

    Folds do not depend on the seed of the release: otherwise a reader could find the seed by trying
    seeds until this figure agrees. If the policy names weights or persons, the output does not
    contain them. `measured` is then the output with weights and persons, as in
    `ReleasePlan.measured`. `labels` is the number of labels whose scores the certificate states.
    With `earlier`, scores of the unmasked table are rounded as in certificates of earlier versions.
    """
    if policy.tasks:
        policy = policy.measured_by(measure)
        return _utility_of_labels(source, output, policy, measured, earlier=earlier)
    if not tells_classes_apart(output, policy):
        return None
    before = Scorer(_summary(source, as_it_is(policy, original=True)))
    chosen, _ = measure_for(before.summary, measure, policy.measure)
    released_rows = measured if policy.weight or policy.person else output
    if released_rows is None:
        raise InternalError("The policy names weights or persons, but the rows have none.")
    summary = _summary(released_rows, as_released(policy))
    after = Scorer(summary, lambda: before.column_roles)
    lost = lost_classes(before.summary.label, after.summary.label)
    kept_rows = KeptRows(after, after.unmasked, lost)
    reference = before.value(before.unmasked, chosen)
    return kept_rows.figure(chosen, reference, before, labels, earlier=earlier)


def _summary(source: Source, policy: Policy) -> Summary:
    """Summarise a released table, with columns that it leaves out added as suppressed."""
    complete = with_hidden(source, policy)
    names = [*(a.name for a in policy.features), *policy.label.columns]
    if policy.weight is None and policy.person is None:
        coded_rows = stored_rows(source, [n for n in names if n in source.columns])
        if coded_rows is not None:
            hidden = [n for n in names if n not in source.columns]
            rows = coded_rows.with_constants(hidden, SUPPRESSED)
            return summarize_held(rows, policy, replace(source, table=complete.table))
    return summarize(complete, policy)


def _utility_of_labels(
    source: Source, output: Source, policy: Policy, measured: Source | None, *, earlier: bool
) -> UtilityFigure:
    """Combine the shares of utility kept for several labels; arguments as in `utility_of`."""
    several = policy.label.several
    assert several is not None
    output = with_hidden(output, policy)
    measured = None if measured is None else with_hidden(measured, policy)
    figures: dict[str, UtilityFigure] = {}
    labels = len(policy.tasks)
    for task in policy.tasks:
        policy_of_label = policy.of_task(task)
        measure = task.named_measure(policy.measure)
        figure = utility_of(
            source,
            output,
            policy_of_label,
            measure=measure,
            measured=measured,
            labels=labels,
            earlier=earlier,
        )
        figure = figure or _nothing(source, policy_of_label, measure, labels, earlier=earlier)
        figures[task.label.column] = figure
    shares = [f.utility_kept and f.utility_kept / 100 for f in figures.values()]
    value = combined(several.serve, shares, [task.weight for task in policy.tasks])
    reference = float(any(share is not None for share in shares))
    return UtilityFigure.of(MEASURES.get(several.measure), value, reference, None, labels=figures)


def _nothing(
    source: Source, policy: Policy, measure: str | None, labels: int, *, earlier: bool
) -> UtilityFigure:
    """Return the utility of a release that shows only one class of the label."""
    before = Scorer(summarize(source, as_it_is(policy, original=True)))
    chosen, _ = measure_for(before.summary, measure)
    reference = before.value(before.unmasked, chosen)
    kept_rows = KeptRows(None, None, {}, constant=True)
    figure = kept_rows.figure(chosen, reference, before, labels, earlier=earlier)
    assert figure is not None
    return figure


SEEDED = (
    "a reader who knows it can repeat the draws and take them off, so they protect nothing "
    "from that reader; leave the seed out of a release"
)
"""Note that a seed makes draws repeatable; it advises you to draw a release without a seed."""


def seed_note(names: Iterable[str]) -> str:
    """Return a warning that anyone who knows the seed can remove the noise of these columns."""
    return f"The noise of {', '.join(names)} has a seed: {SEEDED}."


def with_hidden(output: Source, policy: Policy) -> Source:
    """Add the columns that a release omits, with every value suppressed."""
    hidden = [a.name for a in policy.features if a.name not in output.columns]
    if not hidden:
        return output
    filled = {name: ibis.literal(SUPPRESSED) for name in hidden}
    return Source(output.table.mutate(filled), output.origin)


@dataclass(frozen=True, eq=False, kw_only=True)
class Released:
    """A release whose written table has been verified.

    Attributes
    ----------
    rows, released_rows
        Number of rows of the input table, and number of rows of the released table. All other rows
        were suppressed.
    audit
        Privacy figures of the released table. If the rule counts persons, but the released table
        does not identify them, Aegis computed the figures before it removed the identifiers of
        persons.
    persons, suppressed_persons
        Number of persons in the input table, and number of persons of whom a row was suppressed;
        None if the rule counts rows.
    path
        Path of the written file; for a release on Spark, the path of its folder as a text. None if
        the release stayed in memory.
    data
        The released rows if they stayed in memory, else None.
    stored
        The released table or view, if it was created in a database, else None.
    unseen
        For each attribute, the number of rows with a value that the attribute's mask did not know.
        The release shows `*` in these rows.
    utility
        Utility of the released table; None unless you asked for a certificate. `Advice.utility`
        states the same figure without one.
    dropped
        Columns of the input table that the released table does not have.
    certificate
        The certificate as JSON, if the caller requested it.
    timings
        Seconds that each step took.
    formulas
        Columns of a CSV file whose name or values a spreadsheet would interpret as formulas.
    reading
        How to read a CSV file so that its columns have the types of the released table; None if the
        file states the types itself.
    """

    rows: int
    released_rows: int
    audit: Audit
    path: Path | str | None = None
    data: pa.Table | None = None
    stored: Source | None = None
    persons: int | None = None
    suppressed_persons: int | None = None
    unseen: Mapping[str, int] = field(default_factory=dict)
    utility: UtilityFigure | None = None
    dropped: tuple[str, ...] = ()
    certificate: Mapping[str, Any] | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    formulas: tuple[str, ...] = ()
    reading: Reading | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings to read before you pass the release on."""
        outside = () if self.audit.outside is None else self.audit.outside.sentences
        lost = () if self.utility is None else self.utility.caveats(self.suppressed_rows)
        caveats = (*self.audit.warnings, *self.audit.report.cautions, *outside, *lost)
        if not self.formulas:
            return caveats
        return (
            *caveats,
            f"Texts of {', '.join(map(repr, self.formulas))} begin with =, +, -, @ or a tabulator: a "
            "spreadsheet that opens the file takes them for formulas. --safe-csv puts an apostrophe "
            "before them.",
        )

    @property
    def suppressed_rows(self) -> int:
        """Number of rows that were suppressed because their class fails the rule."""
        return self.rows - self.released_rows

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the release as JSON values.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> release = study.apply(advice)
        >>> release.to_dict()["rows"]
        32561
        """
        return {
            **json_fields(self, "path", "rows", "released_rows"),
            **_figures_of(self),
            "timings": dict(self.timings),
        }

    def to_arrow(self) -> pa.Table:
        """Return the released rows as an Arrow table: from memory, from the file, or from the database.

        Columns of a CSV file have the types of the released table, so codes such as 01234 stay texts.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> release = study.apply(advice)
        >>> release.to_arrow().num_rows == release.released_rows
        True
        """
        if self.data is not None:
            return self.data
        if self.stored is not None:
            return self.stored.collect(self.stored.table)
        if self.path is None:
            raise InternalError("A release has neither rows nor a file.")
        written = open_table(self.path, reading=self.reading or Reading(header=True))
        return written.collect(written.table)

    def to_polars(self) -> polars.DataFrame:
        """Return the released rows as a Polars frame (Polars must be installed).

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> release = study.apply(advice)
        >>> release.to_polars().height == release.released_rows
        True
        """
        import polars

        return polars.DataFrame(self.to_arrow())

    def to_pandas(self) -> pandas.DataFrame:
        """Return the released rows as a pandas frame (pandas must be installed).

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> release = study.apply(advice)
        >>> len(release.to_pandas()) == release.released_rows
        True
        """
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.audit._repr_html_()}"

    def __repr__(self) -> str:
        where = f" in {self.path}" if self.path else ""
        return (
            f"{type(self).__name__}({self.released_rows:,} of {self.rows:,} rows{where}, "
            f"k = {self.audit.report.k}, {self.suppressed_rows:,} suppressed)"
        )


def certify(
    release: Released,
    source: Source,
    output: Source,
    policy: Policy,
    how: Mapping[str, Any],
    key: PrivateKey | None = None,
) -> dict[str, Any]:
    """Return the certificate of a released file, with the digest of the written file `output`.

    `how` describes how the verified release was made: its configuration or its record-level method.
    `key` signs the certificate; with it, the certificate also has a digest of the input that only
    the owner of the key can compute.

    Raises
    ------
    DataError
        A file of the input or of the output was changed after it was opened.
    """
    source.require_unchanged()
    digest, released_policy = output.digest(), shown_policy(policy)
    return {
        "certificate": CERTIFICATE_VERSION,
        "aegis": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {
            # The folders of a file are nobody else's business, and mean nothing elsewhere.
            "origin": source.origin if "://" in source.origin else Path(source.origin).name,
            "rows": source.rows,
            **({} if key is None else {"hmac_sha256": keyed_digest(source.digest(), digest, key)}),
            **({} if key is None else _digest_of(source)),
            **({} if source.dialect is None else {"dialect": jsonable(source.dialect)}),
        },
        "output": {
            "file": None if release.path is None else Path(release.path).name,
            "rows": release.released_rows,
            "sha256": digest,
            **_digest_of(output),
            **({} if output.dialect is None else {"text": texts_of(output)}),
        },
        "policy": {"sha256": policy_digest(released_policy), **policy_mapping(released_policy)},
        **how,
        **_figures_of(release),
        "utility": None if release.utility is None else certified_utility(release.utility),
    }


def certified_utility(utility: UtilityFigure) -> dict[str, Any]:
    """Return a utility as certificates state it: lost label classes are only counted."""
    figures = jsonable(utility)
    for each in (figures, *figures.get("labels", {}).values()):
        each["lost_classes"] = len(each["lost_classes"]) or {}
    return dict(figures)


def _figures_of(release: Released) -> dict[str, Any]:
    """Return the figures that both the JSON form and the certificate state."""
    return {
        **json_fields(release, "suppressed_rows", "persons", "suppressed_persons"),
        "unseen_rows": jsonable(release.unseen),
        "dropped_columns": list(release.dropped),
        "utility": jsonable(release.utility),
        "privacy": jsonable(release.audit),
    }


def texts_of(source: Source) -> list[str]:
    """Return the columns of a table that contain texts."""
    return [name for name, dtype in source.table.schema().items() if dtype.is_string()]


def _digest_of(source: Source) -> dict[str, str]:
    """Return what the digest of a table is computed from, unless it is of files."""
    return {} if source.files else {"sha256_of": source.digest_of}


def refuse_unplanned(checked: Audit, expected: int) -> None:
    """Raise `InternalError` if a written table violates the rule or has not `expected` rows."""
    if checked.violations or checked.report.rows != expected:
        differs = "; ".join(checked.violations) or f"{checked.report.rows:,} rows, not {expected:,}"
        raise InternalError(
            f"The written table is not what was planned: {differs}.",
            hint="Nothing was released. Please report this with the policy and how it was made.",
        )


def refuse_other_classes(
    output: Source, judged: Source, quasi: Sequence[str], sensitive: Sequence[str]
) -> None:
    """Raise `InternalError` unless the written table has the same classes as the rows `judged`, on which
    the rule was checked.

    The output does not identify persons, so the rule cannot be checked on it. The figures are the same
    if each class has the same number of rows in both, in total and for each protected value.
    """
    written = count_classes(output, quasi, sensitive).table
    planned = count_classes(judged, quasi, sensitive).table
    same = np.array_equal(np.sort(written.sizes), np.sort(planned.sizes)) and all(
        np.array_equal(np.sort(counts.counts), np.sort(planned.sensitive[name].counts))
        for name, counts in written.sensitive.items()
    )
    if not same:
        raise InternalError(
            "The written table has other classes than were planned.",
            hint="Nothing was released. Please report this with the policy and how it was made.",
        )
