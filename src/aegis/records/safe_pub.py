"""Differential privacy by sampling and generalisation (SafePub).

Records are drawn independently, and their values are masked by masks that do not depend on the
table. If fewer than k drawn records have the same masked values, they are left out; see
`aegis.privacy.dp`. You name the masks, or a search draws them and spends a part of epsilon
(`aegis.privacy.scheme_search`). The search reads all records and uses separate random draws, so the
epsilons of search and sample add up. The guarantee covers the quasi-identifiers, not other released
columns.

Besides the rows, the search reads the candidates of the policy, in their order, and the leaves of
hierarchies. For the guarantee, these must not depend on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.anonymizers.base import Anonymizer, Options, Outcome, Style
from aegis.anonymizers.encode import given_mask
from aegis.anonymizers.method import at_least, within
from aegis.anonymizers.records import Records, distinct_rows
from aegis.arrays import Floats, Integers
from aegis.errors import PolicyError, require_known
from aegis.files import Progress
from aegis.masks import Identity, Level, Mask, Suppress, evaluate
from aegis.policy import Attribute, Policy
from aegis.privacy.dp import SampledPrivacy, sampled_privacy
from aegis.privacy.scheme_search import (
    SCHEME_SCORES,
    SchemeCells,
    SchemeScore,
    chooser,
    draw_scheme,
)
from aegis.summary.codes import encode
from aegis.summary.frequency import combine
from aegis.summary.leaves import leaves_of_level


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
        None of them may learn from the table. An attribute that you do not name gets a mask drawn
        from its candidates if `search` is above 0. Otherwise it stays unmasked if the policy lists
        `identity` or no candidates for it, or else gets its first candidate.
    search
        The part of epsilon to spend on a search for masks; 0 for no search. The policy must list
        candidates from the finest to the coarsest.
    steps
        Number of combinations of masks that the search draws.
    score
        Score by which the search compares masks: precision, loss (needs hierarchies), nu-entropy,
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
        require_known("score of safe-pub", self.score, SCHEME_SCORES)
        _ = self.privacy

    @property
    def privacy(self) -> SampledPrivacy:
        """Return the sampling rate and the smallest class size that guarantee delta and epsilon,
        without the part of epsilon that the search for masks spends.
        """
        rest = math.nextafter(self.epsilon - self.search, 0) if self.search else self.epsilon
        return sampled_privacy(rest, self.delta, self.rate)

    @property
    def searched_class(self) -> int:
        """Return from how many rows the search counts a class of the table as kept."""
        privacy = self.privacy
        return math.ceil(max(privacy.k, self.k) / privacy.rate)

    def check(self, records: Records) -> None:
        """Raise an error if the records are too few or too alike for k or l, or if a person may
        have several records.
        """
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
    """Draw a random sample, and leave out its classes of fewer than k records."""
    privacy = options.privacy
    with progress.step("Drawing records", len(records)):
        in_sample = random.random(len(records)) < privacy.rate
        _, classes = distinct_rows([a.codes for a in records.attributes])
        sizes = np.bincount(classes[in_sample], minlength=int(classes.max(initial=-1)) + 1)
        k = max(privacy.k, options.k)
        labels = np.where(in_sample & (sizes[classes] >= k), classes, -1)
    columns = {
        a.name: tuple(a.domain[code] for code in a.codes.tolist()) for a in records.attributes
    }
    small = int((in_sample & (labels < 0)).sum())
    return Outcome(
        labels,
        _notes(options, records, k, in_sample, small),
        {
            "epsilon": options.epsilon,
            "epsilon_search": options.search,
            "epsilon_sample": privacy.epsilon,
            "delta": privacy.delta,
            "rate": privacy.rate,
            "least_class": k,
            "drawn": int(in_sample.sum()),
            "in_small_classes": small,
        },
        columns,
    )


def _notes(
    options: SampledOptions, records: Records, k: int, in_sample: np.ndarray[Any, Any], small: int
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
        f"drawn with a probability of {privacy.rate:.6g}. {int(in_sample.sum()):,} of {len(records):,} "
        f"were drawn; {small:,} of these are left out, because their classes are smaller than {k:,}",
        "the guarantee does not cover other columns, the exact numbers of rows in this certificate, "
        "and choices that somebody made after looking at the table",
    )


_STREAM = 0x5AFE
"""Makes the draws of a search independent of those of the sample that has the same seed."""
Chain = tuple[Mask, ...]


def drawn_masks(
    table: pa.Table, policy: Policy, options: SampledOptions, seed: int, progress: Progress
) -> dict[str, Any] | None:
    """Draw a mask for each quasi-identifier by the differentially private search; return the masks
    as a policy writes them, or None if the options ask for no search.

    The search tries the policy's candidates from the last, the coarsest, to the first. Masks that
    the options name are not searched.

    Raises
    ------
    PolicyError
        A candidate learns from the table or is random, or the score needs a hierarchy that an
        attribute does not have.
    """
    if not options.search:
        return None
    fixed_masks = options.masks or {}
    quasi = policy.quasi_identifiers
    chains = [_chain(attribute, fixed_masks) for attribute in quasi]
    score = SCHEME_SCORES[options.score]
    targets = _targets(policy, quasi) if score.by_target else ()
    cells = scheme_cells(table, quasi, chains, score, options.searched_class, targets=targets)
    random = np.random.default_rng([seed, _STREAM])
    with progress.step("Drawing masks"):
        draw = draw_scheme(
            cells.heights,
            lambda scheme: score.value(cells, scheme),
            chooser(random.random),
            steps=options.steps,
            epsilon=options.search,
        )
    chosen = zip(quasi, chains, draw.scheme, strict=True)
    return {attribute.name: chain[number].spec() for attribute, chain, number in chosen}


def _chain(attribute: Attribute, fixed_masks: Mapping[str, Any]) -> Chain:
    """Return the masks to choose from: the fixed one, else the policy's candidates in their order."""
    if attribute.name in fixed_masks:
        return (given_mask(attribute, fixed_masks[attribute.name]) or Identity(),)
    chain = attribute.masks or (Identity(),)
    for mask in chain:
        if not mask.fitted or not mask.deterministic:
            why = "draws at random" if not mask.deterministic else "learns from the table"
            raise PolicyError(
                f"The search cannot use the candidate {mask} of {attribute.name!r}, because it {why}.",
                hint="Leave it out of the candidates. Levels, fixed edges, widths and listed values are "
                "allowed.",
            )
    return tuple(chain)


