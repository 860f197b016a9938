"""Define hierarchies, groupings, and masks (frozen objects that each build an Ibis expression)."""

from aegis.masks.base import SHARED_ROWS, SUPPRESSED, Kind, Mask, ValueCounts
from aegis.masks.bounds import rows_to_share
from aegis.masks.catalog import MASKS, MaskParameter, MaskType, parse_mask
from aegis.masks.categories import Group, KeepFrequent
from aegis.masks.compose import Compose, parts_of
from aegis.masks.dates import Truncate
from aegis.masks.grouping import (
    Grouping,
    common_refinement,
    evaluate,
    evaluate_columns,
    refines,
    transform,
)
from aegis.masks.hierarchy import Hierarchy
from aegis.masks.intervals import Bucketize, EqualWidth, Quantiles
from aegis.masks.level import Level
from aegis.masks.lookup import join_lookups, lookup_of
from aegis.masks.noise.base import NoiseMask, channel_blocks, privacy_account
from aegis.masks.numeric import BottomCode, EraseDigits, Round, TopCode
from aegis.masks.plain import Identity, Suppress
from aegis.masks.text import Blur
from aegis.masks.tokenise import Tokenise

__all__ = [
    "MASKS",
    "SHARED_ROWS",
    "SUPPRESSED",
    "Blur",
    "BottomCode",
    "Bucketize",
    "Compose",
    "EqualWidth",
    "EraseDigits",
    "Group",
    "Grouping",
    "Hierarchy",
    "Identity",
    "KeepFrequent",
    "Kind",
    "Level",
    "Mask",
    "MaskParameter",
    "MaskType",
    "NoiseMask",
    "Quantiles",
    "Round",
    "Suppress",
    "Tokenise",
    "TopCode",
    "Truncate",
    "ValueCounts",
    "channel_blocks",
    "common_refinement",
    "evaluate",
    "evaluate_columns",
    "join_lookups",
    "lookup_of",
    "parse_mask",
    "parts_of",
    "privacy_account",
    "refines",
    "rows_to_share",
    "transform",
]
