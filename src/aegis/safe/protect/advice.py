"""Advice from a protected summary, as whoever asked for it holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aegis.errors import NoAdmissibleConfiguration
from aegis.policy import Configuration, OwnerRule, RuleOverride
from aegis.safe.protect.what_if import WhatIf

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""


@dataclass(frozen=True)
class ProtectedRanked:
    """One configuration as a protected summary sees it.

    Attributes
    ----------
    configuration
        The masks as fitted.
    declared
        Attribute to mask as the policy wrote it.
    score
        Estimate of the held-out target-coded trace; negative where chance would say more.
    utility_kept
        Percent of what all masks together show; None where that is nothing.
    stderr
        Standard error of the score: protection and drawing of the rows. None where it was not
        computed.
    tied_with_best
        Whether it is not significantly different from the best one, as far as protection blurs both; None where it
        was not compared.
    admissible
        What the owner of the exact counts said of the rule; None where nothing was said.
    attributes
        Mean square contingency of each masked attribute alone.
    """

    configuration: Configuration
    declared: Mapping[str, str]
    score: float
    utility_kept: float | None
    admissible: bool | None
    attributes: Mapping[str, float]
    stderr: float | None = None
    tied_with_best: bool | None = None

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.configuration.name

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of `ranking` in the JSON of protected advice."""
        return {
            "name": self.name,
            "score": self.score,
            "utility_kept": self.utility_kept,
            "stderr": self.stderr,
            "tied_with_best": self.tied_with_best,
            "admissible": self.admissible,
            "masks": self.configuration.spec(),
            "attributes": dict(self.attributes),
        }


@dataclass(frozen=True, eq=False)
class ProtectedAdvice:
    """A ranking from a protected summary, best first.

    Attributes
    ----------
    ranking
        Configurations: those that are admissible or of which nothing is known before the others.
    unmasked
        The score of what all masks together show.
    estimator
        `codes`, or `tables` where the summary has no moments.
    combinations
        How many configurations the candidates make.
    searched
        How many of them were looked at by a search; None for a ranking of given ones.
    optimal
        Whether the first is proven to have the best score of all combinations that may be taken,
        as this summary scores them.
    summary
        Figures of the protected summary.
    warnings
        What a reader should know.
    seconds
        Time that it took.
    owner_rule, rule_override
        The rule under which the exact summary was made, and what was checked against instead of it.
    what_if
        What every other mask of one attribute would change of the best; empty without a best one.
    """

    ranking: tuple[ProtectedRanked, ...]
    unmasked: float
    estimator: str
    combinations: int
    searched: int | None
    optimal: bool
    summary: Mapping[str, Any]
    warnings: tuple[str, ...]
    seconds: float
    owner_rule: OwnerRule | None = None
    rule_override: RuleOverride | None = None
    what_if: tuple[WhatIf, ...] = ()

    @property
    def best(self) -> ProtectedRanked | None:
        """The first configuration unless it is known to break the rule."""
        first = self.ranking[0] if self.ranking else None
        return None if first is None or first.admissible is False else first

    def require_best(self) -> ProtectedRanked:
        """Return the best configuration; raise `NoAdmissibleConfiguration` without one."""
        if self.best is None:
            raise NoAdmissibleConfiguration(
                f"None of the {len(self.ranking):,} configurations meets the rule, as the owner of "
                "the data says.",
                hint="Ask for verdicts on others, or allow coarser masks.",
            )
        return self.best

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md)."""
        return {
            "schema": SCHEMA,
            "best": None if self.best is None else self.best.name,
            "optimal": self.optimal,
            "measure": "held-out-target-coded",
            "estimator": self.estimator,
            "unmasked": self.unmasked,
            "combinations": self.combinations,
            "searched": self.searched,
            "ranking": [r.to_dict() for r in self.ranking],
            "summary": dict(self.summary),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "what_if": [change.to_dict() for change in self.what_if],
            "owner_rule": None if self.owner_rule is None else self.owner_rule.to_dict(),
            "rule_override": None if self.rule_override is None else self.rule_override.to_dict(),
        }

    def __repr__(self) -> str:
        best = self.best
        said = "none admissible" if best is None else f"best {best.name!r}: {best.score:.4g}"
        return f"ProtectedAdvice({len(self.ranking)} configurations by {self.estimator}, {said})"
