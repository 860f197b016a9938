"""Fewer candidates than in the summary: derived without reading the table."""

from __future__ import annotations

from dataclasses import replace

from aegis.masks import parts_of
from aegis.policy import Attribute, Policy
from aegis.summary.model import AttributeSummary, Summary


def narrow(summary: Summary, policy: Policy) -> Summary | None:
    """Return a summary with the candidates of another policy; None if the table must be read.

    A summary serves a policy with the same label and roles whose masks are all among its candidates
    and whose rule protects no attribute beyond those that were counted, and requires no larger
    classes than share the bounds that masks have learnt. Atoms stay as they were:
    finer ones than needed change no score. The same summary comes back where nothing differs.
    """
    own = policy.chosen_label
    asked = {a.name: a for a in (*policy.features, *([] if own is None else [own]))}
    counted = None if summary.frequency is None else set(summary.frequency.sensitive)
    label = summary.label.mask is None and policy.label_mask is None and not policy.label.cut
    if (
        not label
        or policy.label.column != summary.label.column
        or policy.label.kind is not summary.label.kind
        or asked.keys() != {a.name for a in summary.all_attributes}
        or (counted is not None and not set(policy.privacy.sensitive) <= counted)
    ):
        return None
    narrowed = {a.name: _narrowed(a, asked[a.name]) for a in summary.all_attributes}
    chosen = {name: narrower for name, narrower in narrowed.items() if narrower is not None}
    if len(chosen) < len(narrowed):
        return None
    if summary.shared_rows < policy.shared_rows and any(map(_learns_bounds, chosen.values())):
        return None
    if all(chosen[a.name] is a for a in summary.all_attributes):
        return summary
    label_attribute = None if summary.label_attribute is None else chosen.pop(summary.label.column)
    return replace(summary, attributes=chosen, label_attribute=label_attribute)


def _learns_bounds(attribute: AttributeSummary) -> bool:
    """Return whether a candidate has bounds that it learnt, each shared by so many rows."""
    return any(
        candidate.mask != candidate.declared
        and any("{rows}" in (part.learns or "") for part in parts_of(candidate.mask))
        for candidate in attribute.candidates
    )


def _narrowed(attribute: AttributeSummary, asked: Attribute) -> AttributeSummary | None:
    """Return an attribute with the candidates that are asked for, in their order."""
    if asked.role is not attribute.role:
        return None
    declared = {candidate.declared: candidate for candidate in attribute.candidates}
    if not all(mask in declared for mask in asked.masks):
        return None
    candidates = tuple(declared[mask] for mask in asked.masks)
    same = candidates == attribute.candidates and asked.weight == attribute.weight
    return attribute if same else replace(attribute, candidates=candidates, weight=asked.weight)
