"""Describe, search and audit the protected summaries in the catalog.

The catalog accepts no other summaries: a summary with exact counts has another type and file
format.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from aegis.errors import AegisError
from aegis.files import SILENT, Progress
from aegis.policy import Configuration, Policy, dump_configurations
from aegis.safe.protect import (
    ProtectedScorer,
    ProtectedSummary,
    audit_leak,
    dumps,
    loads,
    protect,
    search_protected,
)
from aegis.safe.protect.model import ProtectedAttribute
from aegis.safe.protect.scores import FINEST
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.objects import Objects
from aegis.words import json_fields

CANDIDATES = 40
"""How many of the best configurations according to the protected summary are checked on the data.
"""


@lru_cache(maxsize=16)
def read(bundle: bytes) -> ProtectedSummary:
    """Parse the file of a protected summary. Raise `CatalogError` if it is none, for example a
    bundle with exact counts.
    """
    if bundle[:2] == b"PK":
        raise CatalogError(
            "This file has exact counts, which must not leave the provider.",
            hint="Protect it first: aegis protect.",
        )
    try:
        return loads(bundle.decode("utf-8"), "The file")
    except (UnicodeDecodeError, AegisError) as error:
        reason = error.message if isinstance(error, AegisError) else "it is not UTF-8 text"
        raise CatalogError(
            f"The file is not a protected summary: {reason}", hint="Ask for the summary again."
        ) from error


def columns_of(summary: ProtectedSummary) -> list[dict[str, Any]]:
    """Return name, role, kind and candidate masks of each attribute of a protected summary."""
    return [
        json_fields(a, "name", "role", "kind") | {"masks": [str(c.declared) for c in a.candidates]}
        for a in summary.attributes.values()
    ]


def make(
    table: Any, policy: Policy, task: Mapping[str, Any], key: bytes, *, progress: Progress = SILENT
) -> bytes:
    """Summarise the table, protect the summary, and return the content of its file. The `task` has
    `protect`: `noise` with `epsilon` and `delta`, or `counts` with `threshold`. The secret `key`
    determines the perturbation of counts.
    """
    if task["protect"] == "noise":
        how: dict[str, Any] = {"epsilon": task["epsilon"], "delta": task["delta"]}
    else:
        how = {"key": key, "threshold": task["threshold"]}
    summary = protect(table, policy, level=task["protect"], progress=progress, **how)
    return dumps(summary).encode("utf-8")


@lru_cache(maxsize=1024)
def costs(objects: Objects, key: str) -> tuple[dict[str, Any], ...]:
    """Return, and cache, the `costs_in` of the summary that the file store has under `key`."""
    return tuple(costs_in(read(objects.get(key))))


def costs_in(summary: ProtectedSummary) -> list[dict[str, Any]]:
    """Return, for each candidate mask of a protected summary, how many percent of the predictive
    utility that the summary shows are lost if only this mask is applied.

    `hidden` is the percentage of rows whose value of the attribute the summary does not name. If
    all masks of an attribute show a single value, the cost is not known: it is None, and `hidden`
    is 100.
    """
    scorer = ProtectedScorer(summary)
    finest = scorer.score(scorer.finest)
    best = []
    for index, attribute in enumerate(summary.attributes.values()):
        hidden = _hidden(attribute)
        for number, candidate in enumerate(attribute.candidates):
            choice = tuple(number if i == index else FINEST for i in range(len(summary.attributes)))
            utility_kept = min(max(scorer.score(choice) / finest, 0.0), 1.0) if finest > 0 else 0.0
            best.append(
                {
                    "attribute": attribute.name,
                    "mask": str(candidate.declared),
                    "levels": candidate.size,
                    "lost": None if hidden == 100 else 100 * (1 - utility_kept),
                    "hidden": hidden,
                }
            )
    return best


def _hidden(attribute: ProtectedAttribute) -> float:
    """Return the percentage of rows whose value of an attribute the summary does not name."""
    if max(candidate.size for candidate in attribute.candidates) <= 1:
        return 100.0
    unnamed = attribute.table[attribute.units > 1].sum()
    return 100.0 * float(np.clip(unnamed / max(attribute.table.sum(), 1), 0, 1))


def candidates(
    bundle: bytes, *, seconds: float, progress: Progress = SILENT
) -> tuple[list[str], dict[str, Any]]:
    """Search for the best configurations by the protected summary in `bundle`. Return them, as YAML
    that `aegis advise -o` writes, and facts about the search. The agent must check on the table
    whether a configuration meets the rule, if the summary does not show it.
    """
    summary = read(bundle)
    advice = search_protected(summary, top=CANDIDATES, time_limit=seconds, progress=progress)
    listed = [ranked for ranked in advice.ranking if ranked.admissible is not False]
    about = {
        "combinations": advice.combinations,
        "searched": 0 if advice.search is None else advice.search.work.checked,
        "estimator": "" if advice.estimated is None else advice.estimated.estimator,
        "unmasked": advice.unmasked,
        "scores": {ranked.name: ranked.score for ranked in listed},
        "errors": {ranked.name: ranked.stderr for ranked in listed if ranked.stderr is not None},
    }
    return [written(as_declared(summary, ranked.configuration)) for ranked in listed], about


def leak(bundle: bytes, *, progress: Progress = SILENT) -> dict[str, Any]:
    """Audit how much a protected summary reveals, compared with the protection that it states."""
    with progress.step("Auditing what the summary reveals"):
        return audit_leak(read(bundle)).to_dict()


def as_declared(summary: ProtectedSummary, configuration: Configuration) -> Configuration:
    """Return a configuration with its masks as the policy declares them, which the agent fits to
    the table, not as they are fitted in the protected summary.
    """
    masks = {
        name: summary.attributes[name].candidate(mask).declared
        for name, mask in configuration.masks.items()
    }
    return Configuration(configuration.name, masks)


def written(configuration: Configuration, measure: str | None = None) -> str:
    """Return a configuration as YAML text, with the measure by which it was chosen, if any."""
    return dump_configurations({configuration.name: configuration}, measure=measure)
