"""Define hierarchies, groupings, and masks (frozen objects that each build an Ibis expression)."""

from aegis.masks.base import (
    SHARED_ROWS,
    SUPPRESSED,
    Identity,
    Kind,
    Mask,
    NoiseMask,
    Suppress,
    ValueCounts,
    channel_blocks,
    privacy_account,
)
from aegis.masks.catalog import MASKS, MaskParameter, MaskType, parse_mask
from aegis.masks.categories import Group, KeepFrequent
from aegis.masks.grouping import (
    Compose,
    Grouping,
    common_refinement,
    evaluate,
    evaluate_columns,
    parts_of,
    refines,
    transform,
)
from aegis.masks.hierarchy import Hierarchy, Level, join_lookups, lookup_of
from aegis.masks.numeric import (
    BottomCode,
    Bucketize,
    EqualWidth,
    EraseDigits,
    Quantiles,
    Round,
    TopCode,
)
from aegis.masks.text import Blur, Tokenise, Truncate

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
    "transform",
]
