"""Iterative proportional fitting over arbitrary families of disjoint groups of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from aegis.errors import DataError, PolicyError
from aegis.progress import SILENT, Progress
from aegis.reconstruction.evidence import counts, group_sums
from aegis.reconstruction.families import Family, Groups, Margin, determine
from aegis.reconstruction.result import FloatArray, IntArray, Reconstruction

STALL_WINDOW = 100
"""Sweeps between two looks at whether the residual still falls."""

LARGEST_PROOF = 20_000
"""Number of cells up to which a stalled fit is examined by a linear program."""


def ipf(
    seed: npt.ArrayLike,
    families: Sequence[Family],
    *,
    tolerance: float = 1e-8,
    max_sweeps: int = 1000,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Fit a table to the totals of families of disjoint groups.

    Cycles through the families and multiplies each group by target / current. The fixed point
    is the table with those totals that is closest to the seed in Kullback-Leibler divergence;
    from a uniform seed it is the one of largest entropy. Cells that the families determine are
    set first (`determine`), which changes the speed and not the result.

    Parameters
    ----------
    seed
        Table of any shape, at least 0; a zero cell stays zero. Its scale does not matter.
    families
        One or more partitions of the cells, with targets in rows; all have the same total N.
    tolerance
        Stop when the largest absolute residual of any group is at most `tolerance` times N.
    max_sweeps
        Cycles through all families at most.
    progress
        Receives one step, advanced per sweep.

    Returns
    -------
    Reconstruction
        Table of the seed's shape. `converged` is false, with a note, where `max_sweeps` did not
        do; the residual says how far it got.

    Raises
    ------
    DataError
        Totals differ between families, a group of zero cells has a positive target, or no table
        meets all targets (proved by elimination or a linear program); the family is named.
    PolicyError
        No family, or a parameter out of range.

    References
    ----------
    Deming and Stephan (1940); fixed point: Csiszar (1975), I-divergence geometry, theorem 3.2.
    """
    start = counts(seed, "The seed")
    total = _check(start, families, tolerance, max_sweeps)
    if total == 0:
        return Reconstruction(np.zeros(start.shape), "ipf")
    slack = max(tolerance, 1e-9) * total
    if _needs_elimination(start, families):
        known = determine(start.ravel(), families, slack)
        where = np.flatnonzero(known.open)
        steps = _grouped_steps(families, known.remaining, where)
        cells, fitted = known.cells, known.cells[where]
    else:
        steps = [_margin_step(family) for family in families if isinstance(family, Margin)]
        where, cells = np.arange(0), start.copy()
        fitted = cells
    outcome = _iterate(fitted, steps, tolerance * total, max_sweeps, progress)
    if where.size:
        cells[where] = fitted
    notes: tuple[str, ...] = ()
    if not outcome.converged:
        _require_feasible(start.ravel(), families, total, outcome)
        notes = (
            f"IPF did not converge: after {outcome.sweeps} sweeps family {outcome.worst!r} is off "
            f"by {outcome.residual:.3g} rows.",
        )
    return Reconstruction(
        cells.reshape(start.shape),
        "ipf",
        converged=outcome.converged,
        iterations=outcome.sweeps,
        residual=outcome.residual,
        notes=notes,
    )


@dataclass(frozen=True)
class _Step:
    """One family, ready to run: `measure` sums the cells, `scale` multiplies them in place."""

    name: str
    targets: FloatArray
    measure: Callable[[FloatArray], FloatArray]
    scale: Callable[[FloatArray, FloatArray], None]

    def deviation(self, cells: FloatArray) -> float:
        return float(np.abs(self.measure(cells) - self.targets).max())

    def apply(self, cells: FloatArray) -> float:
        """Fit the family; return the largest deviation that it had before."""
        current = self.measure(cells)
        worst = float(np.abs(current - self.targets).max())
        # A group whose cells have all vanished has nothing to scale.
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = self.targets / current
        if not np.isfinite(factors).all():
            factors[~np.isfinite(factors)] = 0.0
        self.scale(cells, factors)
        return worst


@dataclass(frozen=True)
class _Outcome:
    converged: bool
    sweeps: int
    residual: float
    worst: str


def _check(
    seed: FloatArray, families: Sequence[Family], tolerance: float, max_sweeps: int
) -> float:
    if not families:
        raise PolicyError("IPF needs at least one constraint family; given none.")
    if not tolerance > 0 or max_sweeps < 1:
        raise PolicyError(
            f"IPF with tolerance {tolerance} and {max_sweeps} sweeps cannot run.",
            hint="The tolerance must be above 0 and the number of sweeps at least 1.",
        )
    for family in families:
        matches = (
            family.shape == seed.shape
            if isinstance(family, Margin)
            else len(family.codes) == seed.size
        )
        if not matches:
            raise DataError(
                f"Family {family.name!r} does not cover the table: the seed has shape "
                f"{seed.shape}, {seed.size} cells.",
                hint="Each family must give every cell of the table one group.",
            )
    totals = [float(family.targets.sum()) for family in families]
    for family, total in zip(families, totals, strict=True):
        if abs(total - totals[0]) > max(tolerance, 1e-9) * totals[0]:
            raise DataError(
                f"Inconsistent constraints: family {families[0].name!r} adds up to "
                f"{totals[0]:.10g} rows, family {family.name!r} to {total:.10g}.",
                hint="All targets must come from the same rows.",
            )
    return totals[0]


