"""Write the privacy rule as SQL: window functions over the classes, and conditions on each row.

All windows partition by the masked quasi-identifiers. Partitions in SQL treat nulls as equal, as
equivalence classes do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aegis.errors import PolicyError
from aegis.privacy import Criterion, PrivacyRule, Window

Quote = Callable[[str], str]
PERSON = "aegis_person"
"""Column of the masked query that identifies persons, if persons are counted."""
_TOLERANCE = "0.000000001"


@dataclass(frozen=True)
class RuleQuery:
    """The SQL expressions that check a privacy rule on the masked columns. Figures use counts,
    comparisons use figures, and conditions may use all of them.

    Attributes
    ----------
    counts
        Name and SQL expression of each number that is counted over the masked rows.
    figures
        Name and SQL expression of each figure of an equivalence class, computed from the counts.
    conditions
        SQL conditions that the counts and figures of a row's class must meet; all must hold.
    comparisons
        Name and SQL expression of each figure that is computed from other figures; empty unless the
        rule counts persons.
    """

    counts: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]
    comparisons: tuple[tuple[str, str], ...] = ()


def rule_query(rule: PrivacyRule, quasi: Sequence[str], quote: Quote) -> RuleQuery:
    """Write the rule as SQL expressions.

    Parameters
    ----------
    rule, quasi
        The privacy rule, and the quasi-identifiers.
    quote
        Function that quotes a name in the dialect.

    Raises
    ------
    PolicyError
        A criterion compares classes with the kept rows or with a population, or needs sorted
        counts. SQL without loops cannot express such a criterion.
    """
    for criterion in rule.criteria:
        model = criterion.model
        if model.window is None or (rule.person is not None and not model.window_by_person):
            raise PolicyError(
                f"{criterion.model.title} cannot be written as one query"
                f"{'' if rule.person is None else ' that counts persons'}.",
                hint="Release with `aegis apply -o FILE`, or ask for k, (alpha,k), distinct "
                f"{'or entropy ' if rule.person is None else ''}l only.",
            )
    writer = _CriteriaWriter if rule.person is None else _PersonWriter
    return writer(quasi, quote).query(rule)


class _CriteriaWriter:
    """Collects the SQL expressions that the criteria of a privacy rule need, without duplicates."""

    def __init__(self, quasi: Sequence[str], quote: Quote) -> None:
        self.quote = quote
        self.counts: dict[str, str] = {}
        self.figures: dict[str, str] = {}
        self.comparisons: dict[str, str] = {}
        self.conditions: list[str] = []
        self.sensitive: list[str] = []
        names = ", ".join(map(quote, quasi))
        self.partition = f"PARTITION BY {names}" if quasi else ""

    def query(self, rule: PrivacyRule) -> RuleQuery:
        if rule.criteria:
            self._size()
        if rule.minimum_size > 1:
            self.conditions.append(f"aegis_rows >= {rule.minimum_size}")
        for criterion in rule.criteria:
            self._add(criterion)
        conditions = tuple(dict.fromkeys(self.conditions))
        listed = (tuple(d.items()) for d in (self.counts, self.figures, self.comparisons))
        counts, figures, comparisons = listed
        return RuleQuery(counts, figures, conditions, comparisons)

    def _size(self) -> None:
        self.counts["aegis_rows"] = f"COUNT(*) OVER ({self.partition})"

    def _add(self, criterion: Criterion) -> None:
        if criterion.attribute is None:
            return
        if criterion.attribute not in self.sensitive:
            self.sensitive.append(criterion.attribute)
        number = self.sensitive.index(criterion.attribute)
        limit, size = criterion[criterion.model.limit], dict(criterion.parameters).get("k")
        if criterion.model.window is Window.DISTINCT:
            self._distinct(number, int(limit))
        elif criterion.model.window is Window.ENTROPY:
            self._entropy(number, limit)
        else:
            self._share(number, limit)
        if size is not None:
            self.conditions.append(f"aegis_rows >= {int(size)}")

    def _distinct(self, number: int, least: int) -> None:
        # The greatest dense rank of a class is its number of values, null among them.
        column = self.quote(self.sensitive[number])
        order = f"{self.partition} ORDER BY {column}".strip()
        self.counts[f"aegis_rank_{number}"] = f"DENSE_RANK() OVER ({order})"
        name = f"aegis_distinct_{number}"
        self.figures[name] = f"MAX(aegis_rank_{number}) OVER ({self.partition})"
        self.conditions.append(f"{name} >= {least}")

    def _same(self, number: int) -> str:
        """Add a count of the rows of a class with the same sensitive value; return its name."""
        column = self.quote(self.sensitive[number])
        inside = f"{self.partition}, {column}" if self.partition else f"PARTITION BY {column}"
        name = f"aegis_same_{number}"
        self.counts[name] = f"COUNT(*) OVER ({inside})"
        return name

    def _entropy(self, number: int, least: float) -> None:
        same = self._same(number)
        name = f"aegis_entropy_{number}"
        self.figures[name] = f"LN(aegis_rows) - AVG(LN({same})) OVER ({self.partition})"
        self.conditions.append(f"EXP({name}) >= {least!r} - 2 * {_TOLERANCE}")

    def _share(self, number: int, most: float) -> None:
        same = self._same(number)
        name = f"aegis_most_{number}"
        self.figures[name] = f"MAX({same}) OVER ({self.partition})"
        self.conditions.append(f"{name} <= ({most!r} + {_TOLERANCE}) * aegis_rows")


class _PersonWriter(_CriteriaWriter):
    """Collects the SQL expressions of a privacy rule that counts distinct persons."""

    def _size(self) -> None:
        # Not every dialect counts distinct values in a window; the largest dense rank is the same.
        order = f"{self.partition} ORDER BY {PERSON}".strip()
        self.counts["aegis_rank"] = f"DENSE_RANK() OVER ({order})"
        self.figures["aegis_rows"] = f"MAX(aegis_rank) OVER ({self.partition})"

    def _distinct(self, number: int, least: int) -> None:
        super()._distinct(number, least)
        if least > 1:  # a value that all persons share is certain, whatever else they have
            self.conditions.append(f"{self._most(number)} < aegis_rows")

    def _same(self, number: int) -> str:
        """Add a count of the persons of a class with the same sensitive value; return its name."""
        column = self.quote(self.sensitive[number])
        inside = f"{self.partition}, {column}" if self.partition else f"PARTITION BY {column}"
        rank, name = f"aegis_same_rank_{number}", f"aegis_same_{number}"
        self.counts[rank] = f"DENSE_RANK() OVER ({inside} ORDER BY {PERSON})"
        self.figures[name] = f"MAX({rank}) OVER ({inside})"
        return name

    def _most(self, number: int) -> str:
        """Add the most persons of a class with one sensitive value; return the figure's name."""
        name = f"aegis_most_{number}"
        self.comparisons[name] = f"MAX({self._same(number)}) OVER ({self.partition})"
        return name

    def _share(self, number: int, most: float) -> None:
        self.conditions.append(f"{self._most(number)} <= ({most!r} + {_TOLERANCE}) * aegis_rows")
