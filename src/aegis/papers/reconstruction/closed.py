"""Compute the result of iterative proportional fitting (IPF) for one mask in closed form."""

from __future__ import annotations

import numpy as np

from aegis.arrays import Floats
from aegis.errors import PolicyError
from aegis.measures.checks import group_sums
from aegis.papers.reconstruction.evidence import Evidence, MaskedJoint, check_sizes
from aegis.papers.reconstruction.result import Reconstruction

THEOREM_1 = (
    "One deterministic mask: atom and label are independent given the masked value, so every "
    "association measure of this table equals that of the masked table and ranks nothing "
    "(Theorem 1)."
)


def closed_form(evidence: Evidence) -> Reconstruction:
    """Return the table closest to uniform that agrees with the joint counts of one mask.

    Let F(a,y) be the number of rows with the unmasked value (atom) a and the class y, f(a) the
    number of rows with a, and M(a) the group of a under the mask. Then

        F(a,y) = f(a) F(M(a),y) / f(M(a))

    if the histogram is known (AEGIS+1D). If it is not known (AEGIS-1D), F(a,y) is F(M(a),y) divided
    by the number of atoms in M(a). The result is the fixed point of iterative proportional fitting
    (IPF) from a uniform seed, which IPF reaches in one sweep.

    Parameters
    ----------
    evidence
        Evidence with the joint counts of exactly one deterministic mask. The function uses the
        histogram if it is known, and ignores noise masks.

    Returns
    -------
    Reconstruction
        Number of rows for each of the V atoms (unmasked values) and C classes, shape (V, C). An
        atom without rows in the histogram stays empty.

    Raises
    ------
    PolicyError
        The evidence has the joint counts of no deterministic mask, or of several.
    DataError
        The histogram contradicts the joint counts; the message names the group.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), settings AEGIS+1D and AEGIS-1D.
    """
    mask = the_only_mask(evidence, "closed-form")
    table = spread(mask, evidence.histogram)
    return Reconstruction(
        table, "closed-form", residual=evidence.residual(table), notes=(THEOREM_1,)
    )


def the_only_mask(evidence: Evidence, method: str) -> MaskedJoint:
    """Return the joint counts of the only deterministic mask of the evidence. Raise `PolicyError`,
    whose message names `method`, if there are none or several.
    """
    if len(evidence.masked) != 1:
        names = ", ".join(mask.name for mask in evidence.masked) or "none"
        raise PolicyError(
            f"Method {method!r} works from exactly one masked joint; given: {names}.",
            hint="Choose one (--mask NAME on the command line, Evidence.only(name) in Python), or "
            "use method 'all-evidence'.",
        )
    return evidence.masked[0]


def spread(mask: MaskedJoint, histogram: Floats | None) -> Floats:
    """Divide the counts of each group among the unmasked values (atoms) of the group. Return the
    table of V atoms by C classes, shape (V, C).

    Counts are divided in proportion to the histogram, or equally if there is no histogram. Raise
    `DataError` if a group has different totals in the histogram and in the joint counts.
    """
    if histogram is None:
        weights = np.ones(len(mask.codes))
        sizes = group_sums(mask.codes, weights, mask.groups)
    else:
        weights, sizes = histogram, check_sizes(mask, histogram)
    shares = np.divide(weights, sizes[mask.codes], out=np.zeros(len(weights)), where=weights > 0)
    return shares[:, None] * mask.joint[mask.codes]
