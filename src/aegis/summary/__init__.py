"""Summarise a table near the data, and store the summary on disk as a bundle."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aegis.summary.attributes import pooled_groups
from aegis.summary.build import summarize
from aegis.summary.classes import PERSON, CountedClasses, ShownColumns, count_classes
from aegis.summary.cooccurrence import Chunk, Matrix, PairCounts, count_pairs
from aegis.summary.count_cells import count_in_engine
from aegis.summary.declared import declared_policy, lock, says_rule
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.merge import merge
from aegis.summary.model import (
    AttributeSummary,
    Candidate,
    Domain,
    Information,
    LabelSummary,
    Summary,
)
from aegis.summary.noise import check_noise, expected_reports, level_channel
from aegis.summary.ordered import RANGES
from aegis.summary.withhold import withhold

__all__ = [
    "PERSON",
    "RANGES",
    "AttributeSummary",
    "Candidate",
    "Chunk",
    "CountedClasses",
    "Domain",
    "FrequencyTable",
    "Information",
    "LabelSummary",
    "Matrix",
    "PairCounts",
    "ShownColumns",
    "Summary",
    "check_noise",
    "combine",
    "count_classes",
    "count_in_engine",
    "count_pairs",
    "declared_policy",
    "expected_reports",
    "level_channel",
    "load_bundle",
    "lock",
    "merge",
    "merge_bundles",
    "pooled_groups",
    "save_bundle",
    "says_rule",
    "summarize",
    "withhold",
]

if TYPE_CHECKING:
    from aegis.summary.bundle.file import load_bundle, save_bundle
    from aegis.summary.bundle.merge import merge_bundles


def __getattr__(name: str) -> Any:
    """Import the functions that read and write bundles at their first use; most commands do not
    need them.
    """
    if name in ("load_bundle", "save_bundle"):
        return getattr(import_module("aegis.summary.bundle.file"), name)
    if name == "merge_bundles":
        return getattr(import_module("aegis.summary.bundle.merge"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
