"""Reconstruct the joint counts of an attribute and the label from counts of masked values."""

from aegis.measures.checks import check_channel, controlled_rounding
from aegis.papers.reconstruction.combine import all_evidence, smooth
from aegis.papers.reconstruction.composite import composite_link
from aegis.papers.reconstruction.evidence import (
    Evidence,
    MaskedJoint,
    NoisyJoint,
    Reconstruction,
    randomised_rounding,
    total_variation,
)
from aegis.papers.reconstruction.families import Groups, closed_form
from aegis.papers.reconstruction.ipf import ipf
from aegis.papers.reconstruction.methods import METHODS, Settings, reconstruct, sampling
from aegis.papers.reconstruction.unfold import channel_em, unfold

__all__ = [
    "METHODS",
    "Evidence",
    "Groups",
    "MaskedJoint",
    "NoisyJoint",
    "Reconstruction",
    "Settings",
    "all_evidence",
    "channel_em",
    "check_channel",
    "closed_form",
    "composite_link",
    "controlled_rounding",
    "ipf",
    "randomised_rounding",
    "reconstruct",
    "sampling",
    "smooth",
    "total_variation",
    "unfold",
]
