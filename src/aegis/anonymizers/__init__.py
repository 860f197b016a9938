"""Record-level methods: microaggregation, clustering, Mondrian, MO-OBAM, the hybrid scheme."""

from aegis.anonymizers.base import ANONYMIZERS, Anonymizer, Grouped, Options, Style
from aegis.anonymizers.encode import encode, encode_for
from aegis.anonymizers.groups import Grouping
from aegis.anonymizers.hybrid import HybridOptions
from aegis.anonymizers.losses import InformationLoss, information_loss
from aegis.anonymizers.members import DiverseOptions
from aegis.anonymizers.microaggregation import VariableOptions
from aegis.anonymizers.mondrian import MondrianOptions
from aegis.anonymizers.obam import FrontPoint, ObamOptions, front, grid_of_clusters
from aegis.anonymizers.options import OptionEntry, listed_options
from aegis.anonymizers.recipe import Recipe, dump_recipe, load_recipe, options_dict, recipe_of
from aegis.anonymizers.records import (
    Attribute,
    Hierarchy,
    Records,
    SensitiveAttribute,
)
from aegis.anonymizers.release import build_release
from aegis.anonymizers.run import Anonymized, RecordTable, anonymize_records, hold, read_records
from aegis.policy import AttributeKind

__all__ = [
    "ANONYMIZERS",
    "Anonymized",
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
    "OptionEntry",
    "Options",
    "Recipe",
    "RecordTable",
    "Records",
    "SensitiveAttribute",
    "Style",
    "VariableOptions",
    "anonymize_records",
    "build_release",
    "dump_recipe",
    "encode",
    "encode_for",
    "front",
    "grid_of_clusters",
    "hold",
    "information_loss",
    "listed_options",
    "load_recipe",
    "options_dict",
    "read_records",
    "recipe_of",
]
