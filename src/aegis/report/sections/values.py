"""Write texts on masks, and on the facts that a policy and a certificate state about a release."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aegis.present import IN_WORDS, mask_shown
from aegis.report.words import clean, count, figure, measured, share

if TYPE_CHECKING:
    from aegis.anonymizers import InformationLoss, Recipe
    from aegis.summary.outside import Outside

KeyFigure = tuple[str, str, str]
"""Label, value and note of a figure that a page shows in large type."""
_SIDE = {"top": "more", "bottom": "less"}
FACTS = {
    "data": "Data set",
    "purpose": "Purpose",
    "recipient": "Recipient",
    "legal_basis": "Legal basis",
    "author": "Author",
    "date": "Date",
}
"""The keys of the policy's `release` block, and their names for people."""
LOSSES: tuple[tuple[str, str, Callable[[InformationLoss], str]], ...] = (
    (
        "IL, scaled",
        "information loss of the centroids on z-scores, 0 to 1",
        lambda loss: measured(loss.scaled),
    ),
    (
        "IL, unscaled",
        "the same on the numbers as they are: the widest attribute dominates",
        lambda loss: measured(loss.unscaled),
    ),
    (
        "NCP",
        "normalised certainty penalty: mean width of the released ranges, 0 to 1",
        lambda loss: measured(loss.penalty),
    ),
    ("Discernibility", "sum of squared group sizes", lambda loss: count(loss.discernibility)),
    ("Class size", "mean records in a group", lambda loss: figure(loss.average_class_size)),
)
"""The title and the meaning of each information loss, and a function that returns its value as
text.
"""


def release_facts(policy: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the facts about the release from the policy: purpose, author, date and others."""
    said = policy.get("release") or {}
    return [
        {"name": title, "value": clean(said[key], limit=300)}
        for key, title in FACTS.items()
        if said.get(key) is not None
    ]


def mask_words(mask: object) -> str:
    """Return a mask in words, for readers who do not write policies: `level(1)` is "level 1".

    A bound that looks like an exact value is explained: `top_code(at=60)` is "top code, at 60; 60
    means 60 or more".
    """
    text = str(mask)
    if text in IN_WORDS:
        return mask_shown(text)
    match = re.fullmatch(r"(\w+)\((.*)\)", text, flags=re.DOTALL)
    if match is None:
        return clean(text.replace("_", " "), limit=120)
    bounds = re.findall(r"(top|bottom)_code(?:\(at=|': {'at': )(-?[\d.e+-]+)", text)
    meant = "".join(f"; {at} means {at} or {_SIDE[side]}" for side, at in bounds)
    name, given = match[1].replace("_", " "), re.sub(r"[\[\]{}'\"]", "", match[2])
    given = re.sub(r"(\w)=", r"\1 ", given).replace("_", " ")
    joined = f"{name}, {given}" if "=" in match[2] else f"{name} {given}"
    return clean(joined, limit=120 - len(meant)) + meant


def changed_masks(masks: Mapping[str, str]) -> str:
    """Return the masks of a configuration as text, without attributes that stay unmasked."""
    masking = {name: mask for name, mask in masks.items() if mask != "identity"}
    return listed_masks(masking) if masking else "nothing masked" if masks else "–"


def listed_masks(masks: Mapping[str, str]) -> str:
    """Return a text that lists the mask of each attribute."""
    return clean(
        "; ".join(f"{name}: {mask_shown(mask)}" for name, mask in masks.items()), limit=600
    )


def unique_figure(outside: Outside | None) -> KeyFigure | None:
    """Return, as a key figure of the report, how many rows are unique if you know all released
    columns; None if this is unknown.
    """
    if outside is None or outside.unique_rows is None or not outside.rows:
        return None
    note = (
        f"{count(outside.unique_rows)} of {count(outside.rows)} released rows; "
        "the rule covers the quasi-identifiers alone"
    )
    return "Unique in all columns", share(outside.unique_rows, outside.rows), note


def options_text(recipe: Recipe) -> str:
    """Return the options of a recipe on one line. The option l is left out if the method does not
    use it.
    """
    options = {name: value for name, value in recipe.options.items() if value is not None}
    unused = not recipe.anonymizer.diverse and options.pop("l", None) is not None
    told = ", ".join(f"{name} {value}" for name, value in options.items())
    return clean(told + (" (the method does not use l)" if unused else ""), limit=600)
