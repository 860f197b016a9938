"""Reduce a symmetric matrix to band form by matrix products, to solve equations for many penalties.

The reduction to tridiagonal form reads the whole matrix once per column, so its speed is limited by
memory bandwidth. The reduction to a band of some tens of columns consists of matrix products, which
are faster (Bischof, Lang and Sun, A framework for symmetric band reduction, ACM TOMS 26, 2000). The
equations of a band matrix are solved in about the time to read it. The trace of its inverse follows
from the pivot blocks of two eliminations, from above and from below, as for a tridiagonal matrix
(Meurant 1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aegis.errors import InternalError

Floats = npt.NDArray[np.float64]

WIDTH = 64
"""Number of columns of the band: more columns make larger products, but the band costs more to solve."""
FROM = 1_536
"""Number of rows from which a band form is faster to reach than tridiagonal form."""
_STRIPE = 256
"""Number of rows that are rotated at a time."""


@dataclass(frozen=True, eq=False)
class Banded:
    """B = Q' A Q, block tridiagonal, for a symmetric A of shape (d, d).

    Attributes
    ----------
    blocks
        The diagonal blocks. All have WIDTH rows, except the last, which may have fewer.
    beside
        For each diagonal block except the last, the block below it.
    right
        Q' times the right-hand sides, shape (d, k).
    """

    blocks: tuple[Floats, ...]
    beside: tuple[Floats, ...]
    right: Floats

    @classmethod
    def of(cls, matrix: Floats, right: Floats) -> Banded:
        """Reduce `matrix`, which is overwritten, and right-hand sides (d, k) to band form."""
        turned = np.array(right)
        blocks, beside = [], []
        room = np.empty(len(matrix) * _STRIPE)
        for start in range(0, len(matrix), WIDTH):
            rest = matrix[start:, start:]
            corner = np.tril(rest[:WIDTH, :WIDTH])
            blocks.append(corner + np.tril(corner, -1).T)
            if len(rest) <= WIDTH:
                break
            if len(rest) <= 2 * WIDTH:  # what is left is a block as it stands
                beside.append(rest[WIDTH:, :WIDTH].copy())
                continue
            vectors, factor, triangle = _panel(rest[WIDTH:, :WIDTH])
            beside.append(triangle)
            own = turned[start + WIDTH :]
            own -= vectors @ (factor.T @ (vectors.T @ own))
            _turn(rest[WIDTH:, WIDTH:], vectors, factor, room)
        return cls(tuple(blocks), tuple(beside), turned)

    def effective(self, penalty: float, *, expected: bool = False) -> float:
        """Return trace(B (B + p I)^-1) for the penalty p > 0; negative eigenvalues count as 0."""
        size = len(self.right)
        down, up = self._pivots(penalty), self._pivots(penalty, upwards=True)
        if expected or down is None or up is None:
            spread = np.maximum(np.linalg.eigvalsh(self._whole()), 0.0)
            return float((spread / (spread + penalty)).sum())
        inverse = 0.0
        for block, above, below in zip(self.blocks, down, up, strict=True):
            both = above + below - block
            both.flat[:: len(both) + 1] -= penalty
            inverse += float(np.trace(np.linalg.inv(both)))
        return size - penalty * inverse

    def solve(self, penalty: float) -> Floats:
        """Return (B + p I)^-1 `right` for a penalty p that makes B + p I positive definite."""
        pivots = self._pivots(penalty)
        if pivots is None:
            raise InternalError("A covariance with a penalty is not positive definite.")
        starts = range(0, len(self.right), WIDTH)
        parts = [self.right[start : start + WIDTH].copy() for start in starts]
        for place, side in enumerate(self.beside):
            parts[place + 1] -= side @ np.linalg.solve(pivots[place], parts[place])
        parts[-1] = _solved(pivots[-1], parts[-1])
        for place in range(len(self.beside) - 1, -1, -1):
            known = parts[place] - self.beside[place].T @ parts[place + 1]
            parts[place] = _solved(pivots[place], known)
        return np.concatenate(parts)

    def _pivots(self, penalty: float, *, upwards: bool = False) -> list[Floats] | None:
        """Return the pivot blocks of B + p I, from above or from below; None if one is not positive."""
        from scipy.linalg.lapack import dpotrf

        order = range(len(self.blocks))
        pivots: dict[int, Floats] = {}
        before: int | None = None
        for place in reversed(order) if upwards else order:
            pivot = self.blocks[place].copy()
            pivot.flat[:: len(pivot) + 1] += penalty
            if before is not None:
                side = self.beside[place].T if upwards else self.beside[before]
                pivot -= side @ np.linalg.solve(pivots[before], side.T)
            if dpotrf(pivot, lower=1)[1]:
                return None
            pivots[place], before = pivot, place
        return [pivots[place] for place in order]

    def _whole(self) -> Floats:
        whole = np.zeros((len(self.right), len(self.right)))
        for place, block in enumerate(self.blocks):
            start = place * WIDTH
            stop = start + len(block)
            whole[start:stop, start:stop] = block
            if place < len(self.beside):
                side = self.beside[place]
                whole[stop : stop + len(side), start:stop] = side
                whole[start:stop, stop : stop + len(side)] = side.T
        return whole


def _solved(matrix: Floats, right: Floats) -> Floats:
    return np.linalg.solve(matrix, right).astype(np.float64, copy=False)


def _panel(panel: Floats) -> tuple[Floats, Floats, Floats]:
    """Return V, T and R with panel = (I - V T V') [R; 0]; the panel has more rows than columns."""
    from scipy.linalg.lapack import dgeqrf

    packed, scales, _, info = dgeqrf(panel, lwork=64 * panel.shape[1])
    if info:
        raise InternalError(f"LAPACK dgeqrf failed with code {info}.")
    width = panel.shape[1]
    vectors: Floats = np.tril(packed, -1)
    np.fill_diagonal(vectors, 1.0)
    products = vectors.T @ vectors
    factor = np.zeros((width, width))
    for place, scale in enumerate(scales):
        factor[:place, place] = -scale * (factor[:place, :place] @ products[:place, place])
        factor[place, place] = scale
    return vectors, factor, np.triu(packed[:width])


def _turn(rest: Floats, vectors: Floats, factor: Floats, room: Floats) -> None:
    """Replace a symmetric matrix A by (I - V T' V') A (I - V T V'), in place.

    Only stripes of rows up to the diagonal are read and written. `room` is memory for one stripe;
    allocating it for each stripe would take longest.
    """
    size = len(rest)
    spread = vectors @ factor
    along = np.zeros_like(spread)
    stripes = [(start, min(start + _STRIPE, size)) for start in range(0, size, _STRIPE)]
    for start, stop in stripes:
        corner = np.tril(rest[start:stop, start:stop])
        corner += np.tril(corner, -1).T
        along[start:stop] += corner @ spread[start:stop]
        left = rest[start:stop, :start]
        along[start:stop] += left @ spread[:start]
        along[:start] += left.T @ spread[start:stop]
    along -= 0.5 * vectors @ (spread.T @ along)
    both, turned = np.hstack([vectors, along]), np.hstack([along, vectors]).T
    for start, stop in stripes:
        change = room[: (stop - start) * stop].reshape(stop - start, stop)
        np.matmul(both[start:stop], turned[:, :stop], out=change)
        rest[start:stop, :stop] -= change
