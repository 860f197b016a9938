"""Register the methods of reconstruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Method:
    """A registered method that estimates the joint counts of an attribute and the label.

    Attributes
    ----------
    name
        The name that users write.
    summary
        Description in one sentence.
    formula
        The equation of the method, in the notation of the theory page.
    reference
        Its publication.
    needs
        The evidence that it needs, in words.
    run
        Function that returns the result for evidence and settings.
    """

    name: str
    summary: str
    formula: str
    reference: str
    needs: str
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
    procedure. Raise `PolicyError` if there are none.
    """
    families: list[Family] = [
        joint_family(mask.name, mask.codes, mask.joint) for mask in evidence.masked
    ]
    if evidence.histogram is not None:
        families.insert(0, histogram_family(evidence.histogram, evidence.labels))
    if not families:
        raise PolicyError("Method 'ipf' needs a masked joint or a histogram; given neither.")
    return ipf(
        np.ones((evidence.atoms, evidence.labels)),
        families,
        tolerance=settings.tolerance,
        max_sweeps=settings.max_sweeps,
        progress=settings.progress,
    )


METHODS.register_all(
    Method(
        "all-evidence",
        "The table closest to uniform that agrees with every candidate mask's joint at once.",
        "argmin KL(F || uniform) subject to F(M(A),Y) for every candidate M, and f(A) if known",
        "Deming and Stephan (1940); Csiszar (1975)",
        "one masked joint or more",
        lambda evidence, settings: all_evidence(
            evidence,
            tolerance=settings.tolerance,
            max_sweeps=settings.max_sweeps,
            progress=settings.progress,
        ),
    ),
    Method(
        "smooth",
        "Counts or label shares along an order, smooth as far as that predicts, and all evidence.",
        "mu = C gamma, gamma = exp(X b), minimise deviance + lambda |D b|^2; lambda by AIC",
        "Rizzi, Gampe and Eilers (2015)",
        "one masked joint or more; an ordered attribute",
        lambda evidence, settings: smooth(
            evidence,
            tolerance=settings.tolerance,
            max_sweeps=settings.max_sweeps,
            progress=settings.progress,
        ),
    ),
    Method(
        "channel-em",
        "The most likely table behind the reports of noise masks, by expectation maximisation.",
        "theta_i *= sum_j w_j K_ij / (theta K)_j, per label",
        "Shepp and Vardi (1982); Varadhan and Roland (2008)",
        "one noisy joint or more",
        lambda evidence, settings: channel_em(
            evidence, max_sweeps=settings.max_sweeps, progress=settings.progress
        ),
    ),
    Method(
        "closed-form",
        "What IPF reaches from one mask: AEGIS+1D with the histogram, AEGIS-1D without it.",
        "f(a) F(M(a),y) / f(M(a)), or F(M(a),y) / |preimage of M(a)|",
        "AEGIS (Laskar et al., SIGMOD 2025); Theorem 1",
        "exactly one masked joint",
        lambda evidence, _: closed_form(evidence),
    ),
    Method(
        "ipf",
        "Iterative proportional fitting as published, sweep by sweep, for reproduction.",
        "F *= target / current, family by family",
        "AEGIS (Laskar et al., SIGMOD 2025); Deming and Stephan (1940)",
        "a masked joint or the histogram",
        published_ipf,
    ),
    Method(
        "sampling",
        "One random draw of originals compatible with the masked values; a comparator.",
        "a ~ uniform (or f) over the preimage of M(a), label kept",
        "AEGIS (Laskar et al., SIGMOD 2025), comparator SAMPLING",
        "exactly one masked joint of whole rows",
        lambda evidence, settings: sampling(evidence, seed=settings.seed),
    ),
)
