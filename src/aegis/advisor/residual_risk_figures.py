"""State the risks of a release that the rule does not cover, as figures and as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from aegis.advisor.label_leaks import leak_sentences
from aegis.summary.outside import Outside
from aegis.words import in_sentence, joined, json_fields, percent


@dataclass(frozen=True)
class MissingLeak:
    """How the nulls of a column reveal a class of the label: nearly all nulls are in rows of this
    class, or nearly none of them are.

    Attributes
    ----------
    label_class
        The class.
    within
        The share of this class's rows that have a null.
    besides
        The share of all other rows that have a null.
    """

    label_class: str
    within: float
    besides: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "class=label_class", "within", "besides")


@dataclass(frozen=True, kw_only=True)
class Uncovered(Outside):
    """The risks of the best release from which the privacy rule does not protect.

    Attributes
    ----------
    leaks
        Columns that alone explain most of the label, and the share that each explains on held-out
        rows.
    missing_leaks
        Columns whose nulls alone reveal a class of the label.
    """

    leaks: Mapping[str, float] = field(default_factory=dict)
    missing_leaks: Mapping[str, MissingLeak] = field(default_factory=dict)

    @classmethod
    def of(
        cls, outside: Outside, leaks: Mapping[str, float], missing: Mapping[str, MissingLeak]
    ) -> Uncovered:
        """Combine the risks that `outside_of` finds in a release with the columns that reveal the
        label. A column whose nulls alone do so is named only in `missing`.
        """
        own = {entry.name: getattr(outside, entry.name) for entry in fields(Outside)}
        filled = {name: share for name, share in leaks.items() if name not in missing}
        return cls(**own, leaks=filled, missing_leaks=missing)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The risks as sentences for a privacy officer: first those that make the utility doubtful."""
        return (
            *leak_sentences(self.leaks, str(self.label)),
            *self._filled_later(),
            *super().sentences,
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
            yield (
                f"{joined(names)} {are} {shares}: if {columns} can be filled in only after {self.label} is known, "
                "the utility is too high. Leave out what a model cannot know (--leave-out)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        figures = super().to_dict()
        return {
            "released_rows": figures.pop("rows"),
            **figures,
            **json_fields(self, "leaks", "missing_leaks"),
        }
