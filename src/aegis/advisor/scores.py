"""Hold scores of configurations, compute the share of the utility that they keep, and compute
figures of an advice when somebody first reads them.

Noise masks are scored without drawing rows. The result is the score of the expected counts, not the
expected score of drawn rows. Plug-in measures of the expected counts measure the information that
passes through the noise. Corrected measures of single attributes also subtract the effect of chance
in drawn rows, which expected counts do not have. So these measures are slightly too low. Pillai's
trace and its held-out forms take into account that expected counts contain less chance
(`Cooccurrence.chance`), and agree with the mean score of drawn rows. Noise cannot improve MI,
chi-square, g3 and the plug-in trace. It can improve g1 and g2: they count rows with the same value,
and noise spreads these rows over more values. So do not compare noise masks by g1 or g2.

If a measure predicts every column from the others, each column has a weight. Columns that almost
determine each other, such as an age and a year of birth, count once. Otherwise they would dominate
the mean over columns. A column that cannot be predicted is left out, and the reason is stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from itertools import combinations
from threading import RLock
from typing import Any, Generic, TypeVar, cast

import numpy as np

from aegis.arrays import Floats, Integers, OnDemand, cached_method
from aegis.measures import Contingency, Measure
from aegis.measures.checks import controlled_rounding
from aegis.summary import AttributeSummary, Summary

_ROUNDING = 1e-9
"""Utility counts as 0 up to this share of the value that a constant prediction reaches (rounding)."""
_RESIDUE = 1e-15
"""Utility counts as 0 up to this value, also if a constant prediction reaches 0 (rounding)."""


@dataclass(frozen=True)
class AttributeScore:
    """The score that one attribute has before (`unmasked`) and after masking (`score`)."""

    score: float
    unmasked: float

    @property
    def change(self) -> float:
        """The score of the masked attribute minus the score of the unmasked attribute."""
        return self.score - self.unmasked


class AttributeScores(OnDemand[str, AttributeScore]):
    """The score of each attribute by itself, computed when somebody first reads it."""

    @cached_method
    def __getitem__(self, name: str) -> AttributeScore:
        return super().__getitem__(name)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(
        self,
    ) -> tuple[type[dict[str, AttributeScore]], tuple[dict[str, AttributeScore]]]:
        """Compute all scores, to copy or pickle them without the table's counts."""
        return dict, (dict(self),)


def mean_change(attributes: Mapping[str, AttributeScore]) -> float:
    """Return the predictive utility deviation: the mean over attributes of |unmasked - masked|."""
    return float(np.mean([abs(scores.change) for scores in attributes.values()]))


@dataclass(frozen=True)
class ConfigurationScore:
    """The score that one configuration has by one measure.

    Attributes
    ----------
    score
        The value of the measure; for an attribute measure, its weighted mean over attributes.
    utility_kept
        Percent of the utility that is kept, at most 100; None if the unmasked utility is 0. See the
        function `utility_kept`.
    attributes
        The score of each attribute alone.
    """

    score: float
    utility_kept: float | None
    attributes: Mapping[str, AttributeScore]

    @cached_property
    def pud(self) -> float:
        """The predictive utility deviation of the configuration (AEGIS paper, equation 1), as
        `mean_change` computes it.
        """
        return mean_change(self.attributes)


def utility_kept(
    score: float,
    reference: float,
    measure: Measure,
    label_rows: Sequence[float] | None = None,
    rows: float | None = None,
) -> float | None:
    """Return the percentage of a reference's utility that a score keeps, from 0 to 100; None if the
    reference has no utility, up to rounding.

    Utility is the difference between a score and the score of a constant prediction
    (`Measure.worst`), which may depend on the number of rows of each label class (`label_rows`). A
    score above the reference exceeds it only by accident, so it keeps 100 %. If `rows` is given,
    the score of a constant prediction is rounded as `coarse` rounds the reference, because it
    depends on rows that a release may suppress.
    """
    worst, sign = measure.worst(label_rows), measure.direction.sign
    if rows is not None and measure.constant is not None:
        worst = coarse(worst, rows)
    utility, remaining = sign * (reference - worst), sign * (score - worst)
    nothing = max(_ROUNDING * abs(worst), _RESIDUE)
    if not utility > nothing:
        return None
    return min(max(100.0 * remaining / utility, 0.0), 100.0) if remaining > _RESIDUE else 0.0


