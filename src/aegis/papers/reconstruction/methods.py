"""Register the methods of reconstruction.

Draw original values at random: the comparator SAMPLING of the AEGIS paper.
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
from aegis.papers.reconstruction.families import Family, closed_form, the_only_mask
from aegis.papers.reconstruction.ipf import histogram_family, ipf, joint_family
from aegis.papers.reconstruction.unfold import channel_em
from aegis.registry import Registry


def sampling(evidence: Evidence, *, seed: int) -> Reconstruction:
    """Draw an original value for each masked row, and return the counts by value and label.

    Original values are drawn with replacement from those that the masked value may represent. If
    the histogram is known, they have the probabilities of the histogram; otherwise, they are
    equally likely. The expected counts are the result of `closed_form`, which contains no
    information on the order of configurations (Theorem 1 in theory.md). So the order of
    configurations by drawn counts is only noise.

    Parameters
    ----------
    evidence
        The known counts: rows by masked value and class (joint counts) of exactly one mask, as
        integers.
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
        The evidence has the joint counts of no mask, or of several masks.
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
        wanted = mask.joint[group].astype(np.int64)
        table[members] = generator.multinomial(wanted, likely / likely.sum()).T
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
        Largest difference from a known count at which iterative proportional fitting (IPF) stops,
        as a share of the number of rows.
    max_sweeps
        Largest number of sweeps that IPF makes over all known counts.
    progress
        Receives the progress of reconstructions that take long, step by step.
    """

    seed: int = 0
    tolerance: float = 1e-8
    max_sweeps: int = 10_000
    progress: Progress = SILENT

    @property
    def of_sweeps(self) -> dict[str, Any]:
        """The settings of methods that sweep over all known counts, as keywords."""
        names = ("tolerance", "max_sweeps", "progress")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Method:
    """A registered method that estimates the joint counts of an attribute and the label.

    Attributes
    ----------
    name
        The name that users write.
    run
        Function that returns the result for evidence and settings.
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
    """Estimate the joint counts of an attribute's unmasked values (atoms) and the label.

    Parameters
    ----------
    evidence
        The known counts of the attribute's masked values, and perhaps its histogram.
    method
        A name from `METHODS`.
    settings
        Seed, tolerance, limits, progress; None for the defaults.
    truth
        The true joint counts, shape (V, C), if known. Then the result contains the total variation
        distance between the estimate and these counts.

    Raises
    ------
    PolicyError
        The method is unknown, or needs evidence that is missing.
    DataError
        The evidence contradicts itself.
    """
    estimated = METHODS.get(method).run(evidence, settings or Settings())
    return estimated if truth is None else estimated.against(truth)


def published_ipf(evidence: Evidence, settings: Settings) -> Reconstruction:
    """Fit a table of rows by unmasked value and class by iterative proportional fitting (IPF), from
    a uniform start table, without the shortcuts of the method `all-evidence`.

    The table is fitted to the rows by masked value and class of each mask and to the histogram, as
    in the published procedure (AEGIS, Laskar et al., SIGMOD 2025). Raise `PolicyError` if neither
    is known.
    """
    families: list[Family] = [
        joint_family(mask.name, mask.codes, mask.joint) for mask in evidence.masked
    ]
    if evidence.histogram is not None:
        families.insert(0, histogram_family(evidence.histogram, evidence.labels))
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