def scheme_cells(
    table: pa.Table,
    quasi: tuple[Attribute, ...],
    chains: list[Chain],
    score: SchemeScore,
    least: int,
    beyond: int = 0,
    targets: tuple[int, ...] = (),
) -> SchemeCells:
    """Return the distinct rows of a table as arrays, from which the search counts equivalence
    classes under any combination of masks.

    Parameters
    ----------
    table
        The table with unmasked quasi-identifiers.
    quasi, chains
        The attributes, and the masks of each from the finest to the coarsest.
    score
        The score of the search; the score `loss` needs the number of original values (leaves)
        behind each masked value.
    least
        A class counts as kept if it has at least this many rows.
    beyond
        Number of further rows that are not in the table; they count as left out.
    targets
        Indices of the attributes that the other attributes should predict.
    """
    codes, groups, shares = [], [], []
    for attribute, chain in zip(quasi, chains, strict=True):
        column, values = encode(table[attribute.name].combine_chunks())
        codes.append(column)
        groupings = evaluate(chain, values)
        groups.append(tuple(g.codes.astype(np.int64) for g in groupings))
        shares.append(
            tuple(
                _shares(attribute, mask, grouping.codes, grouping.masked_values)
                if score.by_leaves
                else np.zeros(len(values))
                for mask, grouping in zip(chain, groupings, strict=True)
            )
        )
    keys = combine(iter(codes), table.num_rows)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return SchemeCells(
        tuple(column[first] for column in codes),
        counts.astype(np.int64),
        tuple(groups),
        tuple(shares),
        tuple(tuple(map(_shows_nothing, chain)) for chain in chains),
        least,
        beyond,
        targets,
    )


def _targets(policy: Policy, quasi: tuple[Attribute, ...]) -> tuple[int, ...]:
    """Return the index of the label among the quasi-identifiers; refuse if it is none of them."""
    names = [attribute.name for attribute in quasi]
    label = policy.label.column if policy.label else None
    if label not in names:
        raise PolicyError(
            "The score 'classification' needs a label that is a quasi-identifier, because the guarantee "
            f"covers only these columns: {', '.join(names)}.",
            hint="Name a label in the policy, and give it the role quasi-identifier; or choose another "
            "score.",
        )
    return (names.index(label),)


def _shows_nothing(mask: Mask) -> bool:
    """Return whether a mask turns every possible value into the same output."""
    if isinstance(mask, Level) and mask.hierarchy is not None:
        return mask.level > 0 and len(mask.hierarchy.groups(mask.level)) == 1
    return isinstance(mask, Suppress)


def _shares(attribute: Attribute, mask: Mask, codes: Integers, masked_values: pa.Array) -> Floats:
    """Return which share of the hierarchy's values is masked like each value, shape (V,)."""
    if isinstance(mask, Suppress):
        return np.ones(len(codes))
    hierarchy = attribute.hierarchy
    level = 0 if isinstance(mask, Identity) else mask.level if isinstance(mask, Level) else None
    if hierarchy is None or level is None:
        raise PolicyError(
            f"The score 'loss' needs levels of a hierarchy, and {mask} of {attribute.name!r} is not one.",
            hint="Choose the score precision, or candidates that are levels of a hierarchy.",
        )
    return leaves_of_level(hierarchy, level, masked_values)[codes] / len(hierarchy.rows)


SAFE_PUB = Anonymizer(
    "safe-pub",
    "Releases a masked random sample without small classes, with differential privacy.",
    "Li, Qardaji and Su 2012; Bild, Kuhn and Prasser 2018",
    SampledOptions,
    Style.GENERALISED,
    "N log N",
    False,
    sample_records,
    sampled=True,
    masks=drawn_masks,
)
