"""Unfold noise masks: estimate true joint counts from noisy values (reports) by EM."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from aegis.arrays import Floats
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, Progress
from aegis.measures.checks import check_channel, counts
from aegis.papers.reconstruction.combine import all_evidence, drop_implied, merge_intervals
from aegis.papers.reconstruction.evidence import AGREEMENT, Evidence, MaskedJoint, Reconstruction
from aegis.papers.reconstruction.families import Groups
from aegis.papers.reconstruction.ipf import histogram_family, ipf, joint_family

TRACE = 1e-3
"""Share of the table from exact evidence in the seed of IPF.

It keeps open the cells that EM emptied, because IPF may need them to meet a constraint.
"""


@dataclass(frozen=True, eq=False)
class Unfolding:
    """A maximum-likelihood estimate of the true counts from noisy reports.

    Attributes
    ----------
    table
        Estimated counts of V true values and C label classes, shape (V, C).
    converged, iterations
        Whether the EM algorithm converged, and the number of its steps (0 if a linear system gave
        the solution).
    """

    table: Floats
    converged: bool
    iterations: int


def unfold(
    channel: npt.ArrayLike,
    reported: npt.ArrayLike,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 10_000,
    direct: bool = True,
    progress: Progress = SILENT,
) -> Unfolding:
    """Return the maximum-likelihood estimate of the true counts from reports (noisy values).

    For each class, let w_j be the number of rows with report j, theta_i the number with true value
    i, and K_ij the probability of report j for true value i. A step is

        theta_i <- theta_i sum_j w_j K_ij / (theta K)_j.

    This is the EM algorithm of a mixture with known components, accelerated by squared
    extrapolation. If the linear system K' theta = w has a unique solution that is not negative, it
    is returned instead.

    Parameters
    ----------
    channel
        K for V true values and R reports, shape (V, R); each row sums to 1.
    reported
        w for each of the C label classes, shape (R, C), or shape (R,).
    tolerance
        Stop when one step gains less than `tolerance` times N in log likelihood (nats).
    max_iterations
        Largest number of EM steps.
    direct
        Whether to try the linear system first.
    progress
        Receives one step.

    Returns
    -------
    Unfolding
        The estimate. It keeps the total of each label class.

    Raises
    ------
    PolicyError
        A row of the channel is not a distribution.
    DataError
        Shapes do not match, or a report has rows but is possible for no true value.

    References
    ----------
    Shepp and Vardi (1982), equation 2.13; extrapolation: Varadhan and Roland (2008), scheme S3.
    """
    matrix = check_channel(channel)
    rows = _reports(matrix, reported)
    if direct:
        solution = _linear_solution(matrix, rows)
        if solution is not None:
            return Unfolding(solution, True, 0)
    return Unfolding(*_maximise(matrix, rows, tolerance * rows.sum(), max_iterations, progress))


def channel_em(
    evidence: Evidence,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 10_000,
    max_sweeps: int = 10_000,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Estimate the rows by value and class from noisy values (reports) and exact counts, by maximum
    likelihood.

    For several noise masks of the same rows, the sum of their log likelihoods is maximised. Then
    iterative proportional fitting (IPF) scales the estimate to agree exactly with deterministic
    masks and the histogram.

    Parameters
    ----------
    evidence
        The known counts: rows by noisy value and class of at least one noise mask, and perhaps the
        counts of deterministic masks and the histogram.
    tolerance, max_iterations, progress
        When the EM algorithm stops (as in `unfold`), and the receiver of progress.
    max_sweeps
        Largest number of sweeps of IPF.

    Returns
    -------
    Reconstruction
        Rows by V unmasked values and C classes. `details["misfit"]` is the largest deviation from
        the counts of reports. `residual` is the largest deviation from exact counts; without exact
        counts, it is the misfit.

    Raises
    ------
    PolicyError
        There are no counts of a noise mask.
    DataError
        Known counts contradict each other.
    """
    if not evidence.noisy:
        raise PolicyError(
            "Method 'channel-em' needs the reports of at least one noise mask; given none.",
            hint="Use 'all-evidence' for deterministic masks.",
        )
    channel, reported = _side_by_side(evidence)
    unfolded = unfold(
        channel, reported, tolerance=tolerance, max_iterations=max_iterations, progress=progress
    )
    # Each mask reports every row once, so the stacked reports count the rows once per mask.
    table = unfolded.table / (len(evidence.noisy) + len(evidence.masked))
    fitted = _reconstructed(table, unfolded)
    families = _exact_families(evidence)
    if families:
        seed = (1 - TRACE) * table + TRACE * _of_exact_evidence(evidence)
        raked = ipf(seed, families, max_sweeps=max_sweeps, progress=progress)
        fitted = _after(fitted, raked)
    misfit = max(_misfit(n.channel, n.joint, fitted.table) for n in evidence.noisy)
    residual = evidence.residual(fitted.table) if families else misfit
    return replace(fitted, residual=residual, details={"misfit": misfit})


def _reconstructed(table: Floats, unfolded: Unfolding) -> Reconstruction:
    converged, iterations = unfolded.converged, unfolded.iterations
    notes = () if converged else (f"EM did not converge in {iterations} iterations.",)
    return Reconstruction(table, "channel-em", converged, iterations, notes=notes)


