"""Reduce a symmetric matrix to tridiagonal form, to solve equations quickly for many penalties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aegis.arrays import Floats
from aegis.errors import InternalError


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """The tridiagonal form T = Q' A Q of a symmetric matrix A, shape (d, d), with Q orthogonal, and
    Q' times the right-hand sides of equations.

    Reference: Elden, Algorithms for the regularization of ill-conditioned least squares problems,
    BIT 17, 1977.

    Attributes
    ----------
    diagonal, beside
        The diagonal and the subdiagonal of T, shapes (d,) and (d - 1,).
    right
        Q' times the k right-hand sides, shape (d, k).
    """

    diagonal: Floats
    beside: Floats
    right: Floats

    @classmethod
    def of(cls, matrix: Floats, right: Floats) -> Tridiagonal:
        """Reduce `matrix`, which is overwritten, and right-hand sides, shape (d, k), to tridiagonal
        form.

        Raises
        ------
        InternalError
            LAPACK reports a failure.
        """
        from scipy.linalg.lapack import dormqr, dsytrd, dsytrd_lwork

        room, _ = dsytrd_lwork(len(matrix), lower=1)
        # A symmetric matrix is its own transpose, which LAPACK reads without a copy.
        factor, diagonal, beside, scales, info = dsytrd(
            matrix.T, lower=1, lwork=int(room), overwrite_a=1
        )
        _check(info, "dsytrd")
        turned = np.array(right)
        if len(matrix) > 1:  # the first row and column stay as they are
            turned[1:], _, info = dormqr(
                "L", "T", factor[1:, :-1], scales, turned[1:], 64 * max(right.shape)
            )
            _check(info, "dormqr")
        return cls(diagonal, beside, turned)

    def effective(self, penalty: float, *, expected: bool = False) -> float:
        """Return trace(T (T + p I)^-1) for the penalty p > 0; negative eigenvalues count as 0.
        `expected` says that the matrix comes from counts that are means over noise; only such a
        matrix may have negative eigenvalues.

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
        down, _, failed = dpttrf(shifted, self.beside)
        up, _, beneath = dpttrf(shifted[::-1], self.beside[::-1])
        if expected or failed or beneath:  # no covariance, perhaps: what is negative says nothing
            spread, info = dsterf(self.diagonal, self.beside)
            _check(info, "dsterf")
            spread = np.maximum(spread, 0.0)
            return float((spread / (spread + penalty)).sum())
        inverse = 1.0 / (down + up[::-1] - shifted)
        return float(len(shifted) - penalty * inverse.sum())

    def solve(self, penalty: float) -> Floats:
        """Return (T + p I)^-1 `right`, for the tridiagonal matrix T (`self`) and a `penalty` p for
        which T + p I is positive definite.
        """
        from scipy.linalg.lapack import dptsv

        if len(self.diagonal) == 1:
            return self.right / (self.diagonal + penalty)
        *_, solved, info = dptsv(self.diagonal + penalty, self.beside, self.right)
        _check(info, "dptsv")
        answer: Floats = solved
        return answer


def _check(info: int, routine: str) -> None:
    if info:
        raise InternalError(f"LAPACK {routine} failed with code {info}.")
