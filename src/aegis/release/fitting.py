"""Check whether a masked table fits the masks that it was made with: columns, types and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from aegis.masks import Mask
from aegis.masks.base import SUPPRESSED, Kind
from aegis.masks.compose import Compose
from aegis.masks.dates import Truncate
from aegis.masks.level import Level
from aegis.masks.noise.categories import CategoryNoise
from aegis.masks.numeric import BottomCode, EraseDigits, Round, TopCode
from aegis.masks.parameters import number_text
from aegis.masks.text import Blur
from aegis.policy import Configuration, Policy
from aegis.release.choice import hidden_columns, release_masks
from aegis.release.mismatch import brief
from aegis.sources import Source, open_table
from aegis.summary.builder import shown_values


def unfitting(
    table: Any, policy: Policy, configuration: Configuration, kinds: Mapping[str, Kind]
) -> list[str]:
    """Describe everything in a masked table that its configuration cannot have produced.

    The table must have exactly the columns that the configuration releases, each with the type that
    its mask produces. Every value must be one that the mask can show.

    Parameters
    ----------
    table
        The masked table, in any form that `open_table` accepts.
    policy, configuration
        The policy and the configuration of the release, with fitted masks.
    kinds
        Kinds of the columns of the unmasked table by name. A column that is not listed may have any
        type.
    """
    source = open_table(table)
    masks = release_masks(policy, configuration)
    hidden = hidden_columns(policy, masks)
    expected = [name for name in masks if name not in hidden]
    wrong = [f"it has the column {n!r}" for n in source.columns if n not in expected]
    wrong += [f"it lacks the column {name!r}" for name in expected if name not in source.columns]
    for name in expected:
        mask = masks[name]
        if name not in source.columns:
            continue
        stored = Kind.of(source.table[name].type())
        given = kinds.get(name)
        shown = given if mask is None or given is None else mask.output_kind(given)
        if shown is not None and not _holds(stored, shown):
            wrong.append(f"{name} holds {stored or 'another type'}, and {mask} shows {shown}")
            continue
        odd = None if mask is None else odd_values(source, name, mask)
        if odd:
            wrong.append(f"{name} shows {', '.join(map(brief, odd))}, which {mask} cannot")
    return wrong


def odd_values(source: Source, name: str, mask: Mask) -> list[str] | None:
    """Return up to five values that a mask cannot show; None if the mask does not define its values."""
    column = source.table[name]
    shown = source.collect(source.table.select(v=column).distinct())["v"]
    values = pc.drop_null(shown)
    if _idempotent(mask):
        if len(values) and Kind.of(column.type()) not in mask.fits:
            return sorted(map(str, values.to_pylist()))[:5]
        masked = shown_values(mask, values.combine_chunks())
        pairs = zip(values.to_pylist(), masked.to_pylist(), strict=True)
        return sorted(str(value) for value, again in pairs if value != again)[:5]
    possible = _possible(mask)
    if possible is None:
        return None
    return sorted(text for text in map(str, values.to_pylist()) if not possible(text))[:5]


def _idempotent(mask: Mask) -> bool:
    """Return whether masking a masked value again leaves it unchanged."""
    if isinstance(mask, Truncate):
        return mask.show == "date"
    return isinstance(mask, Round | TopCode | BottomCode | EraseDigits) and mask.fitted


def _holds(stored: Kind | None, shown: Kind) -> bool:
    """Return whether a stored column can have the kind that a mask produces.

    File formats may store integers as other numbers.
    """
    return stored is shown or (stored is Kind.INTEGER and shown is Kind.NUMBER)


def _possible(mask: Mask) -> Any:
    """Return a function that tests whether a mask can show a text; None if the mask does not
    determine this.
    """
    if isinstance(mask, Compose):
        return None if _idempotent(mask.masks[-1]) else _possible(mask.masks[-1])
    if isinstance(mask, Blur):
        return lambda text: _blurred(mask, text)
    if isinstance(mask, Level) and mask.level:
        shown = {str(value) for value in mask.shown_values} | {SUPPRESSED}
    elif isinstance(mask, CategoryNoise) and mask.fitted:
        shown = {*map(str, mask.categories()), SUPPRESSED}
    elif mask.shows(SUPPRESSED) is not None:
        return lambda text: text == SUPPRESSED or _shows(mask, text)
    else:
        return None
    return lambda text: text in shown or _same_number(text, shown)


def _shows(mask: Mask, text: str) -> bool:
    """Return whether a mask can show a text, even if the file writes a number in another form."""
    if mask.shows(text):
        return True
    try:
        return bool(mask.shows(number_text(float(text))))
    except (ValueError, OverflowError):
        return False


def _blurred(mask: Blur, text: str) -> bool:
    """Return whether a text has the symbol at the hidden end, and shows at most the allowed characters."""
    trailing = (mask.side or ("leading" if mask.keep is not None else "trailing")) == (
        "leading" if mask.keep is not None else "trailing"
    )
    marked = text.endswith(mask.symbol) if trailing else text.startswith(mask.symbol)
    return marked and (mask.keep is None or len(text) <= mask.keep + len(mask.symbol))


def _same_number(text: str, shown: set[str]) -> bool:
    """Return whether a text is one of the numbers in `shown`, in another spelling."""
    try:
        return float(text) in {float(number) for number in shown if _is_number(number)}
    except ValueError:
        return False


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
