"""Record-level methods: microaggregation, clustering, Mondrian, MO-OBAM, the hybrid scheme."""

from aegis.anonymizers.base import ANONYMIZERS, Anonymizer, Grouped, Options, Style
from aegis.anonymizers.encode import encode, encode_for
from aegis.anonymizers.groups import Grouping
from aegis.anonymizers.hybrid import HybridOptions
from aegis.anonymizers.losses import InformationLoss, information_loss
from aegis.anonymizers.members import DiverseOptions
from aegis.anonymizers.microaggregation import VariableOptions
from aegis.anonymizers.mondrian import MondrianOptions
from aegis.anonymizers.obam import FrontPoint, ObamOptions, front
from aegis.anonymizers.records import (
    Attribute,
    AttributeKind,
    Hierarchy,
    Records,
    SensitiveAttribute,
)
from aegis.anonymizers.release import build_release

__all__ = [
    "ANONYMIZERS",
    "Anonymizer",
    "Attribute",
    "AttributeKind",
    "DiverseOptions",
    "FrontPoint",
    "Grouped",
    "Grouping",
    "Hierarchy",
    "HybridOptions",
    "InformationLoss",
    "MondrianOptions",
    "ObamOptions",
    "Options",
    "Records",
    "SensitiveAttribute",
    "Style",
    "VariableOptions",
    "build_release",
    "encode",
    "encode_for",
    "front",
    "information_loss",
]
