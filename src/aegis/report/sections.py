"""Make the sections of the report, on the uncertainty of the ranking and on privacy, and its texts on
masks and on the facts that a policy and a certificate state about a release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aegis.present import IN_WORDS, mask_shown
from aegis.privacy import PrivacyReport
from aegis.privacy.report import AttributeFigures, SizeBin
from aegis.report.words import (
    NONE,
    clean,
    count,
    few,
    figure,
    measured,
    portion,
    sentence,
    share,
)
from aegis.words import counted, unquoted

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.advisor.ranked import Ranked
    from aegis.anonymizers import InformationLoss, Recipe
    from aegis.summary.outside import Outside

NAMED_TIES = 6
"""Number of runners-up that the recommendation names."""


def score_text(ranked: Ranked) -> str:
    """Return the score as text, with its standard error if there is one."""
    score = measured(ranked.score)
    return score if ranked.stderr is None else f"{score} ± {measured(ranked.stderr)}"


def against_best(ranked: Ranked, *, first: bool) -> str:
    """Return whether a score differs significantly from the best, as text; a dash if not compared."""
    if first:
        return "best"
    if ranked.tied_with_best is None:
        return "–"
    return "cannot be distinguished" if ranked.tied_with_best else "behind"


def confidence_section(advice: Advice) -> dict[str, Any] | None:
    """Return the section on uncertainty; None without standard errors."""
    best = advice.best
    if best is None or best.stderr is None:
        return None
    others = [r for r in advice.ranking if r is not best]
    compared = [r for r in others if r.tied_with_best is not None]
    ties = [clean(r.name, limit=60) for r in compared if r.tied_with_best]
    return {
        "score": measured(best.score),
        "stderr": measured(best.stderr),
        "compared": counted(len(compared), "runner-up", "runners-up"),
        "any_compared": bool(compared),
        "ties": ties[:NAMED_TIES],
        "more": max(0, len(ties) - NAMED_TIES),
    }


Column = tuple[str, PrivacyReport, int]
"""Title and figures of the table or of the release, and the number of rows below which none of these
figures is stated (0: all are stated).
"""

FINEST = "With the finest masks"
"""Words that replace "before masking" if the unmasked table is not known."""

_WHY_FINEST = (
    "“With the finest masks” is the table under the finest candidate mask of each attribute. "
    "If no mask shows the original values, we count from the finest mask. The original table has at "
    "least as many classes and unique rows."
)

_IDENTITY: tuple[tuple[str, str, Callable[[PrivacyReport, int], str]], ...] = (
    ("Rows", "in the table", lambda r, _: count(r.rows)),
    (
        "Equivalence classes",
        "groups of rows that look the same in every quasi-identifier",
        lambda r, _: count(r.classes),
    ),
    ("Smallest class", "its {unit}; the k of k-anonymity", lambda r, least: few(r.k, least)),
    (
        "Unique {unit}",
        "alone in their class, so that who knows a person finds the row",
        lambda r, least: _part(r.uniques, r.members, least),
    ),
    (
        "Highest prosecutor risk",
        "chance to find the row of a person known to be in the table",
        lambda r, least: _risk(r.prosecutor.maximum, least),
    ),
    (
        "Average prosecutor risk",
        "the same, averaged over all {unit}",
        lambda r, _: portion(r.prosecutor.average),
    ),
    (
        "Highest journalist risk",
        "chance to find the row of anybody in the population",
        lambda r, least: _risk(r.journalist.maximum, least),
    ),
    (
        "Marketer risk",
        "share of {unit} that an attack on all of them would identify",
        lambda r, _: portion(r.marketer),
    ),
)

_SENSITIVE: tuple[tuple[str, str, Callable[[AttributeFigures, int, int], str]], ...] = (
    (
        "{unit} in homogeneous classes",
        "their value is known to whoever knows the class",
        lambda a, n, least: _part(a.homogeneous_rows, n, least),
    ),
    (
        "Largest share of one value",
        "in any class; the alpha of (alpha,k)-anonymity",
        lambda a, *_: portion(a.alpha),
    ),
    (
        "Fewest distinct values",
        "in any class; distinct l-diversity",
        lambda a, *_: count(a.diversity.distinct),
    ),
    ("Entropy l", "the l of entropy l-diversity", lambda a, *_: figure(a.diversity.entropy)),
    (
        "Closeness t, equal distance",
        "largest distance to the table",
        lambda a, *_: figure(a.closeness.equal),
    ),
    (
        "Closeness t, ordered distance",
        "for values with an order",
        lambda a, *_: figure(a.closeness.ordered),
    ),
    (
        "Closeness t, hierarchical distance",
        "for values with a hierarchy",
        lambda a, *_: figure(a.closeness.hierarchical),
    ),
    (
        "Basic beta-likeness",
        "largest relative gain of a value over the table",
        lambda a, *_: figure(a.likeness.basic),
    ),
    (
        "Enhanced beta-likeness",
        "smallest beta that holds",
        lambda a, *_: figure(a.likeness.enhanced),
    ),
    ("Delta-disclosure", "smallest delta that holds", lambda a, *_: figure(a.disclosure.all)),
)


def privacy_section(
    before: PrivacyReport | None,
    after: PrivacyReport | None,
    *,
    admissible: bool,
    finest: bool = False,
    least: int = 0,
) -> dict[str, Any] | None:
    """Return the section on privacy from one or two privacy reports; None if both are None.

    Parameters
    ----------
    before, after
        Privacy of the unmasked table, and of the release in the report.
    admissible
        Whether the release meets the rule and is recommended. If not, the release is the one that
        comes closest to the rule.
    finest
        Whether `before` describes the table under the finest candidate masks, not the unmasked
        table.
    least
        Of the table before masking, no number of rows and no class size below this number is stated,
        and notes do not state how many rows have a value; 0 to state everything.
    """
    titles = (FINEST if finest else "Before masking", "After masking")
    columns = [
        (title, report, hidden)
        for title, report, hidden in zip(titles, (before, after), (least, 0), strict=True)
        if report is not None
    ]
    if not columns:
        return None
    notes = [unquoted(note) if least else note for _, report, _ in columns for note in report.notes]
    return {
        "columns": [title for title, *_ in columns],
        "finest": _WHY_FINEST if finest and before is not None else "",
        "release": "the recommended release" if admissible else "the closest configuration",
        "groups": [_identity(columns), *_sensitive(columns)],
        "undefined": NONE,
        "notes": list(dict.fromkeys(map(clean, notes))),
        "histogram": _histogram(columns),
    }


def _identity(columns: list[Column]) -> dict[str, Any]:
    unit = columns[0][1].unit
    lines = [
        {
            "name": name.format(unit=unit),
            "meaning": meaning.format(unit=unit),
            "values": [show(report, least) for _, report, least in columns],
        }
        for name, meaning, show in _IDENTITY
    ]
    thresholds = list(dict.fromkeys(tau for _, report, _ in columns for tau in report.at_risk))
    at_risk = [
        {
            "name": f"{unit.capitalize()} at risk above {100 * float(tau):g}\u00a0%",
            "meaning": f"in classes of fewer than {_smaller(float(tau))} {unit}",
            "values": [
                _part(report.at_risk[tau], report.members, least)
                if tau in report.at_risk and _smaller(float(tau)) >= least
                else NONE
                for _, report, least in columns
            ],
        }
        for tau in thresholds
    ]
    return {"title": "Finding a person", "lines": lines[:4] + at_risk + lines[4:]}


def _smaller(threshold: float) -> int:
    """Return the smallest class size n whose risk 1/n does not exceed a threshold."""
    size = max(int(1 / threshold), 1)
    while threshold * size < 1 - 1e-9:
        size += 1
    return size


def _sensitive(columns: list[Column]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for _, report, _ in columns for name in report.attributes)
    groups = []
    for name in names:
        lines = [
            {
                "name": title.format(unit=columns[0][1].unit.capitalize()),
                "meaning": meaning,
                "values": [_of(name, show, r, least) for _, r, least in columns],
            }
            for title, meaning, show in _SENSITIVE
        ]
        lines = [line for line in lines if set(line["values"]) != {NONE}]
        groups.append({"title": f"Learning {clean(name, limit=80)}", "lines": lines})
    return groups


def _of(
    name: str, show: Callable[[AttributeFigures, int, int], str], report: PrivacyReport, least: int
) -> str:
    figures = report.attributes.get(name)
    return NONE if figures is None else show(figures, report.members, least)


def _part(number: int, total: int, least: int = 0) -> str:
    """Return a number and, on a second line, its share; only "fewer than" below `least`."""
    return few(number, least, total).replace(" (", "\n(")


def _risk(risk: float | None, least: int) -> str:
    """Return a highest risk as text, without the size of a class below `least`."""
    if risk is None or not least or risk <= 1 / least + 1e-9:
        return portion(risk)
    return f"above {portion(1 / least)}"


def _histogram(columns: list[Column]) -> dict[str, Any]:
    """Return shares by class size as table and points; sizes not to be stated are counted together."""
    joint = max(least for *_, least in columns)
    bands = [_together(report, joint) for _, report, _ in columns]
    sizes = list(dict.fromkeys(band.size for series_bands in bands for band in series_bands))
    lines, points = [], []
    for bin_index, size in enumerate(sizes):
        cells = []
        for series, (title, report, least) in enumerate(columns):
            same_size = next((band for band in bands[series] if band.size == size), None)
            size_rows, classes = (same_size.rows, same_size.classes) if same_size else (0, 0)
            few_rows = 0 < size_rows < least
            text = few(size_rows, least) if few_rows else share(size_rows, report.members)
            cells.append(
                {"rows": _part(size_rows, report.members, least), "classes": few(classes, least)}
            )
            points.append(
                {
                    "bin": bin_index,
                    "series": series,
                    "share": 100 * size_rows / report.members
                    if report.members and not few_rows
                    else 0.0,
                    "text": text if size_rows else "0",
                    "title": title,
                }
            )
        lines.append({"size": size.replace("-", "–"), "cells": cells})
    return {
        "series": [title for title, *_ in columns],
        "unit": columns[0][1].unit,
        "sizes": [line["size"] for line in lines],
        "lines": lines,
        "points": points,
    }


def _together(report: PrivacyReport, least: int) -> tuple[SizeBin, ...]:
    """Return the histogram of class sizes, with one bin for all sizes below `least`."""
    bands = report.class_size_histogram
    small = [band for band in bands if int(re.split("[-+]", band.size)[0]) < least]
    if len(small) < 2:
        return bands
    last = re.split("[-+]", small[-1].size)[-1]
    together = SizeBin(f"1-{last}", sum(b.classes for b in small), sum(b.rows for b in small))
    return together, *bands[len(small) :]


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
    facts = policy.get("release") or {}
    return [
        {"name": title, "value": clean(facts[key], limit=300)}
        for key, title in FACTS.items()
        if facts.get(key) is not None
    ]


def mask_words(mask: object) -> str:
    """Return a mask in words: `level(1)` is "level 1", and `top_code(at=60)`, whose bound looks exact, is
    "top code, at 60; 60 means 60 or more".
    """
    text = str(mask)
    if text in IN_WORDS:
        return mask_shown(text)
    match = re.fullmatch(r"(\w+)\((.*)\)", text, flags=re.DOTALL)
    if match is None:
        return clean(text.replace("_", " "), limit=120)
    bounds = re.findall(r"(top|bottom)_code(?:\(at=|': {'at': )(-?[\d.e+-]+)", text)
    bound_words = "".join(f"; {at} means {at} or {_SIDE[side]}" for side, at in bounds)
    name, parameters = match[1].replace("_", " "), re.sub(r"[\[\]{}'\"]", "", match[2])
    parameters = re.sub(r"(\w)=", r"\1 ", parameters).replace("_", " ")
    joined = f"{name}, {parameters}" if "=" in match[2] else f"{name} {parameters}"
    return clean(joined, limit=120 - len(bound_words)) + bound_words


def changed_masks(masks: Mapping[str, str]) -> str:
    """Return the masks by attribute as one text, without unmasked attributes."""
    masking = {name: mask for name, mask in masks.items() if mask != "identity"}
    return listed_masks(masking) if masking else "nothing masked" if masks else "–"


def listed_masks(masks: Mapping[str, str]) -> str:
    """Return a text that lists the mask of each attribute."""
    return clean(
        "; ".join(f"{name}: {mask_shown(mask)}" for name, mask in masks.items()), limit=600
    )


def unique_figure(outside: Outside | None) -> KeyFigure | None:
    """Return how many rows all released columns make unique, as a key figure, if known."""
    if outside is None or outside.unique_rows is None or not outside.rows:
        return None
    note = (
        f"{count(outside.unique_rows)} of {count(outside.rows)} released rows; "
        "the rule covers the quasi-identifiers alone"
    )
    return sentence(outside.unique_title), share(outside.unique_rows, outside.rows), note


def options_text(recipe: Recipe) -> str:
    """Return the options of a recipe on one line, without an l that the method ignores."""
    options = {name: value for name, value in recipe.options.items() if value is not None}
    unused = not recipe.anonymizer.diverse and options.pop("l", None) is not None
    text = ", ".join(f"{name} {value}" for name, value in options.items())
    return clean(text + (" (the method does not use l)" if unused else ""), limit=600)