def _needs_elimination(seed: FloatArray, families: Sequence[Family]) -> bool:
    """Whether a cell may be determined: never in an all-positive problem of proper margins."""
    return not all(
        isinstance(family, Margin) and family.targets.size < seed.size and family.targets.min() > 0
        for family in families
    ) or bool(seed.min() <= 0)


def _grouped_steps(
    families: Sequence[Family], remaining: Sequence[FloatArray], where: IntArray
) -> list[_Step]:
    steps = []
    for family, left in zip(families, remaining, strict=True):
        if not where.size:
            break
        # Groups without open cells are done, and numbering the rest afresh keeps sums short.
        present, codes = np.unique(family.codes[where], return_inverse=True)
        steps.append(_grouped_step(family.name, codes.astype(np.int64), left[present]))
    return steps


def _grouped_step(name: str, codes: IntArray, targets: FloatArray) -> _Step:
    groups = len(targets)

    def measure(cells: FloatArray) -> FloatArray:
        return group_sums(codes, cells, groups)

    def scale(cells: FloatArray, factors: FloatArray) -> None:
        cells *= factors[codes]

    return _Step(name, targets, measure, scale)


def _margin_step(family: Margin) -> _Step:
    summed = tuple(axis for axis in range(len(family.shape)) if axis not in family.axes)
    place = [size if axis in family.axes else 1 for axis, size in enumerate(family.shape)]

    def measure(cells: FloatArray) -> FloatArray:
        margin: FloatArray = np.add.reduce(cells, axis=summed).ravel()
        return margin

    def scale(cells: FloatArray, factors: FloatArray) -> None:
        cells *= factors.reshape(place)

    return _Step(family.name, family.targets, measure, scale)


def _iterate(
    cells: FloatArray, steps: Sequence[_Step], limit: float, max_sweeps: int, progress: Progress
) -> _Outcome:
    if not steps:
        return _Outcome(converged=True, sweeps=0, residual=0.0, worst="")
    sweep, before = 0, np.inf
    with progress.step("Iterative proportional fitting", max_sweeps) as step:
        while sweep < max_sweeps:
            sweep += 1
            worst = max(family.apply(cells) for family in steps)
            step.advance()
            # Fitting one family disturbs the others, so only a look at all of them after the
            # sweep counts; it is worth its time when they hardly moved, and after the first
            # sweep, where one family or a chain of them is already exact.
            if (worst <= limit or sweep == 1) and _residual(cells, steps)[0] <= limit:
                break
            if sweep % STALL_WINDOW == 0:
                if worst > 0.99 * before:
                    break
                before = worst
    residual, name = _residual(cells, steps)
    return _Outcome(residual <= limit, sweep, residual, name)


def _residual(cells: FloatArray, steps: Sequence[_Step]) -> tuple[float, str]:
    return max((step.deviation(cells), step.name) for step in steps)


def _require_feasible(
    seed: FloatArray, families: Sequence[Family], total: float, outcome: _Outcome
) -> None:
    """Raise `DataError` when no table on the support of the seed meets all targets.

    Phase one of the simplex method: minimise the amount by which the targets are missed.
    """
    support = np.flatnonzero(seed > 0)
    if len(support) > LARGEST_PROOF:
        return
    blocks = [
        sparse.csr_matrix(
            (np.ones(len(support)), (family.codes[support], np.arange(len(support)))),
            shape=(len(family.targets), len(support)),
        )
        for family in families
    ]
    matrix = sparse.vstack(blocks).tocsr()
    slack = sparse.identity(matrix.shape[0], format="csr")
    answer = optimize.linprog(
        np.concatenate([np.zeros(len(support)), np.ones(2 * matrix.shape[0])]),
        A_eq=sparse.hstack([matrix, slack, -slack]).tocsr(),
        b_eq=np.concatenate([family.targets for family in families]) / total,
        method="highs",
    )
    if answer.status == 0 and answer.fun > 1e-6:
        raise DataError(
            f"Inconsistent constraints: no table meets all families; the residual of family "
            f"{outcome.worst!r} stalls at {outcome.residual:.6g} rows after {outcome.sweeps} "
            f"sweeps, and at best {answer.fun * total:.6g} rows are misplaced.",
            hint="All targets must come from the same rows; leave out the family that does not.",
        )


def joint_family(name: str, codes: IntArray, joint: FloatArray) -> Groups:
    """Return the family that fixes the (G, C) joint of a mask, on a (V, C) table."""
    labels = joint.shape[1]
    cells = (codes[:, None] * labels + np.arange(labels)).ravel()
    return Groups(name, cells, joint.ravel())


def histogram_family(histogram: FloatArray, labels: int) -> Margin:
    """Return the family that fixes the row totals of a (V, `labels`) table."""
    return Margin("histogram", (len(histogram), labels), (0,), histogram)