_NOTHING = 1e-9
"""Fewer expected rows than this count as 0: rounding can leave them for an impossible report."""


class ExpectedContingency(Contingency):
    """The number of rows by level and label class that is expected under a noise mask; it may be a
    fraction.
    """

    @cached_property
    def n(self) -> Any:
        """The number of rows. Noise does not change it; with weights, it can be a fraction."""
        total = float(self.row_totals @ self.multiplicity)
        rounded = round(total)
        return rounded if abs(total - rounded) <= _NOTHING * max(total, 1.0) else total


def contingency(expected: Floats, measure: Measure | None) -> Contingency:
    """Convert expected counts, shape (R, C), to a contingency table from which `measure` can be
    computed.

    A measure with the flag `fractional` gets the counts unchanged. All other measures need
    integers, for example those that permute rows, leave one row out, or count the rows of mixed
    groups, and the measures of other packages. For them, the counts are rounded class by class, so
    that the totals of the classes stay the same.
    """
    if measure is None or not measure.fractional:
        return Contingency.of(controlled_rounding(expected))
    table: Any = expected[expected.sum(axis=1) > _NOTHING]
    table = table[:, table.any(axis=0)]
    return ExpectedContingency(table, np.ones(len(table), dtype=np.int64))


TWINS = 0.99
"""Two columns count as one if each explains at least this share of the other's variance."""
KEY = 0.5
"""A column whose values have no order counts as a key if it has more distinct values per row than
this.
"""


@dataclass(frozen=True)
class ColumnRole:
    """The weight of a column in a score that predicts every column from the others, with its
    reason.

    Attributes
    ----------
    weight
        Weight of the column in the mean of all columns' scores; 0 if the column is left out.
    left_out
        Why the column is left out; empty if it counts.
    twins
        Columns that almost determine this one and are almost determined by it; they share the
        weight.
    """

    weight: float
    left_out: str = ""
    twins: tuple[str, ...] = ()


def column_roles(summary: Summary) -> Mapping[str, ColumnRole]:
    """Return the role of each attribute in a score that predicts every column, from unmasked
    values.
    """
    why = {a.name: _left_out(a, summary.rows) for a in summary.attributes.values()}
    counted = [name for name, reason in why.items() if not reason]
    sets = {name: {name} for name in counted}
    for first, second in combinations(counted, 2):
        if sets[first] is not sets[second] and _twins(summary, first, second):
            joined = sets[first] | sets[second]
            sets.update(dict.fromkeys(joined, joined))
    return {
        name: ColumnRole(0.0, why[name])
        if why[name]
        else ColumnRole(
            summary.attributes[name].weight / len(sets[name]),
            twins=tuple(other for other in counted if other in sets[name] and other != name),
        )
        for name in summary.attributes
    }


def _left_out(attribute: AttributeSummary, rows: int) -> str:
    """Return why a column cannot be predicted, such as "it is like a key"; empty if it can be."""
    if np.count_nonzero(attribute.counts) < 2:
        return "it has one value"
    if attribute.excluded:
        return "it has too many values"
    if not attribute.kind.ordered and len(attribute.all_values) > KEY * rows:
        return "it is like a key"
    return ""


