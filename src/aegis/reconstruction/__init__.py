"""Reconstruction of the joint of an attribute and the label, from whatever is known of it."""

from aegis.reconstruction.channels import (
    check_channel,
    deterministic_channel,
    expected_joint,
    privacy_level,
)
from aegis.reconstruction.closed import closed_form
from aegis.reconstruction.combine import all_evidence
from aegis.reconstruction.composite import composite_link
from aegis.reconstruction.evidence import Evidence, MaskedJoint, NoisyJoint
from aegis.reconstruction.families import Groups, Margin
from aegis.reconstruction.ipf import ipf
from aegis.reconstruction.methods import METHODS, Settings, reconstruct
from aegis.reconstruction.result import Reconstruction, total_variation
from aegis.reconstruction.rounding import controlled_rounding, randomised_rounding
from aegis.reconstruction.sample import sampling
from aegis.reconstruction.smooth import smooth
from aegis.reconstruction.unfold import channel_em, unfold

__all__ = [
    "METHODS",
    "Evidence",
    "Groups",
    "Margin",
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
    "deterministic_channel",
    "expected_joint",
    "ipf",
    "privacy_level",
    "randomised_rounding",
    "reconstruct",
    "sampling",
    "smooth",
    "total_variation",
    "unfold",
]
