"""Solve systems of equations whose matrix is a covariance matrix plus a ridge, by Cholesky
factorisation (LAPACK).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aegis.arrays import Floats
from aegis.errors import InternalError


def factor(matrix: Floats, ridge: float) -> Floats:
    """Return the upper Cholesky factor of `matrix` + `ridge` * I. Only the lower triangle of the
    matrix is read.
    """
    from scipy.linalg.lapack import dpotrf

    if not len(matrix):
        return matrix
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += ridge
    # LAPACK reads the transpose, whose upper triangle it factorises faster than a lower one.
    factorised, info = dpotrf(shifted.T, lower=0, overwrite_a=1)
    if info:
        raise InternalError(f"LAPACK dpotrf failed with code {info}: the counts are not counts.")
    upper: Floats = factorised
    return upper


def solve(factorised: Floats, right: Floats) -> Floats:
    """Return the solutions of linear equations, given the upper Cholesky factor of their matrix,
    shape (d, d). `right` has the k right-hand sides, shape (d, k); k may be 0.
    """
    from scipy.linalg.lapack import dpotrs

    return dpotrs(factorised, right, lower=0)[0] if right.size else right


def solved(matrix: Floats, right: Floats, ridges: Sequence[float]) -> Floats:
    """Solve (matrix + r I) X = `right` for each of P ridges r; return the solutions X, shape (P, d,
    k). `right` has k right-hand sides, shape (d, k), and `matrix` has shape (d, d).

    Only the lower triangle of the matrix is read.
    """
    return np.stack([solve(factor(matrix, ridge), right) for ridge in ridges])


def inverted(matrix: Floats, ridge: float) -> Floats:
    """Return the inverse (matrix + r I)^-1 for a symmetric matrix, shape (d, d), and a ridge r."""
    from scipy.linalg.lapack import dpotri

    if not len(matrix):
        return matrix
    inverse, info = dpotri(factor(matrix, ridge), lower=0, overwrite_c=1)
    if info:
        raise InternalError(f"LAPACK dpotri failed with code {info}: the counts are not counts.")
    # LAPACK leaves zeros below the diagonal.
    whole: Floats = inverse + inverse.T
    whole[np.diag_indices_from(whole)] *= 0.5
    return whole
