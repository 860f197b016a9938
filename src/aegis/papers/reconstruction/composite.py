"""Estimate smooth counts of values from counts of groups: the penalised composite link model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from aegis.arrays import Floats, Ints
from aegis.errors import DataError, PolicyError
from aegis.measures.checks import counts, group_codes

PENALTIES = np.logspace(6, -4, 21)
"""The penalties to try, as multiples of the mean count of a group; the heaviest comes first."""

SMALLEST_BASIS, LARGEST_BASIS = 40, 96
MAX_ITERATIONS = 200

GAIN = 1e-6
"""Smallest decrease of the deviance after which the iteration continues.

An empty group would pull its intensity towards zero for ever, although the steps no longer matter.
"""


@dataclass(frozen=True, eq=False)
class SmoothFit:
    """A smooth curve of counts of values, estimated from counts of groups of values by a penalised
    composite link model.

    Attributes
    ----------
    intensity
        Expected count of each of the V values, shape (V,), above 0.
    penalty
        The penalty of roughness that was used.
    aic, deviance, dimension
        AIC, deviance and effective dimension of the fit: AIC = deviance + 2 * dimension.
    converged, iterations
        Whether the fit at the chosen penalty converged, and its number of iterations.
    """

    intensity: Floats
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
    """Estimate smooth counts of atoms (the unmasked values of an ordered attribute) from the counts
    of groups of atoms.

    The counts of groups are y ~ Poisson(mu) with mu = C gamma, where C adds up the atoms of each
    group and gamma = offset * exp(X b). The coefficients b are fitted by iterating

        (Q'WQ + lambda D'D) b = Q'W (y - mu + Q b),  Q = C diag(gamma) X,  W = diag(1/mu),

    where D takes second differences. Let K be min(96, max(40, 2 G)) for G groups. For up to K
    atoms, X is the identity. For more atoms, X is a basis of K cubic B-splines over the rank of the
    atom.

    Parameters
    ----------
    grouped
        Counts y of the G groups, shape (G,), at least 0.
    codes
        For each of the V atoms in their order, the number of its group, shape (V,); there must be
        at least 3 atoms.
    offset
        Known weight of each atom, shape (V,), at least 0. With the histogram as weights, the
        *share* is smooth. With None, all weights are 1, and the *count* is smooth.
    penalty
        The penalty lambda. None chooses the penalty with the smallest AIC from a list with two
        values per power of ten.
    step
        Step width in this list; for example, 2 tries every second penalty.

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
    mean = float(model.group_counts.sum() / len(model.group_counts))
    tried = PENALTIES[::step] * mean if penalty is None else np.array([float(penalty)])
    start = model.flat_start()
    fits = []
    for value in tried:
        start, fit = model.fit(start, float(value))
        fits.append(fit)
    return min(fits, key=lambda fit: fit.aic)


def _checked(grouped: npt.ArrayLike, codes: npt.ArrayLike, offset: npt.ArrayLike | None) -> _Model:
    """Check the arguments of `composite_link`, and return the model to fit."""
    group_counts = counts(grouped, "The grouped counts")
    groups = group_codes(codes, len(group_counts), "Smooth")
    if len(groups) < 3:
        raise DataError(f"Smoothing needs at least 3 atoms in order; given {len(groups)}.")
    weights = np.ones(len(groups)) if offset is None else counts(offset, "The offset")
    if weights.shape != groups.shape:
        raise DataError(f"The offset has shape {weights.shape} for {len(groups)} atoms.")
    if group_counts.sum() <= 0 or weights.sum() <= 0:
        raise DataError("Smoothing needs at least one row.")
    return _Model.of(group_counts, groups, weights)


