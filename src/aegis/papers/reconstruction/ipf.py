"""Run iterative proportional fitting (IPF) with any families of disjoint groups of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from aegis.arrays import Floats, Ints
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, Progress
from aegis.measures.checks import counts
from aegis.papers.reconstruction.evidence import Reconstruction
from aegis.papers.reconstruction.families import CellFit, Determined, Groups, determine

STALL_WINDOW = 100
"""Number of sweeps between two checks whether the residual still falls."""

LARGEST_PROOF = 20_000
"""Most cells of a stalled fit that a linear program examines."""


def ipf(
    seed: npt.ArrayLike,
    families: Sequence[Groups],
    *,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Fit a table by iterative proportional fitting, so that groups of its cells have required
    totals. Each family of constraints divides the cells into disjoint groups.

    The function cycles through the families and multiplies the cells of each group by target /
    current total. The result is the table with these totals that is closest to the seed in
    Kullback-Leibler divergence; for a uniform seed, it is the table with the largest entropy.

    Parameters
    ----------
    seed
        Start table of any shape, at least 0. A zero cell stays zero; the scale does not matter.
    families
        One or more partitions of the cells, each with targets in rows that add up to the same N.
    tolerance
        Stop when no group deviates from its total by more than `tolerance` times N.
    max_sweeps
        Largest number of cycles through all families.
    progress
        Receives one step, which advances with each sweep.

    Returns
    -------
    Reconstruction
        Table of the seed's shape. If `max_sweeps` was not enough, `converged` is False, a note
        states this, and `residual` is the remaining deviation.

    Raises
    ------
    DataError
        Totals differ between families, a group of zero cells has a positive target, or no table
        meets all targets. The message names the family.
    PolicyError
        There is no family, or a parameter is out of range.

    References
    ----------
    Deming and Stephan (1940); fixed point: Csiszar (1975), I-divergence geometry, theorem 3.2.
    """
    start = counts(seed, "The seed")
    total = _check(start, families, tolerance, max_sweeps)
    if total == 0:
        return Reconstruction(np.zeros(start.shape), "ipf")
    determined = determine(start.ravel(), families, max(tolerance, 1e-9) * total)
    outcome = _fit_open(determined, families, tolerance * total, max_sweeps, progress)
    if not outcome.converged:
        _require_feasible(start.ravel(), families, total, outcome)
    return outcome.of(determined.cells.reshape(start.shape))


@dataclass(frozen=True)
class _Outcome:
    converged: bool
    sweeps: int
    residual: float
    worst: str

    def of(self, table: Floats) -> Reconstruction:
        """Return the fitted table as a `Reconstruction`, with a note if the sweeps did not
        converge.
        """
        note = (
            f"IPF did not converge: after {self.sweeps} sweeps family {self.worst!r} is off "
            f"by {self.residual:.3g} rows."
        )
        return Reconstruction(
            table,
            "ipf",
            converged=self.converged,
            iterations=self.sweeps,
            residual=self.residual,
            notes=() if self.converged else (note,),
        )


def _check(seed: Floats, families: Sequence[Groups], tolerance: float, max_sweeps: int) -> float:
    if not families:
        raise PolicyError("IPF needs at least one constraint family; given none.")
    if not tolerance > 0 or max_sweeps < 1:
        raise PolicyError(
            f"IPF with tolerance {tolerance} and {max_sweeps} sweeps cannot run.",
            hint="The tolerance must be above 0 and the number of sweeps at least 1.",
        )
    for family in families:
        if len(family.codes) != seed.size:
            raise DataError(
                f"Family {family.name!r} does not cover the table: the seed has shape "
                f"{seed.shape}, {seed.size} cells.",
                hint="Each family must give every cell of the table one group.",
            )
    totals = [float(np.add.reduce(family.targets)) for family in families]
    slack = max(tolerance, 1e-9) * totals[0]
    for family, total in zip(families, totals, strict=True):
        if abs(total - totals[0]) > slack:
            raise DataError(
                f"Inconsistent constraints: family {families[0].name!r} adds up to "
                f"{totals[0]:.10g} rows, family {family.name!r} to {total:.10g}.",
                hint="All targets must come from the same rows.",
            )
    return totals[0]


def _fit_open(
    determined: Determined,
    families: Sequence[Groups],
    limit: float,
    max_sweeps: int,
    progress: Progress,
) -> _Outcome:
    """Fit the open cells of a table in place, until no group deviates from its total by more than
    `limit` rows.
    """
    if not determined.open.any():
        return _Outcome(converged=True, sweeps=0, residual=0.0, worst="")
    fit = CellFit(determined, families)
    outcome = _iterate(fit, limit, max_sweeps, progress)
    determined.cells[determined.open] = fit.cells
    return outcome


def _iterate(fit: CellFit, limit: float, max_sweeps: int, progress: Progress) -> _Outcome:
    sweep, before = 0, np.inf
    with progress.step("Iterative proportional fitting", max_sweeps) as step:
        while sweep < max_sweeps:
            correction = fit.sweep()
            sweep += 1
            step.advance()
            # Fitting one family disturbs the others, so only a look at all of them after the
            # sweep counts; it is worth its time when they hardly moved, and after the first
            # sweep, where one family or a chain of them is already exact.
            if correction <= limit or sweep == 1:
                residual, name = fit.residual()
                if residual <= limit:
                    return _Outcome(True, sweep, residual, name)
            if sweep % STALL_WINDOW == 0:
                if correction > 0.99 * before:
                    break
                before = correction
    residual, name = fit.residual()
    return _Outcome(residual <= limit, sweep, residual, name)


def _require_feasible(
    seed: Floats, families: Sequence[Groups], total: float, outcome: _Outcome
) -> None:
    """Raise `DataError` if no table that is 0 where `seed` is 0 meets the required totals of all
    `families`; a linear program finds this out. Tables with very many cells are not checked.
    `total` is the number of rows, and `outcome` has the figures of the fit for the message.
    """
    support = np.flatnonzero(seed > 0)
    if len(support) > LARGEST_PROOF:
        return
    blocks = [
        scipy.sparse.csr_matrix(
            (np.ones(len(support)), (family.codes[support], np.arange(len(support)))),
            shape=(len(family.targets), len(support)),
        )
        for family in families
    ]
    matrix = scipy.sparse.vstack(blocks).tocsr()
    slack = scipy.sparse.identity(matrix.shape[0], format="csr")
    answer = scipy.optimize.linprog(
        np.concatenate([np.zeros(len(support)), np.ones(2 * matrix.shape[0])]),
        A_eq=scipy.sparse.hstack([matrix, slack, -slack]).tocsr(),
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


def joint_family(name: str, codes: Ints, joint: Floats) -> Groups:
    """Return constraints on a table of V values and C classes: the sums over the values of each of
    G groups must be `joint`, shape (G, C). `codes` has the group of each value, and `name` is the
    mask that forms the groups.
    """
    labels = joint.shape[1]
    cells = (codes[:, None] * labels + np.arange(labels)).ravel()
    return Groups(name, cells, joint.ravel())


def histogram_family(histogram: Floats, labels: int) -> Groups:
    """Return the constraints that fix the row totals of a table of V values and `labels` classes to
    `histogram`, shape (V,).
    """
    return Groups("histogram", np.repeat(np.arange(len(histogram)), labels), histogram)