def _after(fitted: Reconstruction, raked: Reconstruction) -> Reconstruction:
    """Return the result of two fits, where `raked` started from the table of `fitted`: the table of
    `raked`, with the iterations and notes of both.
    """
    return replace(
        fitted,
        table=raked.table,
        converged=fitted.converged and raked.converged,
        iterations=fitted.iterations + raked.iterations,
        notes=(*fitted.notes, *raked.notes),
    )


def _of_exact_evidence(evidence: Evidence) -> Floats:
    """Return the table of rows by value and class that agrees with all exactly known counts: those
    of deterministic masks, the histogram and the rows of each class.
    """
    totals = evidence.noisy[0].joint.sum(axis=0, keepdims=True)
    everything = MaskedJoint("label", np.zeros(evidence.atoms, dtype=np.int64), totals)
    return all_evidence(replace(evidence, masked=(*evidence.masked, everything), noisy=())).table


def _side_by_side(evidence: Evidence) -> tuple[Floats, Floats]:
    parts = [(noise.channel, noise.joint) for noise in evidence.noisy] + [
        (np.eye(mask.groups)[mask.codes], mask.joint) for mask in evidence.masked
    ]
    channel = np.concatenate([part[0] for part in parts], axis=1) / len(parts)
    return channel, np.concatenate([part[1] for part in parts])


def _exact_families(evidence: Evidence) -> list[Groups]:
    slack = AGREEMENT * evidence.rows
    families = [
        joint_family(mask.name, mask.codes, mask.joint)
        for mask in drop_implied(merge_intervals(evidence.masked, slack), slack)
    ]
    if evidence.histogram is not None:
        families.append(histogram_family(evidence.histogram, evidence.labels))
    return families


def _reports(channel: Floats, reported: npt.ArrayLike) -> Floats:
    """Check `reported`, the rows by noisy value (report) and label class, and return it with the
    shape (R, C). Raise `DataError` if its shape is wrong, or if a report has rows although no true
    value can give it.
    """
    rows = counts(reported, "The reported joint")
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or len(rows) != channel.shape[1]:
        raise DataError(
            f"The reported joint has the shape {rows.shape}, and the channel has "
            f"{channel.shape[1]} possible reports.",
            hint="The joint must have one row for each possible report.",
        )
    _check_possible(channel, rows)
    return rows


def _check_possible(channel: Floats, rows: Floats) -> None:
    impossible = (channel.max(axis=0) == 0) & (rows.sum(axis=1) > 0)
    if impossible.any():
        report = int(np.flatnonzero(impossible)[0])
        raise DataError(
            f"Report {report} came in {rows[report].sum():g} times, but no true value can give it.",
            hint="Channel and reports must belong to the same mask.",
        )


def _linear_solution(channel: Floats, rows: Floats) -> Floats | None:
    """Solve `channel`' theta = `rows` for theta, the rows by true value. Return None unless the
    solution is unique, exact and not negative. `channel` has the probability of each report for
    each true value, and `rows` the rows by report.
    """
    if channel.shape[1] < channel.shape[0]:
        return None
    solution, _, rank, _ = scipy.linalg.lstsq(channel.T, rows, cond=1e-12, lapack_driver="gelsy")
    rounding = 1e-12 * rows.sum()
    if (
        rank < channel.shape[0]
        or solution.min() < -rounding
        or _misfit(channel, rows, solution) > rounding
    ):
        return None
    table: Floats = np.maximum(solution, 0.0)
    return table


def _maximise(
    channel: Floats, rows: Floats, limit: float, max_iterations: int, progress: Progress
) -> tuple[Floats, bool, int]:
    reports = np.ascontiguousarray(channel.T)

    def mapped(table: Floats) -> Floats:
        expected = reports @ table
        ratio = np.divide(rows, expected, out=np.zeros_like(expected), where=expected > 0)
        return table * (channel @ ratio)

    def gain(old: Floats, new: Floats) -> float:
        before = reports @ old
        change = np.divide(
            reports @ (new - old), before, out=np.zeros_like(before), where=before > 0
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(rows > 0, rows * np.log1p(change), 0.0)
        total = float(terms.sum())
        return total if np.isfinite(total) else -np.inf

    table = np.tile(rows.sum(axis=0) / len(channel), (len(channel), 1))
    used = 0
    with progress.step("Expectation maximisation", max_iterations) as step:
        while used < max_iterations:
            first = mapped(table)
            second = mapped(first)
            leap = mapped(_extrapolated(table, first, second))
            used += 3
            step.advance(3)
            best = leap if gain(second, leap) >= 0 else second
            improvement = gain(table, best)
            table = best
            if improvement <= limit:
                return table, True, used
    return table, False, used


def _extrapolated(start: Floats, first: Floats, second: Floats) -> Floats:
    """Extrapolate quadratically from a table and the tables after one and two EM steps. The result
    is positive and has the same totals. The step length is chosen for each label class separately.
    """
    step = first - start
    bend = second - first - step
    length = np.linalg.norm(bend, axis=0)
    factor = -np.divide(
        np.linalg.norm(step, axis=0), length, out=np.ones_like(length), where=length > 0
    )
    factor = np.minimum(factor, -1.0)
    leap = start - 2 * factor * step + factor**2 * bend
    # A leap over the border would empty a cell for good: there the plain step stands.
    leap = np.where(leap > 0, leap, second)
    totals = leap.sum(axis=0)
    scale = np.divide(second.sum(axis=0), totals, out=np.zeros_like(totals), where=totals > 0)
    result: Floats = leap * scale
    return result


def _misfit(channel: Floats, rows: Floats, table: Floats) -> float:
    return float(np.abs(channel.T @ table - rows).max())