def _twins(summary: Summary, first: str, second: str) -> bool:
    """Return whether two columns almost determine each other: by their values, or by ranges of
    them.
    """
    names = summary.pairs.names
    places = sorted((names.index(first), names.index(second)))
    a, b, _, rows = summary.pairs.cells(places[0], places[1])
    unmasked = [summary.attributes[names[position]].unmasked for position in places]
    ways = [(unmasked[0].levels, unmasked[1].levels)]
    ranges = [c.levels if c.ranges is None else c.ranges for c in unmasked]
    if any(c.ranges is not None for c in unmasked):
        ways.append((ranges[0], ranges[1]))
    return any(_tell_each_other(x[a], y[b], rows.astype(np.float64)) for x, y in ways)


def _tell_each_other(x: Integers, y: Integers, rows: Floats) -> bool:
    table = np.zeros((int(x.max(initial=0)) + 1, int(y.max(initial=0)) + 1))
    np.add.at(table, (x, y), rows)
    return min(_explained(table), _explained(table.T)) > TWINS


def _explained(table: Floats) -> float:
    """Return Goodman and Kruskal's tau, in [0, 1]: the share of the variance of the column variable
    of a contingency table that the row variable explains.
    """
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    variance = n - float((columns**2).sum()) / max(n, 1.0)
    if variance <= 0:
        return 0.0
    explained = float((table[rows > 0] ** 2 / rows[rows > 0, None]).sum())
    return float((explained - float((columns**2).sum()) / n) / variance)


T = TypeVar("T")
R = TypeVar("R")


class Later(Generic[T]):
    """A value that is computed when it is first read. If two threads read it at the same time, one
    of them computes it, and the other one waits.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute
        self._lock = RLock()

    @property
    def value(self) -> T:
        """The value."""
        with self._lock:
            if self._compute is not None:
                self._value = self._compute()
                self._compute = None  # so that the counts behind the value can be freed
            return self._value

    @property
    def computed(self) -> bool:
        """Whether the value has been computed."""
        return self._compute is None

    def __reduce__(self) -> tuple[Callable[[T], T], tuple[T]]:
        """Compute the value, to copy or pickle it without the table's counts."""
        return _unchanged, (self.value,)


def later(compute: Callable[[], T]) -> T:
    """Return a placeholder for a field of a dataclass with the decorator `read_later`: `compute` is
    called when somebody first reads the field. It has the type of the value for type checkers.
    """
    return cast(T, Later(compute))


def read_later(*names: str) -> Callable[[type[R]], type[R]]:
    """Return a decorator for a dataclass whose named fields accept placeholders (`later`)."""

    def decorate(record: type[R]) -> type[R]:
        for name in names:
            setattr(record, name, _Field(name, getattr(record, name, MISSING)))
        return record

    return decorate


def changed(record: R, **changes: Any) -> R:
    """Return a copy of a dataclass with other values of some fields, as `dataclasses.replace` does.
    Values that nobody has read yet are not computed.
    """
    values = {field.name: vars(record)[field.name] for field in fields(cast(Any, record))}
    return type(record)(**{**values, **changes})


class _Field:
    """A field of a dataclass whose value may be computed when it is first read (`Later`)."""

    def __init__(self, name: str, default: Any) -> None:
        self._name = name
        self._default = default

    def __get__(self, record: Any, owner: type | None = None) -> Any:
        if record is None:
            if self._default is MISSING:
                raise AttributeError(self._name)
            return self._default
        value = record.__dict__[self._name]
        return value.value if isinstance(value, Later) else value

    def __set__(self, record: Any, value: Any) -> None:
        record.__dict__[self._name] = value


def _unchanged(value: T) -> T:
    return value


