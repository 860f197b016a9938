"""Apply masks to a table: fit them, build the masked query, draw noise, suppress rows."""

from aegis.masking.masked import (
    ORDERED_ROWS,
    CheckedClasses,
    check_classes,
    count_unseen,
    fit_masks,
    masked_population,
    masked_table,
    refuse_unseen,
)
from aegis.masking.noised import draw, draw_columns, noise_of, seeded_noise

__all__ = [
    "ORDERED_ROWS",
    "CheckedClasses",
    "check_classes",
    "count_unseen",
    "draw",
    "draw_columns",
    "fit_masks",
    "masked_population",
    "masked_table",
    "noise_of",
    "refuse_unseen",
    "seeded_noise",
]
