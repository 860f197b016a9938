"""Restrict a summary to fewer candidates without reading the table again."""

from __future__ import annotations

from dataclasses import replace

from aegis.masks import parts_of
from aegis.policy import Attribute, Policy
from aegis.summary.model import AttributeSummary, SeveralSummaries, Summary, TaskSummary


def narrow(summary: Summary, policy: Policy) -> Summary | None:
    """Return a copy of the summary with only the candidate masks of another policy; None if the
    summary does not suffice, so that the table must be read again.

    The table need not be read again under these conditions. The policy has the same label and
    roles, and all its masks are candidates of the summary. The policy's rule protects only
    attributes that were counted. If masks learn bounds from the data, the rule does not require
    larger classes than `shared_rows` of the summary. Atoms (the sets of values that are counted
    together) stay the same, because finer atoms change no score. If nothing differs, the same
    summary is returned.
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
    several = _several(summary, policy)
    if several is None and (summary.several is not None or policy.tasks):
        return None
    narrowed = {a.name: _narrowed(a, asked[a.name]) for a in summary.all_attributes}
    chosen = {name: narrower for name, narrower in narrowed.items() if narrower is not None}
    if len(chosen) < len(narrowed):
        return None
    if summary.shared_rows < policy.shared_rows and any(map(_learns_bounds, chosen.values())):
        return None
    same = several is None or several is summary.several
    if same and all(chosen[a.name] is a for a in summary.all_attributes):
        return summary
    label_attribute = None if summary.label_attribute is None else chosen.pop(summary.label.column)
    return replace(summary, attributes=chosen, label_attribute=label_attribute, several=several)


def _several(summary: Summary, policy: Policy) -> SeveralSummaries | None:
    """Return the narrowed summaries of several labels; None if the table must be read again."""
    own, asked = summary.several, policy.label.several
    if own is None or asked is None:
        return None
    if asked.columns != tuple(task.column for task in own.tasks):
        return None
    tasks = []
    for known, task in zip(own.tasks, policy.tasks, strict=True):
        narrowed = narrow(known.summary, policy.of_task(task))
        if narrowed is None:
            return None
        measure = task.named_measure(policy.measure)
        same = (narrowed, task.weight, measure) == (known.summary, known.weight, known.measure)
        tasks.append(known if same else TaskSummary(narrowed, task.weight, measure))
    alike = asked.serve is own.serve and all(a is b for a, b in zip(tasks, own.tasks, strict=True))
    return own if alike else SeveralSummaries(tuple(tasks), asked.serve)


def _learns_bounds(attribute: AttributeSummary) -> bool:
    """Return whether a candidate has bounds learnt from data, each of which enough rows must share."""
    return any(
        candidate.mask != candidate.declared
        and any("{rows}" in (part.learns or "") for part in parts_of(candidate.mask))
        for candidate in attribute.candidates
    )


def _narrowed(attribute: AttributeSummary, asked: Attribute) -> AttributeSummary | None:
    """Return the attribute with only the candidates that the policy's attribute `asked` has, in the
    order of the policy.

    Return None if the summary lacks one of them.
    """
    if asked.role is not attribute.role:
        return None
    declared = {candidate.declared: candidate for candidate in attribute.candidates}
    if not all(mask in declared for mask in asked.masks):
        return None
    candidates = tuple(declared[mask] for mask in asked.masks)
    same = candidates == attribute.candidates and asked.weight == attribute.weight
    return attribute if same else replace(attribute, candidates=candidates, weight=asked.weight)
