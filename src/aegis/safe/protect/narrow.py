"""Reduce a protected summary to fewer candidates and attributes; this needs no exact counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from aegis.errors import PolicyError
from aegis.masks import Mask
from aegis.safe.protect.model import Moments, ProtectedSummary


def narrowed(
    summary: ProtectedSummary, candidates: Mapping[str, Collection[Mask]]
) -> ProtectedSummary:
    """Return a protected summary with only some of its attributes and candidates.

    Parameters
    ----------
    summary
        The summary.
    candidates
        For each attribute to keep, the masks to keep, as declared. Masks that are not candidates of
        the summary are ignored, because the summary has no data on them.

    Returns
    -------
    The reduced summary. If no attribute is dropped, it keeps the verdicts on configurations whose
    masks are all kept.

    Raises
    ------
    PolicyError
        No mask of any attribute would be kept.
    """
    attributes, columns = {}, list[int]()
    moved: dict[int, dict[int, int]] = {}
    for place, (name, attribute) in enumerate(summary.attributes.items()):
        wanted = candidates.get(name, ())
        staying = [i for i, c in enumerate(attribute.candidates) if c.declared in wanted]
        if not staying:
            continue
        attributes[name] = replace(
            attribute, candidates=tuple(attribute.candidates[i] for i in staying)
        )
        columns += range(summary.offsets[place], summary.offsets[place + 1])
        moved[place] = {old: new for new, old in enumerate(staying)}
    if not attributes:
        raise PolicyError(
            "No candidate of the protected summary is left.",
            hint="Keep one, or have the table summarised again under this policy.",
        )
    moments = summary.moments
    if moments is not None:
        moments = Moments(moments.matrix[np.ix_(columns, columns)], moments.error)
    verdicts = (
        ()
        if len(moved) < len(summary.attributes)
        else tuple(
            replace(verdict, choice=tuple(moved[i][p] for i, p in enumerate(verdict.choice)))
            for verdict in summary.verdicts
            if all(p in moved[i] for i, p in enumerate(verdict.choice))
        )
    )
    return replace(summary, attributes=attributes, moments=moments, verdicts=verdicts)
