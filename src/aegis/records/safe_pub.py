"""Differential privacy by sampling and generalisation (SafePub).

Records are drawn independently, and their values are masked by masks that do not depend on the
table. If fewer than k drawn records have the same masked values, they are left out; see
`aegis.privacy.sampling`. You name the masks, or a search draws them and spends a part of epsilon
(`aegis.privacy.scheme_search`). The search reads all records and uses separate random draws, so the
epsilons of search and sample add up. The guarantee covers the quasi-identifiers, not other released
columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from aegis.anonymizers.base import Options, Outcome
from aegis.anonymizers.method import at_least, within
from aegis.anonymizers.records import Records, distinct_rows
from aegis.errors import PolicyError
from aegis.privacy.sampling import SampledPrivacy, sampled_privacy
from aegis.privacy.scheme_search import SCHEME_SCORES
from aegis.progress import Progress


@dataclass(frozen=True)
class SampledOptions(Options):
    """Options of differential privacy by sampling and generalisation.

    Attributes
    ----------
    epsilon
        The epsilon that the release guarantees, above 0 and up to 5.
    delta
        The delta that the release guarantees, above 0 and below 1.
    rate
        The probability of drawing a record. The default is the largest that epsilon allows, 1 -
        e^-epsilon.
    masks
        Masks of the quasi-identifiers, by name, as in a policy: `{age: {bucketize: {width: 10}}}`.
        None of them may learn from the table. If you name no mask for an attribute, it stays
        unmasked if the policy lists `identity` or no candidates for it; otherwise it gets its first
        candidate. With `search` above 0, Aegis draws its mask from the candidates instead.
    search
        The part of epsilon to spend on a search for masks; 0 for no search. The policy must list
        candidates from the finest to the coarsest.
    steps
        Number of combinations of masks that a search draws.
    score
        Score by which a search compares masks: precision, loss (needs hierarchies), nu-entropy,
        classes, discernibility, classification (of a label that is a quasi-identifier).
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    rate: float | None = None
    masks: dict[str, Any] | None = None
    search: float = 0.0
    steps: int = 20
    score: str = "precision"
    by_chance = True

    def __post_init__(self) -> None:
        super().__post_init__()
        within("search", self.search, 0, math.inf)
        at_least("steps", self.steps, 1)
        if self.search >= self.epsilon:
            raise PolicyError(
                f"search = {self.search:g} must be smaller than epsilon = {self.epsilon:g}.",
                hint="Give a smaller `search`, or 0: the sample spends the rest of epsilon.",
            )
        if self.score not in SCHEME_SCORES:
            raise PolicyError.unknown("score of safe-pub", self.score, SCHEME_SCORES)
        _ = self.privacy

    @property
    def privacy(self) -> SampledPrivacy:
        """Return the sampling rate and the k that give the guarantee for the part of epsilon that
        the search does not spend.
        """
        rest = math.nextafter(self.epsilon - self.search, 0) if self.search else self.epsilon
        return sampled_privacy(rest, self.delta, self.rate)

    @property
    def searched_class(self) -> int:
        """Return the number of rows from which the search counts an equivalence class as kept. On
        average, the sample draws k rows of a class of this size.
        """
        privacy = self.privacy
        return math.ceil(max(privacy.k, self.k) / privacy.rate)

    def check(self, records: Records) -> None:
        """Raise an error in the cases of `Options.check`, or if a person may have several records."""
        super().check(records)
        if records.persons is not None:
            raise PolicyError(
                "The method protects single records, but the policy counts persons, who may have "
                "several records.",
                hint="Give a table with one row for each person, and leave `person` out.",
            )


def sample_records(
    records: Records,
    options: SampledOptions,
    random: np.random.Generator,
    progress: Progress,
) -> Outcome:
    """Draw a random sample of the records, and leave out equivalence classes of the sample with
    fewer than k records.
    """
    privacy = options.privacy
    with progress.step("Drawing records", len(records)):
        drawn = random.random(len(records)) < privacy.rate
        _, classes = distinct_rows([a.codes for a in records.attributes])
        sizes = np.bincount(classes[drawn], minlength=int(classes.max(initial=-1)) + 1)
        k = max(privacy.k, options.k)
        labels = np.where(drawn & (sizes[classes] >= k), classes, -1)
    columns = {
        a.name: tuple(a.domain[code] for code in a.codes.tolist()) for a in records.attributes
    }
    small = int((drawn & (labels < 0)).sum())
    return Outcome(
        labels,
        _notes(options, records, k, drawn, small),
        {
            "epsilon": options.epsilon,
            "epsilon_search": options.search,
            "epsilon_sample": privacy.epsilon,
            "delta": privacy.delta,
            "rate": privacy.rate,
            "least_class": k,
            "drawn": int(drawn.sum()),
            "in_small_classes": small,
        },
        columns,
    )


def _notes(
    options: SampledOptions, records: Records, k: int, drawn: np.ndarray[Any, Any], small: int
) -> tuple[str, ...]:
    names = ", ".join(a.name for a in records.attributes)
    privacy = options.privacy
    search = (
        f"epsilon = {options.epsilon:g} is the sum of {options.search:g} for the search for masks by "
        f"{options.score} ({options.steps:,} draws, and a last one among these) and "
        f"{privacy.epsilon:g} for the sample",
    )
    return (
        *(search if options.search else ()),
        f"({options.epsilon:g}, {privacy.delta:g})-differential privacy of {names}: each record was "
        f"drawn with a probability of {privacy.rate:.6g}. {int(drawn.sum()):,} of {len(records):,} "
        f"were drawn; {small:,} of these are left out, because their classes are smaller than {k:,}",
        "the guarantee covers neither other columns nor choices that somebody made after looking at "
        "the table",
    )
