"""Compute codes of cells: a few numbers per cell that describe its association with the label.

Every figure here is computed from protected label tables (rows by cell and class), so it costs no
budget and reveals nothing more. The codes of an attribute span the associations of all its
candidate masks with the label. So one small matrix of moments determines the covariance between any
two masked attributes, even for masks that were never counted together (section on `noise` in
docs/protection.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.measures import UNPOOLED as PENALTIES
from aegis.measures.target_coded import believed, fitted_freedom
from aegis.safe.protect.model import GRID

CLEAR = 1.3
"""A group counts as informative if its rows are more than this multiple of their standard error."""
LEAST_SCALE = 0.1
"""A dimension is left out if its scale is below this share of the scale of the first dimension."""


@dataclass(frozen=True, eq=False)
class Explained:
    """How strongly a grouping of an attribute's cells is associated with the label classes.

    Attributes
    ----------
    codes
        For each of the G groups and C classes, shape (G, C): the share of the class in the group,
        minus the share of the class in the table. This deviation is shrunk towards 0 and divided by
        the square root of the share in the table.
    covariance
        Covariance of the same deviations over groups, without shrinkage, shape (C, C). The
        contribution that errors in the counts are expected to make is subtracted. The trace of the
        covariance is the mean square contingency.
    believed
        For each of the P penalties in `PENALTIES`, the share of the association that models with
        this penalty explain, shape (P,).
    freedom
        Degrees of freedom of these models, from groups with clearly more rows than noise, shape
        (P,).
    skewness
        Third moment of the codes for the last class, after the codes are divided by their standard
        deviation.
    """

    codes: Floats
    covariance: Floats
    believed: Floats
    freedom: Floats
    skewness: float


def explained(table: Floats, groups: Ints, shares: Floats, noise: Floats, rows: float) -> Explained:
    """Compute how strongly a grouping of an attribute's protected cells is associated with the
    label classes.

    Parameters
    ----------
    table
        Protected number of rows in each of the K cells and C classes, shape (K, C).
    groups
        Group of each cell, shape (K,).
    shares
        Share of each class, shape (C,).
    noise
        Variance that protection adds to each count of a cell, shape (K, C).
    rows
        Number of labelled rows.
    """
    size = int(groups.max(initial=-1)) + 1
    width = len(shares)
    grouped = np.zeros((size, width))
    np.add.at(grouped, groups, table)
    blur = np.zeros((size, width))
    np.add.at(blur, groups, noise)
    count = grouped.sum(axis=1)
    clear = count > CLEAR * np.sqrt(blur.sum(axis=1)) + 0.5
    count = np.maximum(count, 1.0)
    root = np.sqrt(shares)
    deviation = (grouped - count[:, None] * shares) / root * clear[:, None]
    # The error of a deviation: that of its own count, less its share of the group's.
    centre = (np.eye(width) - np.outer(shares, np.ones(width))) / root[:, None]
    raw = (deviation.T / count) @ deviation / rows
    added = (blur * (clear / count)[:, None]).sum(axis=0)
    covariance = _positive(raw - (centre * added) @ centre.T / rows)
    strength = float(np.trace(covariance)) * rows / max(float((count * clear).sum()), 1.0)
    of_group = blur @ (centre**2).sum(axis=0)
    trust = strength / np.maximum(strength + of_group / count**2, 1e-300)
    codes = deviation / count[:, None] * trust[:, None]
    speaking = np.where(clear, count, 0.0)
    alone = ((deviation**2).sum(axis=1) - of_group) / count * clear
    if alone.sum() <= 0:
        alone = speaking
    # Shrunken by the root, codes have the variance that is left once noise is taken off.
    spread = deviation[:, -1] / count * np.sqrt(trust)
    variance = float(covariance[-1, -1])
    third = float((speaking * spread**3).sum()) / rows
    return Explained(
        codes,
        covariance,
        believed=_shares_believed(count, alone),
        freedom=np.array([fitted_freedom(speaking, penalty) for penalty in PENALTIES]),
        skewness=third / variance**1.5 if variance > 0 else 0.0,
    )


def _shares_believed(count: Floats, strength: Floats) -> Floats:
    """Return, for each of P ridge penalties, the share of the association that models explain,
    shape (P,). `count` and `strength` are the rows and the strength of each of G groups, shape
    (G,).
    """
    total = float(strength.sum())
    if total <= 0:
        return np.ones(len(PENALTIES))
    shares = np.array([believed(count, strength, penalty) / total for penalty in PENALTIES])
    clipped: Floats = np.clip(shares, 0.0, 1.0)
    return clipped


def _positive(matrix: Floats) -> Floats:
    """Return the nearest positive semidefinite matrix: negative eigenvalues become 0."""
    values, vectors = np.linalg.eigh(matrix)
    nearest: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return nearest


def weights_of(table: Floats, rows: float) -> Floats:
    """Return each cell's share of all rows, shape (K,), at least 0, from the rows by cell and
    class, shape (K, C).
    """
    shares: Floats = np.maximum(table.sum(axis=1), 0.0) / rows
    return shares


def code_cells(
    table: Floats, groupings: Sequence[Ints], shares: Floats, noise: Floats, rows: float
) -> Ints:
    """Compute q numbers (codes) for each of the K cells of an attribute, shape (K, q), in steps of
    `GRID`. They describe how the cells are associated with the label. `table` has the protected
    rows by cell and class, shape (K, C), and `noise` their variances; `groupings` has the group of
    each cell under each candidate mask, and `shares` the share of each class. `rows` is the number
    of labelled rows.

    The codes are the first q principal components of the cells' codes under all masks, weighted by
    rows. The first component is common to the masks; the others distinguish the masks. Each
    component is scaled to variance 1, and then multiplied by the square root of r. Here r is the
    singular value of this component, divided by the singular value of the first component. So weak
    components use little of the privacy budget.
    """
    stacked = np.hstack(
        [explained(table, groups, shares, noise, rows).codes[groups] for groups in groupings]
    )
    weight = np.sqrt(weights_of(table, rows))[:, None]
    _, scales, directions = np.linalg.svd(weight * stacked, full_matrices=False)
    if not len(scales) or scales[0] <= 1e-12:
        return np.zeros((len(table), 0), dtype=np.int64)
    # With two classes, at most 3 codes describe a cell; with three classes 4, and else 5.
    most = 3 + min(max(len(shares) - 2, 0), 2)
    number = min(most, int((scales > LEAST_SCALE * scales[0]).sum()))
    components = stacked @ directions[:number].T / scales[:number]
    damped = components * np.sqrt(scales[:number] / scales[0])
    # The sign of a component is arbitrary: its largest entry is made positive.
    largest = np.abs(damped).argmax(axis=0)
    damped *= np.where(damped[largest, np.arange(number)] < 0, -1.0, 1.0)
    coded: Ints = np.trunc(damped * GRID).astype(np.int64)
    return coded


def coefficients(codes: Floats, target: Floats, weight: Floats) -> Floats:
    """Regress the codes of cells under one mask on the q codes that describe the cells under all
    masks; return the coefficients, shape (q, C).

    Parameters
    ----------
    codes
        The q codes of each of the K cells, shape (K, q).
    target
        The codes of the K cells under the mask, one for each of the C classes, shape (K, C).
    weight
        Share of the rows of each cell, shape (K,).
    """
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(root * codes, root * target, rcond=1e-6)[0].astype(np.float64)


def norms_of(codes: Sequence[Ints], table: Sequence[Ints]) -> float:
    """Compute from the label tables (rows by cell and class) how long the vector of a row's codes
    is (the numbers that describe its cells, for all attributes): the mean squared length over rows.
    """
    total = 0.0
    for own, counts in zip(codes, table, strict=True):
        weight = np.maximum(counts.sum(axis=1), 0).astype(np.float64)
        squares = (own.astype(np.float64) ** 2).sum(axis=1)
        total += float(weight @ squares) / max(float(weight.sum()), 1.0)
    return total
