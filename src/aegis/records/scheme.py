"""The differentially private search for the masks of quasi-identifiers, for the method `safe-pub`.

Besides the rows, the search reads the candidates of the policy, in their order, and the leaves of
hierarchies. For the guarantee, these must not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.anonymizers.base import Anonymizer, Style
from aegis.anonymizers.masked_values import given_mask
from aegis.arrays import Floats, Integers
from aegis.errors import PolicyError
from aegis.masks import Identity, Level, Mask, Suppress, evaluate
from aegis.policy import Attribute, Policy
from aegis.privacy.scheme_search import (
    SCHEME_SCORES,
    SchemeCells,
    SchemeScore,
    chooser,
    draw_scheme,
)
from aegis.progress import Progress
from aegis.records.safe_pub import SampledOptions, sample_records
from aegis.summary.codes import encode
from aegis.summary.frequency import combine

_STREAM = 0x5AFE
"""Makes the draws of a search independent of those of the sample that has the same seed."""
Chain = tuple[Mask, ...]


def drawn_masks(
    table: pa.Table, policy: Policy, options: SampledOptions, seed: int, progress: Progress
) -> dict[str, Any] | None:
    """Draw a mask for each quasi-identifier by the differentially private search; return the masks
    as a policy writes them, or None if the options ask for no search.

    Parameters
    ----------
    table
        The table with unmasked quasi-identifiers.
    policy
        The policy; the search tries its candidates from the last, the coarsest, to the first.
    options
        Masks of attributes that are not searched, the score, the budget and the number of draws.
    seed
        Seed of the random draws.
    progress
        Receives one step.

    Raises
    ------
    PolicyError
        A candidate learns from the table or is random, or the score needs a hierarchy that an
        attribute does not have.
    """
    if not options.search:
        return None
    given = options.masks or {}
    quasi = policy.quasi_identifiers
    chains = [_chain(attribute, given) for attribute in quasi]
    score = SCHEME_SCORES[options.score]
    targets = _targets(policy, quasi) if score.by_target else ()
    cells = scheme_cells(table, quasi, chains, score, options.searched_class, targets=targets)
    random = np.random.default_rng([seed, _STREAM])
    with progress.step("Drawing masks"):
        drawn = draw_scheme(
            cells.heights,
            lambda scheme: score.value(cells, scheme),
            chooser(random.random),
            steps=options.steps,
            epsilon=options.search,
        )
    chosen = zip(quasi, chains, drawn.scheme, strict=True)
    return {attribute.name: chain[number].spec() for attribute, chain, number in chosen}


def _chain(attribute: Attribute, given: Mapping[str, Any]) -> Chain:
    """Return the masks of an attribute among which the search chooses, in the order of the policy's
    candidates: only the mask in `given` if there is one.
    """
    if attribute.name in given:
        return (given_mask(attribute, given[attribute.name]) or Identity(),)
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
    """Return the arrays from which a search counts the equivalence classes of a table under any of
    the masks.

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
                _shares(attribute, mask, grouping.codes, grouping.shown)
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
    """Return the index of the label among the quasi-identifiers, as the only entry: the attribute
    that others should predict. Raise `PolicyError` if the label is not one of them.
    """
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


def _shares(attribute: Attribute, mask: Mask, codes: Integers, shown: pa.Array) -> Floats:
    """Return, for each of V values, the share of the hierarchy's values that have the same masked
    value, shape (V,). `codes` has the index in `shown` of each value's masked value.
    """
    if isinstance(mask, Suppress):
        return np.ones(len(codes))
    hierarchy = attribute.hierarchy
    level = 0 if isinstance(mask, Identity) else mask.level if isinstance(mask, Level) else None
    if hierarchy is None or level is None:
        raise PolicyError(
            f"The score 'loss' needs levels of a hierarchy, and {mask} of {attribute.name!r} is not one.",
            hint="Choose the score precision, or candidates that are levels of a hierarchy.",
        )
    leaves = hierarchy.groups(level)
    names = [None if value is None else str(value) for value in shown.to_pylist()]
    sizes = np.array([len(leaves.get(name, (None,))) for name in names], dtype=np.float64)
    return sizes[codes] / len(hierarchy.rows)


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
