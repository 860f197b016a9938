"""Compute expected counts under noise masks from their channels, without drawing rows.

A report is the noisy value that a mask shows. Let K be the channel of a mask, which has the
probabilities of reports for each value, and F(A,Y) the joint counts of the attribute A and the
label Y. The expected joint counts of reports and label are K' F(A,Y). The expected joint counts of
the reports of two attributes i and j are K_i' G_y K_j for class y, where G_y are the joint counts
of their values (theory.md, section 2). Scores computed from these counts are scores of expected
counts, not expected scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aegis.arrays import Array, Floats
from aegis.errors import InternalError, PolicyError
from aegis.masks import Mask, NoiseMask, channel_blocks
from aegis.policy import Policy
from aegis.summary.levels import neighbours, pool
from aegis.summary.model import AttributeSummary, Candidate


def expected_reports(attribute: AttributeSummary, candidate: Candidate, table: Array) -> Floats:
    """Return the expected number of rows by noisy value and class after a noise mask, shape (R, C),
    for R noisy values and C classes. `table` has the number of rows by true value and class.
    """
    mask = _noise(candidate)
    size = len(mask.reports(attribute.data))
    expected = np.zeros((size, table.shape[1]))
    for rows, channel in channel_blocks(mask, attribute.data, size):
        expected += channel.T @ table[rows]
    return expected


def level_channel(attribute: AttributeSummary, candidate: Candidate, max_levels: int) -> Floats:
    """Return, for each of A atoms (sets of values that no mask distinguishes), the probability that
    the noisy value of a row has each of L levels, shape (A, L). Each row of the result sums to 1.

    A level is a noisy value, unless there are more than `max_levels`. Then neighbouring noisy
    values are pooled into levels with about equally many expected rows, if the mask is ordered;
    otherwise the rarest noisy values share a level. Probabilities are averaged over the values of
    an atom, weighted by the rows of each value. An atom has several values only if the attribute
    has more values than levels.
    """
    mask = _noise(candidate)
    counts = attribute.counts.astype(np.float64)
    weight = counts + (np.bincount(attribute.atoms, weights=counts)[attribute.atoms] == 0)
    rows = expected_reports(attribute, candidate, attribute.counts[:, None])[:, 0]
    if mask.ordered:
        level = neighbours(rows, max_levels)
    else:
        level = pool(np.arange(len(rows), dtype=np.int32), rows, max_levels)
    by_level = np.zeros((attribute.n_atoms, int(level.max()) + 1))
    for part, channel in channel_blocks(mask, attribute.data, len(rows)):
        pooled = np.zeros((channel.shape[0], by_level.shape[1]))
        np.add.at(pooled.T, level, channel.T)
        np.add.at(by_level, attribute.atoms[part], pooled * weight[part, None])
    shares: Floats = by_level / by_level.sum(axis=1, keepdims=True)
    return shares


def check_noise(policy: Policy, masks: Mapping[str, Mask | None] | None = None) -> None:
    """Raise `PolicyError` if noise would change the label or an attribute that the rule checks.

    Parameters
    ----------
    policy
        The policy with the label and the rule.
    masks
        The masks of a release; by default, all candidates of the policy.
    """
    listed = (
        [(a.name, mask) for a in policy.attributes.values() for mask in a.masks]
        if masks is None
        else list(masks.items())
    )
    for name, mask in listed:
        if mask is None or mask.deterministic:
            continue
        if name == policy.label.column:
            raise _refused(name, mask, "the label is what all scores are compared with")
        if name in policy.privacy.sensitive:
            raise _refused(name, mask, "the privacy rule counts the attribute's true values")
        if policy.label.is_number:
            why = "no R2 is expected of noise, and the label is a number to predict"
            raise _refused(name, mask, why)


def _refused(attribute: str, mask: Mask, why: str) -> PolicyError:
    return PolicyError(
        f"Mask {str(mask)!r} of {attribute!r} draws its values at random, but {why}.",
        hint="Give it masks that show equal values in the same way.",
    )


def _noise(candidate: Candidate) -> NoiseMask:
    if candidate.noise is None:
        raise InternalError(f"Mask {str(candidate.mask)!r} is not a noise mask.")
    return candidate.noise
