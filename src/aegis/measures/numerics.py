"""Numerical methods that several measures share: systems of equations whose matrix is a covariance
matrix plus a ridge, by Cholesky factorisation (LAPACK); tridiagonal forms, to solve equations
quickly for many penalties; and the normal distribution function with its inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from aegis.arrays import Array, Floats
from aegis.errors import InternalError


def factor(matrix: Floats, ridge: float) -> Floats:
    """Return the upper Cholesky factor of `matrix` + `ridge` * I, from its lower triangle."""
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
    """Return the solutions of equations, shape (d, k), from the upper Cholesky factor of their
    matrix; k may be 0.
    """
    from scipy.linalg.lapack import dpotrs

    return dpotrs(factorised, right, lower=0)[0] if right.size else right


def solved(matrix: Floats, right: Floats, ridges: Sequence[float]) -> Floats:
    """Return (matrix + r I)^-1 `right` for each of P ridges r, shape (P, d, k), from the lower
    triangle of the matrix.
    """
    return np.stack([solve(factor(matrix, ridge), right) for ridge in ridges])


def inverted(matrix: Floats, ridge: float) -> Floats:
    """Return the inverse (matrix + r I)^-1 of a symmetric matrix."""
    from scipy.linalg.lapack import dpotri

    if not len(matrix):
        return matrix
    inverse, info = dpotri(factor(matrix, ridge), lower=0, overwrite_c=1)
    if info:
        raise InternalError(f"LAPACK dpotri failed with code {info}: the counts are not counts.")
    # LAPACK leaves zeros below the diagonal.
    symmetric: Floats = inverse + inverse.T
    symmetric.flat[:: len(symmetric) + 1] *= 0.5
    return symmetric


def left_by_others(matrix: Floats, ridge: float, blocks: Sequence[slice]) -> list[Floats]:
    """Return, for each block of rows of a symmetric matrix, the Schur complement of all other rows
    in `matrix` + `ridge` * I, from the lower triangle. It is the inverse of the block in the
    inverse of this sum.

    Examples
    --------
    >>> import numpy as np
    >>> left_by_others(np.array([[3.0, 0.0], [2.0, 3.0]]), 1.0, [slice(0, 1), slice(1, 2)])
    [array([[3.]]), array([[3.]])]
    """
    from scipy.linalg.lapack import dtrtri

    if not len(matrix):
        return [matrix for _ in blocks]
    # The inverse is R R' for the inverse R of the Cholesky factor, which has zeros below its diagonal.
    root, info = dtrtri(factor(matrix, ridge), lower=0, overwrite_c=1)
    if info:
        raise InternalError(f"LAPACK dtrtri failed with code {info}: the counts are not counts.")
    parts = [root[block, block.start :] for block in blocks]
    return [inverted(part @ part.T, 0.0) for part in parts]


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """The tridiagonal form T = Q' A Q of a symmetric matrix A with d rows, where Q is orthogonal,
    and Q' times the right-hand sides of equations.

    Reference: Elden, Algorithms for the regularization of ill-conditioned least squares problems,
    BIT 17, 1977.

    Attributes
    ----------
    diagonal, subdiagonal
        The diagonal and the subdiagonal of T, shapes (d,) and (d - 1,).
    right
        Q' times the k right-hand sides, shape (d, k).
    """

    diagonal: Floats
    subdiagonal: Floats
    right: Floats

    @classmethod
    def of(cls, matrix: Floats, right: Floats) -> Tridiagonal:
        """Reduce a symmetric `matrix`, which is overwritten, and right-hand sides, shape (d, k), to
        this form.

        Raises
        ------
        InternalError
            LAPACK reports a failure.
        """
        from scipy.linalg.lapack import dormqr, dsytrd, dsytrd_lwork

        room, _ = dsytrd_lwork(len(matrix), lower=1)
        # A symmetric matrix is its own transpose, which LAPACK reads without a copy.
        factor, diagonal, subdiagonal, scales, info = dsytrd(
            matrix.T, lower=1, lwork=int(room), overwrite_a=1
        )
        _check(info, "dsytrd")
        turned = np.array(right)
        if len(matrix) > 1:  # the first row and column stay as they are
            turned[1:], _, info = dormqr(
                "L", "T", factor[1:, :-1], scales, turned[1:], 64 * max(right.shape)
            )
            _check(info, "dormqr")
        return cls(diagonal, subdiagonal, turned)

    def effective(self, penalty: float, *, expected: bool = False) -> float:
        """Return trace(T (T + p I)^-1) for this tridiagonal matrix T and the penalty p > 0;
        negative eigenvalues count as 0. `expected` says that the matrix comes from counts that are
        means over noise; only such a matrix may have negative eigenvalues.

        The trace is d minus p times the trace of the inverse. The diagonal of the inverse follows
        from the pivots of two factorisations, one from above (down) and one from below (up): its
        entries are

            1 / (down_i + up_i - t_i),

        where t_i are the diagonal entries of T + p I (Meurant, A review on the inverse of symmetric
        tridiagonal and block tridiagonal matrices, SIAM J. Matrix Anal. Appl. 13, 1992).
        """
        from scipy.linalg.lapack import dpttrf, dsterf

        shifted = self.diagonal + penalty
        if len(shifted) == 1:
            return float(self.diagonal[0] / shifted[0])
        down, _, failed = dpttrf(shifted, self.subdiagonal)
        up, _, beneath = dpttrf(shifted[::-1], self.subdiagonal[::-1])
        if expected or failed or beneath:  # no covariance, perhaps: what is negative says nothing
            spread, info = dsterf(self.diagonal, self.subdiagonal)
            _check(info, "dsterf")
            spread = np.maximum(spread, 0.0)
            return float((spread / (spread + penalty)).sum())
        inverse = 1.0 / (down + up[::-1] - shifted)
        return float(len(shifted) - penalty * inverse.sum())

    def solve(self, penalty: float) -> Floats:
        """Return (T + p I)^-1 `right`, for a penalty p for which T + p I is positive definite."""
        from scipy.linalg.lapack import dptsv

        if len(self.diagonal) == 1:
            return self.right / (self.diagonal + penalty)
        *_, solved, info = dptsv(self.diagonal + penalty, self.subdiagonal, self.right)
        _check(info, "dptsv")
        answer: Floats = solved
        return answer


def _check(info: int, routine: str) -> None:
    if info:
        raise InternalError(f"LAPACK {routine} failed with code {info}.")


_TWICE_THE_TAIL = np.frompyfunc(math.erfc, 1, 1)
_INVERSE = np.frompyfunc(NormalDist().inv_cdf, 1, 1)


def cumulative(values: Array | float) -> Floats:
    """Return Phi of each value, the probability that a standard normal variable is below it.
    Infinities are allowed, and NaN stays NaN.

    It uses the standard library. SciPy's special functions take longer to load than a small ranking
    takes to compute, and they are no faster on so few values.

    Examples
    --------
    >>> from aegis.measures.numerics import cumulative
    >>> cumulative([0.0, 1.959963984540054]).round(6).tolist()
    [0.5, 0.975]
    """
    scaled = np.asarray(values, dtype=np.float64) / -math.sqrt(2.0)
    return 0.5 * np.asarray(_TWICE_THE_TAIL(scaled), dtype=np.float64)


def quantile(shares: Array | float) -> Floats:
    """Return the quantile of the standard normal distribution for each share above 0 and below 1.

    Examples
    --------
    >>> from aegis.measures.numerics import quantile
    >>> quantile([0.5, 0.975]).round(6).tolist()
    [0.0, 1.959964]
    """
    return np.asarray(_INVERSE(np.asarray(shares, dtype=np.float64)), dtype=np.float64)
