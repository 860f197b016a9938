"""Summarise a table near the data, and store the summary on disk as a bundle."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aegis.summary.attributes import RANGES, level_channel
from aegis.summary.build import lock, summarize
from aegis.summary.classes import PERSON, count_classes
from aegis.summary.cooccurrence import PairCounts
from aegis.summary.count_cells import count_in_engine
from aegis.summary.frequency import FrequencyTable, combine
from aegis.summary.merge import merge
from aegis.summary.model import (
    AttributeSummary,
    Candidate,
    Information,
    LabelSummary,
    Summary,
)
from aegis.summary.withhold import withhold

__all__ = [
    "PERSON",
    "RANGES",
    "AttributeSummary",
    "Candidate",
    "FrequencyTable",
    "Information",
    "LabelSummary",
    "PairCounts",
    "Summary",
    "combine",
    "count_classes",
    "count_in_engine",
    "level_channel",
    "load_bundle",
    "lock",
    "merge",
    "merge_bundles",
    "save_bundle",
    "summarize",
    "withhold",
]

if TYPE_CHECKING:
    from aegis.summary.bundle.file import load_bundle, merge_bundles, save_bundle


def __getattr__(name: str) -> Any:
    """Import the functions that read and write bundles at their first use; most commands do not
    need them.
    """
    if name in ("load_bundle", "merge_bundles", "save_bundle"):
        return getattr(import_module("aegis.summary.bundle.file"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
