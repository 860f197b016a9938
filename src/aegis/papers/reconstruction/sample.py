"""Draw original values at random: the comparator SAMPLING of the AEGIS paper."""

from __future__ import annotations

import numpy as np

from aegis.errors import DataError
from aegis.papers.reconstruction.closed import the_only_mask
from aegis.papers.reconstruction.evidence import Evidence, aggregate
from aegis.papers.reconstruction.result import Reconstruction


def sampling(evidence: Evidence, *, seed: int) -> Reconstruction:
    """Draw an original value for each masked row, and return the counts by value and label.

    Original values are drawn with replacement from those that the masked value may represent. If
    the histogram is known, they have the probabilities of the histogram; otherwise, they are
    equally likely. The expected counts are the result of `closed_form`, which contains no
    information on the order of configurations (Theorem 1 in theory.md). So the order of
    configurations by drawn counts is only noise.

    Parameters
    ----------
    evidence
        Evidence with the joint counts of exactly one mask and the label, as integers.
    seed
        Seed of the draw.

    Returns
    -------
    Reconstruction
        Integer counts of V original values and C classes, shape (V, C). They agree with the counts
        of masked values exactly, and with the histogram only on average.

    Raises
    ------
    PolicyError
        The evidence has the joint counts of no mask, or of several masks.
    DataError
        A count is not an integer.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), comparator SAMPLING.
    """
    mask = the_only_mask(evidence, "sampling")
    if (mask.joint != np.round(mask.joint)).any():
        raise DataError(
            f"The contingency table of mask {mask.name!r} has fractions, but sampling draws whole rows.",
            hint="Round the table first (controlled_rounding).",
        )
    histogram = evidence.histogram
    weights = np.ones(evidence.atoms) if histogram is None else histogram
    generator = np.random.default_rng(seed)
    table = np.zeros((evidence.atoms, evidence.labels))
    order = np.argsort(mask.codes, kind="stable")
    bounds = np.searchsorted(mask.codes[order], np.arange(mask.groups + 1))
    for group in np.flatnonzero(mask.joint.any(axis=1)):
        members = order[bounds[group] : bounds[group + 1]]
        likely = weights[members]
        wanted = mask.joint[group].astype(np.int64)
        table[members] = generator.multinomial(wanted, likely / likely.sum()).T
    return Reconstruction(
        table,
        "sampling",
        residual=float(np.abs(aggregate(mask.codes, table, mask.groups) - mask.joint).max()),
        notes=("One random draw; in expectation it equals the closed form (Theorem 1).",),
    )
