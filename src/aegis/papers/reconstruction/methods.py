"""Register the methods of reconstruction; one of them draws original values at random (the
comparator SAMPLING of the AEGIS paper).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.blas import one_blas_thread
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, Progress
from aegis.papers.reconstruction.combine import all_evidence, smooth
from aegis.papers.reconstruction.evidence import Evidence, Reconstruction, aggregate
from aegis.papers.reconstruction.families import closed_form, the_only_mask
from aegis.papers.reconstruction.ipf import histogram_family, ipf, joint_family
from aegis.papers.reconstruction.unfold import channel_em
from aegis.registry import Registry


def sampling(evidence: Evidence, *, seed: int) -> Reconstruction:
    """Draw an original value for each masked row, and return the counts by value and label.

    Original values are drawn with replacement from those that the masked value may represent. If
    the histogram is known, they have the probabilities of the histogram; otherwise, they are
    equally likely. The expected counts are the result of `closed_form`, which cannot rank
    configurations (Theorem 1 in theory.md). So a ranking by drawn counts is only noise.

    Parameters
    ----------
    evidence
        The known counts: rows by masked value and class of exactly one mask, as integers.
    seed
        Seed of the draw.

    Returns
    -------
    Reconstruction
        Integer counts of V original values and C classes, shape (V, C). They agree with the counts
        of masked values exactly, and with the histogram only on average.

    Raises
    ------
    PolicyError
        There are counts of no mask, or of several masks.
    DataError
        A count is not an integer.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), comparator SAMPLING.
    """
    mask = the_only_mask(evidence, "sampling")
    if (mask.joint != np.round(mask.joint)).any():
        raise DataError(
            f"The contingency table of mask {mask.name!r} has fractions, but sampling draws whole rows.",
            hint="Round the table first (controlled_rounding).",
        )
    histogram = evidence.histogram
    weights = np.ones(evidence.atoms) if histogram is None else histogram
    generator = np.random.default_rng(seed)
    table = np.zeros((evidence.atoms, evidence.labels))
    order = np.argsort(mask.codes, kind="stable")
    bounds = np.searchsorted(mask.codes[order], np.arange(mask.groups + 1))
    for group in np.flatnonzero(mask.joint.any(axis=1)):
        members = order[bounds[group] : bounds[group + 1]]
        likely = weights[members]
        counts = mask.joint[group].astype(np.int64)
        table[members] = generator.multinomial(counts, likely / likely.sum()).T
    return Reconstruction(
        table,
        "sampling",
        residual=float(np.abs(aggregate(mask.codes, table, mask.groups) - mask.joint).max()),
        notes=("One random draw; in expectation it equals the closed form (Theorem 1).",),
    )


@dataclass(frozen=True)
class Settings:
    """Settings for all reconstruction methods; each method uses only some of them.

    Attributes
    ----------
    seed
        Seed for methods that draw at random.
    tolerance
        Iterative proportional fitting (IPF) stops when no known count is missed by more than this
        share of the number of rows.
    max_sweeps
        Largest number of times that IPF goes through all known counts.
    progress
        Receives the progress of reconstructions that take long, step by step.
    """

    seed: int = 0
    tolerance: float = 1e-8
    max_sweeps: int = 10_000
    progress: Progress = SILENT

    @property
    def of_sweeps(self) -> dict[str, Any]:
        """The settings of methods that use iterative proportional fitting, as keyword arguments."""
        names = ("tolerance", "max_sweeps", "progress")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Method:
    """A registered method that estimates the rows by unmasked value and label class.

    Attributes
    ----------
    name
        The name that users write.
    run
        Function that takes the known counts and the settings, and returns the estimate.
    """

    name: str
    run: Callable[[Evidence, Settings], Reconstruction]


METHODS: Registry[Method] = Registry("reconstruction method")
"""All reconstruction methods by name, in the order in which they are documented."""


@one_blas_thread
def reconstruct(
    evidence: Evidence,
    method: str = "all-evidence",
    *,
    settings: Settings | None = None,
    truth: npt.ArrayLike | None = None,
) -> Reconstruction:
    """Estimate how many rows each unmasked value of an attribute and each label class have.

    Parameters
    ----------
    evidence
        The known counts of the attribute's masked values, and perhaps its histogram.
    method
        A name from `METHODS`.
    settings
        Seed, tolerance, limits, progress; None for the defaults.
    truth
        The true rows by V unmasked values and C classes, shape (V, C), if known. Then the result
        has the total variation distance between the estimate and the truth.

    Raises
    ------
    PolicyError
        The method is unknown, or needs counts that are missing.
    DataError
        Known counts contradict each other.
    """
    estimated = METHODS.get(method).run(evidence, settings or Settings())
    return estimated if truth is None else estimated.against(truth)


def published_ipf(evidence: Evidence, settings: Settings) -> Reconstruction:
    """Estimate the rows by unmasked value and class by iterative proportional fitting from a
    uniform start table, as published (AEGIS, Laskar et al., SIGMOD 2025).

    The table is fitted to the rows by masked value and class of each mask and to the histogram.
    Raise `PolicyError` if neither is known.
    """
    families = [joint_family(mask.name, mask.codes, mask.joint) for mask in evidence.masked]
    if evidence.histogram is not None:
        families.append(histogram_family(evidence.histogram, evidence.labels))
    if not families:
        raise PolicyError("Method 'ipf' needs a masked joint or a histogram; given neither.")
    start = np.ones((evidence.atoms, evidence.labels))
    return ipf(start, families, **settings.of_sweeps)


METHODS.register_all(
    Method("all-evidence", lambda evidence, settings: all_evidence(evidence, **settings.of_sweeps)),
    Method("smooth", lambda evidence, settings: smooth(evidence, **settings.of_sweeps)),
    Method(
        "channel-em",
        lambda evidence, settings: channel_em(
            evidence, max_sweeps=settings.max_sweeps, progress=settings.progress
        ),
    ),
    Method("closed-form", lambda evidence, _: closed_form(evidence)),
    Method("ipf", published_ipf),
    Method("sampling", lambda evidence, settings: sampling(evidence, seed=settings.seed)),
)
