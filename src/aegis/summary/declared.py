"""Read the policy that a summary contains: roles, candidate masks, label and rule."""

from __future__ import annotations

from dataclasses import replace

from aegis.errors import PolicyError
from aegis.masks import Level
from aegis.policy import NO_LABEL, Attribute, Label, LabelTask, Policy, several_labels
from aegis.privacy import PrivacyRule
from aegis.summary.model import AttributeSummary, Summary


def declared_policy(summary: Summary) -> Policy:
    """Return the policy under which a summary was made, as far as the summary contains it.

    A summary of an earlier version of Aegis does not contain its privacy rule.
    Then the rule of the returned policy requires nothing.
    """
    terms = summary.terms
    return Policy(
        label=_label(summary),
        attributes={a.name: _declared(a) for a in summary.all_attributes},
        privacy=PrivacyRule() if terms is None else terms.owner.rule,
        measure=None if terms is None else terms.declared.get("measure"),
    )


def _label(summary: Summary) -> Label:
    """Return the label of a summary, several labels, or none."""
    label, several = summary.label, summary.several
    if several is None:
        return Label(label.column, kind=label.kind) if label.there else NO_LABEL
    columns = set(summary.label_columns)
    tasks = [
        LabelTask(Label(t.column, kind=t.summary.label.kind), t.weight, t.measure)
        for t in several.tasks
    ]
    known = any(columns & set(task.summary.attributes) for task in several.tasks)
    return several_labels(tasks, several.serve, known=known)


def _declared(attribute: AttributeSummary) -> Attribute:
    masks = tuple(candidate.declared for candidate in attribute.candidates)
    levels = [mask.hierarchy for mask in masks if isinstance(mask, Level)]
    return Attribute(
        attribute.name,
        attribute.role,
        masks,
        hierarchy=levels[0] if levels else None,
        weight=attribute.weight,
    )


def lock(summary: Summary) -> Summary:
    """Return the summary with its rule locked, so that Aegis refuses weaker rules.

    Raises
    ------
    PolicyError
        The summary does not contain its rule, because an earlier version made it.
    """
    if summary.terms is None:
        raise PolicyError(
            "The summary does not say which rule it was made under, so Aegis cannot lock it to the rule.",
            hint="Summarise the table again.",
        )
    return replace(summary, terms=replace(summary.terms, locked=True, binding=True))
