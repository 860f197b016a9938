"""Define requests for protected summaries, for the command line, `Study` and the service."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from aegis.options import documented, group, keyword, option

if TYPE_CHECKING:
    from aegis.policy import Configuration

EPSILON = (
    "How much level noise may give away of one row or person (differential privacy;"
    " smaller is safer), with --delta."
)
DELTA = "The chance that the promise of --epsilon does not hold: less than 1 / rows."


@documented
@dataclass(frozen=True, kw_only=True)
class NoiseRequest:
    """The options of level noise."""

    epsilon: float | None = option(None, EPSILON, "E")
    delta: float | None = option(None, DELTA, "D")
    unit: str = option("rows", "What noise protects: rows or persons.", "UNIT")
    rows_per_person: int = option(1, "Most rows of one person, with --unit persons.", "N")
    person: str | None = option(
        None,
        "Column that identifies persons; refused if one has more rows than --rows-per-person.",
        "COLUMN",
    )
    public: Collection[str] = option(
        (),
        "Attributes whose values and cuts are public knowledge; '*' for all. The "
        "values of others are drawn from the table, which takes part of the budget.",
        "A,B,...",
        kind=list[str] | None,
    )


@documented
@dataclass(frozen=True, kw_only=True)
class CountsRequest:
    """The options of level counts."""

    key: bytes | None = keyword(
        None, "Of level counts: the secret that seeds the perturbation, at least 16 random bytes."
    )
    method: str = option(
        "cell-keys", "How --level counts changes counts: cell-keys or rounding.", "NAME"
    )
    threshold: int = option(10, "Cells of fewer rows count as small.", "N")
    step: int | None = option(
        None,
        "Base of rounding, or largest change of a cell key; by default the threshold.",
        "N",
    )
    variance: float | None = option(
        None, "Variance of the change by cell keys; by default half of the threshold.", "V"
    )


@documented
@dataclass(frozen=True, kw_only=True)
class ProtectRequest:
    """The options of a protected summary."""

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
        "Use the policy's rule although the summary was made under another one; the result says "
        "so. A rule weaker than that of a locked summary is refused all the same.",
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
