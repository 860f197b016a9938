"""Differential privacy by sampling and generalisation (SafePub).

Each record is drawn with a chance of its own, shown by masks that do not depend on the table, and left
out where fewer than k drawn records show the same: see `aegis.privacy.sampling`. The guarantee is one
of the quasi-identifiers; what is released beside them it does not cover.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aegis.anonymizers.base import ANONYMIZERS, Anonymizer, Options, Outcome, Style
from aegis.anonymizers.records import Records, distinct_rows
from aegis.errors import PolicyError
from aegis.privacy.sampling import SampledPrivacy, sampled_privacy
from aegis.progress import Progress


@dataclass(frozen=True)
class SampledOptions(Options):
    """Options of differential privacy by sampling and generalisation.

    Attributes
    ----------
    epsilon
        The guarantee, above 0 and up to 5.
    delta
        With what probability it may fail, above 0 and below 1.
    rate
        The chance to draw a record; by default the largest that epsilon allows, 1 - e^-epsilon.
    masks
        Masks that show the quasi-identifiers, by name, as a policy writes them: `{age: {bucketize:
        {width: 10}}}`; none of them may learn from the table. One that is not named stays as it is
        where the policy has `identity` among its candidates, or names none; else it is shown under
        its first candidate.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    rate: float | None = None
    masks: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.privacy

    @property
    def privacy(self) -> SampledPrivacy:
        """The rate and the k that the guarantee asks for."""
        return sampled_privacy(self.epsilon, self.delta, self.rate)

    def check(self, records: Records) -> None:
        """Raise as `Options.check`, and where a person may have several records."""
        super().check(records)
        if records.persons is not None:
            raise PolicyError(
                "The guarantee is one of records, and the policy counts persons, who may have several.",
                hint="Give a table with one row for each person, and leave `person` out.",
            )


def _run(
    records: Records,
    options: SampledOptions,
    random: np.random.Generator,
    progress: Progress,
) -> Outcome:
    privacy = options.privacy
    with progress.step("Drawing records", len(records)):
        drawn = random.random(len(records)) < privacy.rate
        _, classes = distinct_rows(
            [a.codes for a in records.attributes], [a.size for a in records.attributes]
        )
        sizes = np.bincount(classes[drawn], minlength=int(classes.max(initial=-1)) + 1)
        k = max(privacy.k, options.k)
        labels = np.where(drawn & (sizes[classes] >= k), classes, -1)
    columns = {
        a.name: tuple(a.domain[code] for code in a.codes.tolist()) for a in records.attributes
    }
    small = int((drawn & (labels < 0)).sum())
    return Outcome(
        labels,
        _notes(privacy, records, k, drawn, small),
        {
            "epsilon": privacy.epsilon,
            "delta": privacy.delta,
            "rate": privacy.rate,
            "least_class": k,
            "drawn": int(drawn.sum()),
            "in_small_classes": small,
        },
        columns,
    )


def _notes(
    privacy: SampledPrivacy, records: Records, k: int, drawn: np.ndarray[Any, Any], small: int
) -> tuple[str, ...]:
    names = ", ".join(a.name for a in records.attributes)
    return (
        f"({privacy.epsilon:g}, {privacy.delta:g})-differential privacy of {names}: each record was "
        f"drawn with a chance of {privacy.rate:.6g}, {int(drawn.sum()):,} of {len(records):,} were, "
        f"and {small:,} of them are left out in classes below {k:,}",
        "the guarantee does not cover other columns, nor choices made by looking at the table; it is "
        "lost to whoever knows the seed and so who was drawn: take one nobody can guess",
    )


SAFE_PUB = ANONYMIZERS.register(
    Anonymizer(
        "safe-pub",
        "A random sample under fixed masks, without small classes: differential privacy.",
        "Li, Qardaji and Su 2012; Bild, Kuhn and Prasser 2018",
        SampledOptions,
        Style.GENERALISED,
        "N log N",
        False,
        _run,
        sampled=True,
    )
)
