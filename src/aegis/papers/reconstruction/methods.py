"""Register the methods of reconstruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.papers.reconstruction.closed import closed_form
from aegis.papers.reconstruction.combine import all_evidence
from aegis.papers.reconstruction.evidence import Evidence
from aegis.papers.reconstruction.families import Family
from aegis.papers.reconstruction.ipf import histogram_family, ipf, joint_family
from aegis.papers.reconstruction.result import Reconstruction
from aegis.papers.reconstruction.sample import sampling
from aegis.papers.reconstruction.smooth import smooth
from aegis.papers.reconstruction.unfold import channel_em
from aegis.progress import SILENT, Progress
from aegis.registry import Registry


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
    """Run iterative proportional fitting (IPF) on all unmasked values, from a uniform start table,
    without the shortcuts of `all-evidence`.

    The table is fitted to the joint counts of each mask and to the histogram, as in the published
    procedure (AEGIS, Laskar et al., SIGMOD 2025). Raise `PolicyError` if there are none.
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
