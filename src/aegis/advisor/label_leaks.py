"""Find released columns that alone explain the label, so that a utility may be too high; state
these and other risks that the rule does not cover, as figures and as sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from aegis.arrays import Array, Floats
from aegis.masks import common_refinement
from aegis.policy.labels import MUCH_IN_ONE_ROW
from aegis.privacy.inference import LEAK, lift, predictability
from aegis.summary.outside import Outside
from aegis.words import Quoting, in_sentence, joined, json_fields, percent

if TYPE_CHECKING:
    from aegis.advisor.scoring import Choice
    from aegis.summary import Summary

DERIVED = 0.99
"""The share of a label that is a number which a single column explains if it may repeat the label."""


def label_leaks(summary: Summary, choice: Choice) -> dict[str, float]:
    """Return the columns that alone explain nearly all of the label, with the share that each
    explains: at least `LEAK` for classes, and at least `DERIVED` for a number.
    """
    if summary.pairs.responses is not None:
        shares = _shares_of_number(summary, choice)
        return {name: share for name, share in shares.items() if share >= DERIVED}
    leaks = {}
    for name, candidate in choice.items():
        attribute = summary.attributes.get(name)
        if attribute is None or candidate.noise is not None:
            continue
        joint = np.zeros((candidate.size, attribute.joint.shape[1]), attribute.joint.dtype)
        np.add.at(joint, candidate.groups, attribute.joint)
        if summary.weights is not None:
            joint = _as_rows(joint, np.bincount(candidate.groups, attribute.counts, candidate.size))
        if (share := label_share(joint)) >= LEAK:
            leaks[name] = share
    return leaks


def _shares_of_number(summary: Summary, choice: Choice) -> dict[str, float]:
    """Return the adjusted R2 of a numeric label by each column alone.

    Each row is predicted by the mean of its level or range. Columns with fewer than two rows per
    group are left out. If one row accounts for much of the label's variance, the result is empty,
    because this row alone would decide the share.
    """
    pairs = summary.pairs
    sums, rows = pairs.responses, pairs.counted
    if sums is None or (summary.number or {}).get("one_row", 0.0) >= MUCH_IN_ONE_ROW:
        return {}
    centre, total = sums.centre(rows), rows * sums.deviation(rows) ** 2
    counted, shares = int(summary.label.counts.sum()), {}
    for name, of_atoms, joint in zip(pairs.names, sums.sums, pairs.atom_counts, strict=True):
        candidate = choice.get(name)
        if candidate is None or candidate.noise is not None:
            continue
        partitions = (
            [candidate.levels] if candidate.ranges is None else [candidate.levels, candidate.ranges]
        )
        group = common_refinement(partitions)
        there = joint.sum(axis=1)
        away = (of_atoms.sum(axis=0) - centre * there).astype(float)
        sizes = np.bincount(group, weights=there.astype(float))
        both = np.bincount(group, weights=away)[sizes > 0]
        sizes = sizes[sizes > 0]
        if 2 * len(sizes) > counted:
            continue
        between = float((both**2 / sizes).sum()) - float(both.sum()) ** 2 / rows
        unexplained = max(1 - between / total, 0.0) if total > 0 else 1.0
        shares[name] = 1 - unexplained * (counted - 1) / (counted - len(sizes))
    return shares


def _as_rows(weights: Array, rows: Array) -> Floats:
    """Return sums of weights by value and class, shape (V, C), scaled so that the sum for each
    value is its number of rows, (V,). So a caller can leave one row out by subtracting 1.
    """
    sums = weights.sum(axis=1)
    return weights * rows[:, None] / np.where(sums > 0, sums, 1)[:, None]


def leak_sentences(leaks: Mapping[str, float], label: str) -> tuple[str, ...]:
    """Return a warning on the columns that alone explain most of a label; empty without such
    columns.
    """
    if not leaks:
        return ()
    least = percent(100 * min(leaks.values()), 0)
    least = "all" if least == "100 %" else least
    if len(leaks) == 1:
        return (
            f"The column {joined(leaks)} alone explains {least} of {label}: it may repeat the label in other "
            "words. If it is not known when a model is used, leave it out (--leave-out)",
        )
    least = f"{least} or more" if least[0].isdigit() else least
    return (
        f"The columns {joined(leaks)} each alone explain {least} of {label}: they may repeat the label "
        "in other words. If they are not known when a model is used, leave them out (--leave-out)",
    )


def label_share(joint: Array) -> float:
    """Return the share of the label that an attribute explains, from 0 to 1, on held-out rows.
    `joint` has the rows by value and class, shape (V, C).

    The guess for each row is the most frequent class of the other rows with its value. Let a be the
    accuracy of these guesses, and b the share of the most frequent class. The result is (a - b) /
    (1 - b), or 0 if this is negative.
    """
    values, classes = np.nonzero(joint)
    counts = np.asarray(joint)[values, classes]
    if not len(counts):
        return 0.0
    by_class = np.asarray(joint).sum(axis=0)
    return lift(
        predictability(values, classes, counts).right, float(by_class.max() / by_class.sum())
    )


@dataclass(frozen=True)
class MissingLeak:
    """How the nulls of a column reveal a class of the label: the shares of rows with a null among
    the rows of `label_class` (`within`) and all others (`besides`). Nearly all nulls are in rows of
    this class, or nearly none of them are.
    """

    label_class: str
    within: float
    besides: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "class=label_class", "within", "besides")


@dataclass(frozen=True, kw_only=True)
class ResidualRisks(Outside):
    """The risks of the best release from which the privacy rule does not protect: columns that
    alone explain most of the label, with the share that each explains on held-out rows (`leaks`),
    and columns whose nulls alone reveal a class (`missing_leaks`).
    """

    leaks: Mapping[str, float] = field(default_factory=dict)
    missing_leaks: Mapping[str, MissingLeak] = field(default_factory=dict)

    @classmethod
    def of(
        cls, outside: Outside, leaks: Mapping[str, float], missing: Mapping[str, MissingLeak]
    ) -> ResidualRisks:
        """Combine the risks that `outside_of` finds with the columns that reveal the label. A
        column in `missing` is not named in `leaks`, too.
        """
        figures = {entry.name: getattr(outside, entry.name) for entry in fields(Outside)}
        filled = {name: share for name, share in leaks.items() if name not in missing}
        return cls(**figures, leaks=filled, missing_leaks=missing)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The risks as sentences: first those to persons, then those that make the utility doubtful."""
        return (
            *super().sentences,
            *leak_sentences(self.leaks, str(self.label)),
            *self._filled_later(),
        )

    def _filled_later(self) -> Iterator[str]:
        together: dict[str, list[str]] = {}
        for name, leak in self.missing_leaks.items():
            shares = (
                f"empty in {percent(100 * leak.within, 0)} of the rows with {self.label} = "
                f"{in_sentence(leak.label_class)} and in {percent(100 * leak.besides, 0)} of the others"
            )
            together.setdefault(shares, []).append(name)
        for shares, names in together.items():
            are, columns = ("is", "the column") if len(names) == 1 else ("are", "the columns")
            then = (
                f"if {columns} can be filled in only after {self.label} is known, the utility is too high. "
                "Leave out what a model cannot know (--leave-out)"
            )
            without = f"empty in nearly all or nearly no rows with one class of {self.label}"
            yield Quoting(
                f"{joined(names)} {are} {shares}: {then}",
                f"{joined(names)} {are} {without}: {then}",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        figures = super().to_dict()
        return {
            "released_rows": figures.pop("rows"),
            **figures,
            **json_fields(self, "leaks", "missing_leaks"),
        }