@dataclass(frozen=True, eq=False)
class _Model:
    group_counts: Floats
    composition: scipy.sparse.csr_matrix
    basis: scipy.sparse.csr_matrix
    roughness: Floats
    offset: Floats

    @classmethod
    def of(cls, group_counts: Floats, groups: Ints, offset: Floats) -> _Model:
        basis = _basis(len(groups), len(group_counts))
        differences = scipy.sparse.csr_matrix(np.diff(np.eye(basis.shape[1]), n=2, axis=0))
        composition = scipy.sparse.csr_matrix(
            (np.ones(len(groups)), (groups, np.arange(len(groups)))),
            shape=(len(group_counts), len(groups)),
        )
        roughness = (differences.T @ differences).toarray()
        return cls(group_counts, composition, basis, roughness, offset)

    def flat_start(self) -> Floats:
        # The basis functions add up to one, so equal coefficients make a constant.
        level = np.log(self.group_counts.sum() / self.offset.sum())
        return np.full(self.basis.shape[1], level)

    def fit(self, start: Floats, penalty: float) -> tuple[Floats, SmoothFit]:
        """Fit with this penalty from the coefficients `start`; return them and the fit."""
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

    def _intensity(self, coefficients: Floats) -> Floats:
        # Beyond these bounds a count is nothing, or more rows than there are.
        exponent = np.clip(self.basis @ coefficients, -60.0, 60.0)
        intensity: Floats = self.offset * np.exp(exponent)
        return intensity

    def _expected(self, intensity: Floats) -> Floats:
        mu: Floats = np.maximum(self.composition @ intensity, 1e-12)
        return mu

    def _deviance(self, mu: Floats) -> float:
        counts = self.group_counts
        logs = np.where(counts > 0, np.log(np.where(counts > 0, counts, 1.0) / mu), 0.0)
        return float(2 * (counts * logs - (counts - mu)).sum())

    def _objective(self, coefficients: Floats, penalty: float) -> float:
        rough = float((np.diff(coefficients, n=2) ** 2).sum())
        return self._deviance(self._expected(self._intensity(coefficients))) + penalty * rough

    def _information(self, coefficients: Floats) -> tuple[Floats, scipy.sparse.csr_matrix, Floats]:
        intensity = self._intensity(coefficients)
        mu = self._expected(intensity)
        weighted = self.composition.copy()
        weighted.data = intensity[weighted.indices]
        # A group touches few splines. Sparse products also keep clear of threaded BLAS, which
        # loses far more than it gains on matrices of this size when cores are shared.
        q = weighted @ self.basis
        scaled = q.multiply(1 / mu[:, None]).T.tocsr()
        return (scaled @ q).toarray(), q, mu

    def _solve(self, coefficients: Floats, penalty: float) -> Floats:
        information, q, mu = self._information(coefficients)
        pull = q.T @ ((self.group_counts - mu) / mu) + information @ coefficients
        matrix, ridge = self._penalised(information, penalty)
        factor = scipy.linalg.cho_factor(matrix, lower=True)
        # The ridge pulls towards where the iteration stands, so the solution is not biased.
        solution: Floats = scipy.linalg.cho_solve(factor, pull + ridge * coefficients)
        return solution

    def _penalised(self, information: Floats, penalty: float) -> tuple[Floats, float]:
        """Return the matrix of the penalised normal equations, and which multiple of the identity
        was added to make it positive definite.
        """
        matrix = information + penalty * self.roughness
        ridge = float(1e-9 * np.trace(information) / len(matrix) + 1e-13 * penalty)
        matrix[np.diag_indices_from(matrix)] += ridge
        return matrix, ridge

    def _report(
        self, coefficients: Floats, penalty: float, converged: bool, iterations: int
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
    factor: tuple[Floats, bool], information: Floats, q: scipy.sparse.csr_matrix, mu: Floats
) -> float:
    """Return the effective dimension of a fit: trace(M^-1 `information`), where `factor` is the
    Cholesky factor of the matrix M of the normal equations. `information` is Q' diag(1 / `mu`) Q,
    with Q = `q`.

    Right-hand sides are solved one at a time, because one call for all would use threaded BLAS.
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
    """Return the matrix from coefficients to values: the identity if few, else B-splines over the
    rank.
    """
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