def coarse(
    score: float, rows: float, release_score: float | None = None, *, in_units: bool = False
) -> float:
    """Return a score of the unmasked table with so few digits that readers learn little from it
    about a value that the release hides.

    One row changes a score by about one part in the number of rows. If a certificate stated all
    digits, a reader could compute the score of each guess of a hidden value or of a suppressed row,
    and compare. Each further score that the certificate states lets the reader exclude more
    guesses. So the result is a multiple of a step that is at least 3 / `rows`, and `rows` is the
    number of rows of the table, divided by the number of scores of its kind that the certificate
    states: one for each label, or two for each column. The step is a power of ten if it is at most
    0.01; otherwise it is 0.02, 0.05 or, at most, 0.1. A score that would become 0 is rounded to two
    decimals instead, so that a release does not seem to keep nothing.

    Scores from 1 have as many significant digits as scores between 0.1 and 1, and errors in the
    units of a label (`in_units`) have as many at any size.

    `release_score` is the score of the release. If both scores are equal, the release tells the
    score already, and no digit is removed.

    Examples
    --------
    >>> from aegis.advisor.scores import coarse
    >>> coarse(0.6167832, 300), coarse(0.9168765, 32561), coarse(0.6167832, 300, 0.6167832)
    (0.62, 0.9169, 0.6167832)
    >>> coarse(0.6367832, 300 / 2), coarse(0.6367832, 60), coarse(0.6367832, 60 / 2)
    (0.64, 0.65, 0.6)
    >>> coarse(0.0167832, 300), coarse(0.0167832, 300, in_units=True)
    (0.02, 0.017)
    """
    if release_score is not None and math.isclose(score, release_score, rel_tol=1e-9):
        return score
    if not math.isfinite(score) or score == 0:
        return score
    decimals, parts = _steps(rows)
    size = _size(score, in_units=in_units)
    stepped = round(round(score * parts, decimals - size) / parts, decimals - size + 1)
    return stepped or round(score, 2) or 0.0  # not -0.0


def coarse_decimals(score: float, rows: float) -> int:
    """Return with how many decimals `coarse` states a score that is not in the units of a label;
    negative for tens, hundreds and so on.
    """
    return coarse_digits(rows) - _size(score, in_units=False)


def rows_each(table_rows: float, figures: int, *, earlier: bool = False) -> float:
    """Return by how many rows `coarse` rounds each of so many scores of a table. `earlier` is for
    certificates of earlier versions, which rounded each score as if it were the only one, and never
    to fewer than two digits.
    """
    return max(table_rows, 100 * _ROWS_OF_ONE_STEP) if earlier else table_rows / max(figures, 1)


def coarse_digits(rows: float) -> int:
    """Return how many significant digits `coarse` leaves; `rows` is as there."""
    decimals, parts = _steps(rows)
    return decimals + (parts > 1)


def coarse_error(score: float, rows: float) -> float:
    """Return by how much `coarse` changes, at most, a score that is not in the units of a label."""
    decimals, parts = _steps(rows)
    return 0.5 / parts * 10.0 ** (_size(score, in_units=False) - decimals)


def too_coarse(rows: float) -> bool:
    """Return whether `coarse` would need a step above 0.1; `rows` is as there."""
    return rows < _ROWS_OF_ONE_STEP / 0.1


_ROWS_OF_ONE_STEP = 3
"""The step of `coarse`, multiplied by the rows of the table, is at least this. With it, readers of
certificates of six tables of 60 to 1,000 rows found a hidden value in 15 to 24 % of cases, and in
12.5 % by guessing.
"""


def _steps(rows: float) -> tuple[int, int]:
    """Return the decimals of a step of `coarse`, and how many steps divide a unit of the last one."""
    units = max(rows, 1) / _ROWS_OF_ONE_STEP
    decimals = math.floor(math.log10(units))
    if decimals >= 2:
        return decimals, 1
    return 1, next((parts for parts in (5, 2) if parts <= units / 10), 1)


def _size(score: float, *, in_units: bool) -> int:
    """Return the number of digits before the decimal point; a negative number counts zeros after
    it. If a score is not `in_units`, it is at least 0.
    """
    size = math.floor(math.log10(abs(score))) + 1 if score else 0
    return size if in_units else max(size, 0)
