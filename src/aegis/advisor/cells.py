"""Choose the masks that are applied before methods that suppress single cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aegis.advisor.advice import Advice
from aegis.advisor.plan import plan_of
from aegis.advisor.ranked import Ranked
from aegis.anonymizers import Recipe
from aegis.measures import MEASURES
from aegis.policy import Policy
from aegis.progress import Progress
from aegis.sources import Source
from aegis.summary import Summary

BREAKING = 0.1
"""Largest share of the rows whose classes may fail the rule under the finer masks."""
WORK = 10.0
"""Work after which the search for finer masks ends (see `SearchRequest.work`)."""


def beside_rows(
    recipes: Sequence[Recipe],
    advice: Advice,
    summary: Summary,
    source: Source,
    policy: Policy,
    progress: Progress,
) -> tuple[Recipe, ...]:
    """Return the recipes, and more recipes for methods that suppress cells: with masks from the
    ranking.

    One added recipe uses the masks of the first configuration. So the ranking compares suppressed
    cells with suppressed rows under the same masks. Another recipe uses finer masks, because
    suppressed cells cost less than suppressed rows. These are the masks that would be best if the
    rule allowed a tenth of the rows to be suppressed.
    """
    cells = [
        recipe
        for recipe in recipes
        if recipe.anonymizer.by_cell and not recipe.options.get("masks")
    ]
    if not cells or not advice.ranking or advice.ranking[0].method is not None:
        return tuple(recipes)
    first = advice.ranking[0]
    finer = _finer(advice, summary, source, policy, progress)
    again: list[Recipe] = []
    for title, ranked in ((first.name, first), ("finer masks", finer)):
        masks = None if ranked is None else _masks(ranked, policy)
        if masks is None or masks in [recipe.options["masks"] for recipe in again]:
            continue
        again += [
            replace(cell, options={**cell.options, "masks": masks}, name=f"{cell.name} on {title}")
            for cell in cells
        ]
    return (*recipes, *again)


def _masks(ranked: Ranked, policy: Policy) -> dict[str, Any] | None:
    """Return the masks of the quasi-identifiers as a policy writes them.

    None if the entry suppresses no rows, or if a mask is random.
    """
    if not ranked.suppressed_rows:
        return None
    masks = {a.name: ranked.configuration.masks.get(a.name) for a in policy.quasi_identifiers}
    if not all(mask is None or mask.deterministic for mask in masks.values()):
        return None
    return {name: "identity" if mask is None else mask.spec() for name, mask in masks.items()}


def _finer(
    advice: Advice, summary: Summary, source: Source, policy: Policy, progress: Progress
) -> Ranked | None:
    """Return the best configuration if a share `BREAKING` of the rows could be suppressed; None if none."""
    rows = summary.rows
    if advice.search is None:
        sign = MEASURES.get(advice.measure).direction.sign
        listed = [
            ranked
            for ranked in advice.ranking
            if ranked.method is None and (ranked.suppressed_rows or 0) <= BREAKING * rows
        ]
        return max(listed, key=lambda cell: sign * cell.score, default=None)
    from aegis.advisor.search import search_combinations

    rule = replace(policy.privacy, suppression=max(BREAKING, policy.privacy.suppression))
    looser = replace(policy, privacy=rule)
    searched = search_combinations(
        summary,
        plan_of(summary, looser, source),
        looser,
        measure=advice.measure,
        top=1,
        work=WORK,
        prefer="score",
        progress=progress,
    )
    return searched.best
