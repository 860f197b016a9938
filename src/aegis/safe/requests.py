"""Define requests for protected summaries, for the command line, `Study` and the service."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from aegis.options import documented, group, keyword, option

if TYPE_CHECKING:
    from aegis.policy import Configuration

EPSILON = (
    "The privacy budget of level noise (differential privacy); smaller is safer. Needs --delta."
)
DELTA = "The probability that the promise of --epsilon fails. Choose less than 1 / rows."


@documented
@dataclass(frozen=True, kw_only=True)
class NoiseRequest:
    """The options for protecting a summary at level `noise`, by differential privacy."""

    epsilon: float | None = option(None, EPSILON, "E")
    delta: float | None = option(None, DELTA, "D")
    unit: str = option("rows", "What noise protects: rows or persons.", "UNIT")
    rows_per_person: int = option(1, "With --unit persons: the most rows of one person.", "N")
    person: str | None = option(
        None,
        "Column that identifies persons. Aegis refuses the table if a person has more rows "
        "than --rows-per-person.",
        "COLUMN",
    )
    public: Collection[str] = option(
        (),
        "Attributes whose values and cut points are public knowledge; '*' for all. For other "
        "attributes, Aegis draws values from the table and spends part of the budget on it.",
        "A,B,...",
        kind=list[str] | None,
    )


@documented
@dataclass(frozen=True, kw_only=True)
class CountsRequest:
    """The options for protecting a summary at level `counts`, by rounding or by cell keys."""

    key: bytes | None = keyword(
        None, "Of level counts: the secret that seeds the perturbation, at least 16 random bytes."
    )
    method: str = option(
        "cell-keys", "How level counts changes counts: cell-keys or rounding.", "NAME"
    )
    threshold: int = option(10, "Cells with fewer rows count as small.", "N")
    step: int | None = option(
        None,
        "The base of rounding, or the largest change by cell keys. By default: the threshold.",
        "N",
    )
    variance: float | None = option(
        None, "The variance of the change by cell keys. By default: half of the threshold.", "V"
    )


@documented
@dataclass(frozen=True, kw_only=True)
class ProtectRequest:
    """The options for protecting a summary: its level, and the options of this level."""

    level: str = option(
        "noise", "noise (differential privacy) or counts (perturbed small cells).", "LEVEL"
    )
    noise: NoiseRequest = group(NoiseRequest)
    counts: CountsRequest = group(CountsRequest)
    verdicts: Sequence[Configuration] | Mapping[str, Configuration] | int = keyword(
        (),
        "Configurations to state a verdict of the rule on, or a number: all combinations, where they "
        "are no more than that.",
    )
    rule_override: bool = option(
        False,
        "Use the policy's rule even if the summary was made under another rule. The result then "
        "says so. A locked summary still refuses a weaker rule.",
    )


class ProtectOptions(TypedDict, total=False):
    """The options of `ProtectRequest` as keywords."""

    level: str
    epsilon: float | None
    delta: float | None
    unit: str
    rows_per_person: int
    person: str | None
    public: Collection[str]
    key: bytes | None
    method: str
    threshold: int
    step: int | None
    variance: float | None
    verdicts: Sequence[Configuration] | Mapping[str, Configuration] | int
    rule_override: bool
