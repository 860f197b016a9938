"""Estimate smooth counts of values from counts of groups: the penalised composite link model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from aegis.errors import DataError, PolicyError
from aegis.measures.checks import counts, group_codes
from aegis.papers.reconstruction.result import FloatArray, IntArray

PENALTIES = np.logspace(6, -4, 21)
"""Penalties to try, the heaviest first, as multiples of the mean count of a group."""

SMALLEST_BASIS, LARGEST_BASIS = 40, 96
MAX_ITERATIONS = 200

GAIN = 1e-6
"""An iteration is the last one if it lowers the deviance by less than this. Without this limit, the
intensity of an empty group would approach zero for ever.
"""


@dataclass(frozen=True, eq=False)
class SmoothFit:
    """The fit of a penalised composite link model to the counts of groups.

    Attributes
    ----------
    intensity
        Expected count gamma of each atom, shape (V,), above 0.
    penalty
        The penalty lambda that was used.
    aic, deviance, dimension
        AIC, deviance and effective dimension of the fit: AIC = deviance + 2 * dimension.
    converged, iterations
        Whether the fit at the chosen penalty converged, and its number of iterations.
    """

    intensity: FloatArray
    penalty: float
    aic: float
    deviance: float
    dimension: float
    converged: bool
    iterations: int


def composite_link(
    grouped: npt.ArrayLike,
    codes: npt.ArrayLike,
    *,
    offset: npt.ArrayLike | None = None,
    penalty: float | None = None,
    step: int = 1,
) -> SmoothFit:
    """Estimate smooth counts of atoms from counts of groups, for an ordered attribute.

    The counts of groups are y ~ Poisson(mu) with mu = C gamma, where C adds up the atoms of each
    group and gamma = offset * exp(X b). The coefficients b are fitted by iterating (Q'WQ + lambda
    D'D) b = Q'W (y - mu + Q b), with Q = C diag(gamma) X, W = diag(1/mu) and second differences D.
    A step that does not lower the penalised deviance is halved. Let B = min(96, max(40, 2 G)). For
    up to B atoms, X is the identity. For more atoms, X is a basis of B cubic B-splines over the
    rank of the atom.

    Parameters
    ----------
    grouped
        Counts y of the groups, shape (G,), at least 0.
    codes
        Group of each atom, in the order of the atoms, shape (V,), at least 3 atoms.
    offset
        Known weight of each atom, shape (V,), at least 0. With the histogram, the *share* is
        smooth. None sets all weights to 1; then the *count* is smooth.
    penalty
        The penalty lambda. None takes the penalty with the smallest AIC from a grid with two values
        per power of ten.
    step
        Step width on that grid: 2 tries every second penalty.

    Raises
    ------
    DataError
        Shapes do not match, there are fewer than 3 atoms or no rows, or a count is negative.
    PolicyError
        The penalty is not above 0.

    References
    ----------
    Rizzi, Gampe and Eilers (2015), Efficient estimation of smooth distributions from coarsely
    grouped data, American Journal of Epidemiology 182(2): the model, its iteration and the
    choice of lambda. B-spline basis: Eilers and Marx (1996), Flexible smoothing.
    """
    if penalty is not None and not penalty > 0:
        raise PolicyError(f"penalty={penalty} is not possible.", hint="It must be above 0.")
    model = _checked(grouped, codes, offset)
    mean = float(model.seen.sum() / len(model.seen))
    tried = PENALTIES[::step] * mean if penalty is None else np.array([float(penalty)])
    start = model.flat_start()
    fits = []
    for value in tried:
        start, fit = model.fit(start, float(value))
        fits.append(fit)
    return min(fits, key=lambda fit: fit.aic)


def _checked(grouped: npt.ArrayLike, codes: npt.ArrayLike, offset: npt.ArrayLike | None) -> _Model:
    """Return the model of counts per group, after a check of their shapes and rows."""
    seen = counts(grouped, "The grouped counts")
    groups = group_codes(codes, len(seen), "Smooth")
    if len(groups) < 3:
        raise DataError(f"Smoothing needs at least 3 atoms in order; given {len(groups)}.")
    weights = np.ones(len(groups)) if offset is None else counts(offset, "The offset")
    if weights.shape != groups.shape:
        raise DataError(f"The offset has shape {weights.shape} for {len(groups)} atoms.")
    if seen.sum() <= 0 or weights.sum() <= 0:
        raise DataError("Smoothing needs at least one row.")
    return _Model.of(seen, groups, weights)


@dataclass(frozen=True, eq=False)
class _Model:
    seen: FloatArray
    composition: scipy.sparse.csr_matrix
    basis: scipy.sparse.csr_matrix
    roughness: FloatArray
    offset: FloatArray

    @classmethod
    def of(cls, seen: FloatArray, groups: IntArray, offset: FloatArray) -> _Model:
        basis = _basis(len(groups), len(seen))
        differences = scipy.sparse.csr_matrix(np.diff(np.eye(basis.shape[1]), n=2, axis=0))
        composition = scipy.sparse.csr_matrix(
            (np.ones(len(groups)), (groups, np.arange(len(groups)))),
            shape=(len(seen), len(groups)),
        )
        return cls(seen, composition, basis, (differences.T @ differences).toarray(), offset)

    def flat_start(self) -> FloatArray:
        # The basis functions add up to one, so equal coefficients make a constant.
        level = np.log(self.seen.sum() / self.offset.sum())
        return np.full(self.basis.shape[1], level)

    def fit(self, start: FloatArray, penalty: float) -> tuple[FloatArray, SmoothFit]:
        """Fit the model at one penalty; return the coefficients, as a start for the next penalty,
        and the fit.
        """
        coefficients, objective = start, self._objective(start, penalty)
        converged, iteration = False, 0
        while iteration < MAX_ITERATIONS and not converged:
            iteration += 1
            step = self._solve(coefficients, penalty) - coefficients
            size = 1.0
            while size > 1e-6:
                candidate = coefficients + size * step
                value = self._objective(candidate, penalty)
                if value <= objective:
                    break
                size /= 2
            if value <= objective:
                converged = objective - value <= GAIN * (1 + 1e-3 * objective)
                coefficients, objective = candidate, value
            else:
                converged = True
        return coefficients, self._report(coefficients, penalty, converged, iteration)

    def _intensity(self, coefficients: FloatArray) -> FloatArray:
        # Beyond these bounds a count is nothing, or more rows than there are.
        exponent = np.clip(self.basis @ coefficients, -60.0, 60.0)
        intensity: FloatArray = self.offset * np.exp(exponent)
        return intensity

    def _expected(self, intensity: FloatArray) -> FloatArray:
        mu: FloatArray = np.maximum(self.composition @ intensity, 1e-12)
        return mu

    def _deviance(self, mu: FloatArray) -> float:
        logs = np.where(self.seen > 0, np.log(np.where(self.seen > 0, self.seen, 1.0) / mu), 0.0)
        return float(2 * (self.seen * logs - (self.seen - mu)).sum())

    def _objective(self, coefficients: FloatArray, penalty: float) -> float:
        rough = float((np.diff(coefficients, n=2) ** 2).sum())
        return self._deviance(self._expected(self._intensity(coefficients))) + penalty * rough

    def _information(
        self, coefficients: FloatArray
    ) -> tuple[FloatArray, scipy.sparse.csr_matrix, FloatArray]:
        intensity = self._intensity(coefficients)
        mu = self._expected(intensity)
        weighted = self.composition.copy()
        weighted.data = intensity[weighted.indices]
        # A group touches few splines. Sparse products also keep clear of threaded BLAS, which
        # loses far more than it gains on matrices of this size when cores are shared.
        q = weighted @ self.basis
        scaled = q.multiply(1 / mu[:, None]).T.tocsr()
        return (scaled @ q).toarray(), q, mu

    def _solve(self, coefficients: FloatArray, penalty: float) -> FloatArray:
        information, q, mu = self._information(coefficients)
        pull = q.T @ ((self.seen - mu) / mu) + information @ coefficients
        matrix, ridge = self._penalised(information, penalty)
        factor = scipy.linalg.cho_factor(matrix, lower=True)
        # The ridge pulls towards where the iteration stands, so the solution is not biased.
        solution: FloatArray = scipy.linalg.cho_solve(factor, pull + ridge * coefficients)
        return solution

    def _penalised(self, information: FloatArray, penalty: float) -> tuple[FloatArray, float]:
        """Return Q'WQ + lambda D'D plus a ridge, and the ridge, which makes the matrix positive
        definite.
        """
        matrix = information + penalty * self.roughness
        ridge = float(1e-9 * np.trace(information) / len(matrix) + 1e-13 * penalty)
        matrix[np.diag_indices_from(matrix)] += ridge
        return matrix, ridge

    def _report(
        self, coefficients: FloatArray, penalty: float, converged: bool, iterations: int
    ) -> SmoothFit:
        information, q, mu = self._information(coefficients)
        matrix, _ = self._penalised(information, penalty)
        factor = scipy.linalg.cho_factor(matrix, lower=True)
        dimension = _trace_of_quotient(factor, information, q, mu)
        deviance = self._deviance(mu)
        return SmoothFit(
            self._intensity(coefficients),
            penalty,
            deviance + 2 * dimension,
            deviance,
            dimension,
            converged,
            iterations,
        )


def _trace_of_quotient(
    factor: tuple[FloatArray, bool],
    information: FloatArray,
    q: scipy.sparse.csr_matrix,
    mu: FloatArray,
) -> float:
    """Return trace(M^-1 Q'WQ) from the Cholesky factor of M.

    Right-hand sides are solved one at a time: all at once would be a single call, but to threaded
    BLAS. The trace is over groups or over coefficients, whichever are fewer.
    """
    if len(mu) < len(information):
        terms = [
            row @ scipy.linalg.cho_solve(factor, row) / share
            for row, share in zip(q.toarray(), mu, strict=True)
        ]
    else:
        terms = [
            scipy.linalg.cho_solve(factor, column)[number]
            for number, column in enumerate(information.T)
        ]
    return float(sum(terms))


def _basis(atoms: int, groups: int) -> scipy.sparse.csr_matrix:
    """Return the (V, K) basis: the identity, or cubic B-splines over the rank of the atoms."""
    size = min(max(SMALLEST_BASIS, 2 * groups), LARGEST_BASIS)
    if atoms <= size:
        return scipy.sparse.identity(atoms, format="csr")
    inner = np.linspace(0.0, atoms - 1.0, size - 2)
    width = inner[1] - inner[0]
    knots = np.concatenate(
        [inner[0] - width * np.arange(3, 0, -1), inner, inner[-1] + width * np.arange(1, 4)]
    )
    positions = np.arange(atoms, dtype=np.float64)
    return scipy.sparse.csr_matrix(scipy.interpolate.BSpline.design_matrix(positions, knots, 3))
