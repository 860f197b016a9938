"""Record-level methods: microaggregation, clustering, Mondrian, MO-OBAM, sampling, the hybrid scheme."""

from aegis.anonymizers.base import ANONYMIZERS, Anonymizer, Grouped, Options, Style
from aegis.anonymizers.encode import encode, encode_for
from aegis.anonymizers.groups import RecordGroups
from aegis.anonymizers.hybrid import HybridOptions
from aegis.anonymizers.local_suppression import SuppressionOptions
from aegis.anonymizers.losses import InformationLoss, information_loss
from aegis.anonymizers.members import DiverseOptions
from aegis.anonymizers.microaggregation import VariableOptions
from aegis.anonymizers.mondrian import MondrianOptions
from aegis.anonymizers.obam.method import ObamOptions, ObamPoint, front, grid_of_clusters
from aegis.anonymizers.options import OptionEntry, listed_options
from aegis.anonymizers.recipe import Recipe, dump_recipe, load_recipe, options_dict, recipe_of
from aegis.anonymizers.records import (
    RecordAttribute,
    Records,
    SensitiveAttribute,
    ValueTree,
)
from aegis.anonymizers.release import build_release
from aegis.anonymizers.run import (
    Anonymized,
    RecordTable,
    anonymize_records,
    check_release,
    read_records,
)
from aegis.anonymizers.safe_pub import SampledOptions
from aegis.anonymizers.swapping import RankSwapOptions, RecordSwapOptions
from aegis.policy import AttributeKind

__all__ = [
    "ANONYMIZERS",
    "Anonymized",
    "Anonymizer",
    "AttributeKind",
    "DiverseOptions",
    "Grouped",
    "HybridOptions",
    "InformationLoss",
    "MondrianOptions",
    "ObamOptions",
    "ObamPoint",
    "OptionEntry",
    "Options",
    "RankSwapOptions",
    "Recipe",
    "RecordAttribute",
    "RecordGroups",
    "RecordSwapOptions",
    "RecordTable",
    "Records",
    "SampledOptions",
    "SensitiveAttribute",
    "Style",
    "SuppressionOptions",
    "ValueTree",
    "VariableOptions",
    "anonymize_records",
    "build_release",
    "check_release",
    "dump_recipe",
    "encode",
    "encode_for",
    "front",
    "grid_of_clusters",
    "information_loss",
    "listed_options",
    "load_recipe",
    "options_dict",
    "read_records",
    "recipe_of",
]
