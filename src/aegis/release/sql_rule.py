"""The privacy rule as SQL: window counts over the classes, and the condition that rows must meet.

All windows partition by the quasi-identifiers as they are masked; SQL's partitions take nulls for
equal, as equivalence classes do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aegis.errors import PolicyError
from aegis.privacy import Criterion, PrivacyRule

Quote = Callable[[str], str]
EXPRESSED = (
    "k",
    "alpha_k",
    "l_diversity.distinct",
    "l_diversity.entropy",
    "max_risk.prosecutor",
)
"""Models that look at each class alone and that windows can express."""
_TOLERANCE = "0.000000001"


@dataclass(frozen=True)
class RuleQuery:
    """What a rule needs beside the masked columns, in the order in which it is computed.

    Attributes
    ----------
    counts
        Name and expression of counts over the masked rows.
    figures
        Name and expression of figures of a class, over the counts.
    conditions
        What a row's class must meet, over counts and figures; all must hold.
    """

    counts: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, str], ...]
    conditions: tuple[str, ...]


def rule_query(rule: PrivacyRule, quasi: Sequence[str], quote: Quote) -> RuleQuery:
    """Return the rule as SQL.

    Parameters
    ----------
    rule
        The privacy rule.
    quasi
        The quasi-identifiers.
    quote
        Quotes a name for the dialect.

    Raises
    ------
    PolicyError
        A criterion compares classes with the kept rows or with a population, or needs sorted
        counts: SQL without loops cannot say it.
    """
    if rule.person is not None:
        raise PolicyError(
            f"A rule that counts persons ({rule.person}) is not written as a query yet.",
            hint="Release with `aegis apply -o FILE`.",
        )
    for criterion in rule.criteria:
        if criterion.model.name not in EXPRESSED:
            raise PolicyError(
                f"{criterion.model.title} cannot be written as one query.",
                hint="Release with `aegis apply`, or ask for k, (alpha,k), distinct or entropy l only.",
            )
    return _Writer(quasi, quote).query(rule)


class _Writer:
    """Collects what the criteria need, each thing once."""

    def __init__(self, quasi: Sequence[str], quote: Quote) -> None:
        self.quote = quote
        self.counts: dict[str, str] = {}
        self.figures: dict[str, str] = {}
        self.conditions: list[str] = []
        self.sensitive: list[str] = []
        names = ", ".join(map(quote, quasi))
        self.partition = f"PARTITION BY {names}" if quasi else ""

    def query(self, rule: PrivacyRule) -> RuleQuery:
        if rule.criteria:
            self.counts["aegis_rows"] = f"COUNT(*) OVER ({self.partition})"
        if rule.minimum_size > 1:
            self.conditions.append(f"aegis_rows >= {rule.minimum_size}")
        for criterion in rule.criteria:
            self._add(criterion)
        conditions = tuple(dict.fromkeys(self.conditions))
        return RuleQuery(tuple(self.counts.items()), tuple(self.figures.items()), conditions)

    def _add(self, criterion: Criterion) -> None:
        if criterion.attribute is None:
            return
        if criterion.attribute not in self.sensitive:
            self.sensitive.append(criterion.attribute)
        place = self.sensitive.index(criterion.attribute)
        if criterion.model.name == "l_diversity.distinct":
            self._distinct(place, int(criterion["l"]))
        elif criterion.model.name == "l_diversity.entropy":
            self._entropy(place, criterion["l"])
        else:
            self._share(place, criterion["alpha"], int(criterion["k"]))

    def _distinct(self, place: int, least: int) -> None:
        # The greatest dense rank of a class is its number of values, null among them.
        column = self.quote(self.sensitive[place])
        order = f"{self.partition} ORDER BY {column}".strip()
        self.counts[f"aegis_rank_{place}"] = f"DENSE_RANK() OVER ({order})"
        name = f"aegis_distinct_{place}"
        self.figures[name] = f"MAX(aegis_rank_{place}) OVER ({self.partition})"
        self.conditions.append(f"{name} >= {least}")

    def _same(self, place: int) -> str:
        """Return the count of rows of the class that share the row's sensitive value."""
        column = self.quote(self.sensitive[place])
        inside = f"{self.partition}, {column}" if self.partition else f"PARTITION BY {column}"
        name = f"aegis_same_{place}"
        self.counts[name] = f"COUNT(*) OVER ({inside})"
        return name

    def _entropy(self, place: int, least: float) -> None:
        same = self._same(place)
        name = f"aegis_entropy_{place}"
        self.figures[name] = f"LN(aegis_rows) - AVG(LN({same})) OVER ({self.partition})"
        self.conditions.append(f"EXP({name}) >= {least!r} - 2 * {_TOLERANCE}")

    def _share(self, place: int, most: float, rows: int) -> None:
        same = self._same(place)
        name = f"aegis_most_{place}"
        self.figures[name] = f"MAX({same}) OVER ({self.partition})"
        self.conditions.append(f"{name} <= ({most!r} + {_TOLERANCE}) * aegis_rows")
        self.conditions.append(f"aegis_rows >= {rows}")
