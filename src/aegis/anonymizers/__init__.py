"""The parts that all record-level methods share: encoded records, groups, releases and losses."""

from aegis.anonymizers.base import ANONYMIZERS, Anonymizer, Grouped, Options, Style, TradeOff
from aegis.anonymizers.encode import encode, encode_for
from aegis.anonymizers.groups import InformationLoss, RecordGroups, information_loss
from aegis.anonymizers.method import OptionEntry, listed_options
from aegis.anonymizers.recipe import Recipe, dump_recipe, load_recipe, recipe_of
from aegis.anonymizers.records import (
    RecordAttribute,
    Records,
    RecordTable,
    SensitiveAttribute,
    ValueTree,
)
from aegis.anonymizers.release import build_release
from aegis.anonymizers.run import (
    Anonymized,
    anonymize_records,
    check_release,
    read_records,
)
from aegis.policy import AttributeKind

__all__ = [
    "ANONYMIZERS",
    "Anonymized",
    "Anonymizer",
    "AttributeKind",
    "Grouped",
    "InformationLoss",
    "OptionEntry",
    "Options",
    "Recipe",
    "RecordAttribute",
    "RecordGroups",
    "RecordTable",
    "Records",
    "SensitiveAttribute",
    "Style",
    "TradeOff",
    "ValueTree",
    "anonymize_records",
    "build_release",
    "check_release",
    "dump_recipe",
    "encode",
    "encode_for",
    "information_loss",
    "listed_options",
    "load_recipe",
    "read_records",
    "recipe_of",
]
