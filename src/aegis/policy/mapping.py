"""Convert a policy to the mapping in its YAML file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from aegis.policy.labels import Label, LabelTask, Serve, SeveralLabels
from aegis.policy.model import Attribute, Policy, SuppressedColumns

VERSION = 1


def policy_mapping(policy: Policy) -> dict[str, Any]:
    """Return the policy as the mapping that its YAML file would contain."""
    label, columns = policy.label, policy.suppressed_columns
    filled = columns is SuppressedColumns.FILL
    return {
        "version": VERSION,
        **_stated(label=_label_entry(label) if label else None),
        **({} if label.several is None else _several_entries(label.several)),
        **_stated(
            reading=None if policy.reading is None else policy.reading.to_dict(),
            measure=policy.measure,
            person=policy.person,
            weight=policy.weight,
            population=policy.population,
        ),
        "privacy": policy.privacy.to_mapping(),
        "unseen": str(policy.unseen),
        **_stated(suppressed_columns=None if filled else str(columns)),
        "attributes": {a.name: _attribute_entry(a) for a in policy.attributes.values()},
        **_stated(
            configurations={n: c.spec() for n, c in policy.configurations.items()} or None,
            anonymizers=[
                {choice.method: plain(choice.options)} if choice.options else choice.method
                for choice in policy.anonymizers
            ]
            or None,
            release=dict(policy.release) or None,
        ),
    }


def _stated(**entries: Any) -> dict[str, Any]:
    """Return the entries that have a value, since a policy leaves out what it does not state."""
    return {name: value for name, value in entries.items() if value is not None}


def _attribute_entry(attribute: Attribute) -> dict[str, Any]:
    return _stated(
        role=str(attribute.role),
        hierarchy=attribute.hierarchy_source,
        masks=[mask.spec() for mask in attribute.masks] or None,
        weight=None if attribute.weight == 1.0 else attribute.weight,
        kind=attribute.kind and str(attribute.kind),
        type=attribute.type and str(attribute.type),
        order=list(attribute.order) or None,
        values=list(attribute.values) or None,
    )


def _several_entries(several: SeveralLabels) -> dict[str, Any]:
    """Return the policy's keys for several labels, without keys that have their default value."""
    return _stated(
        labels="any" if several.any_column else [_task_entry(task) for task in several.tasks],
        serve=None if several.serve is Serve.MEAN else str(several.serve),
        labels_known=several.known or None,
    )


def _task_entry(task: LabelTask) -> str | dict[str, Any]:
    entry = _label_entry(task.label)
    more = _stated(weight=None if task.weight == 1.0 else task.weight, measure=task.measure)
    if not more:
        return entry
    return {**(entry if isinstance(entry, dict) else {"column": entry}), **more}


def _label_entry(label: Label) -> str | dict[str, Any]:
    more = _stated(
        kind=str(label.kind) if label.is_number else None,
        bins=label.bins or None,
        classes=list(label.classes) or None,
        cuts=list(label.cuts) or None,
        bounds=None if label.bounds is None else list(label.bounds),
    )
    return {"column": label.column, **more} if more else label.column


def plain(value: Any) -> Any:
    """Return nested mappings and sequences as plain dicts and lists, which YAML can write."""
    if isinstance(value, Mapping):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 digest of the canonical text of a policy. The digest changes if the
    content of a hierarchy changes.
    """
    return hashlib.sha256(canonical_policy(policy).encode()).hexdigest()


def canonical_policy(policy: Policy) -> str:
    """Return everything that the policy declares as one JSON text. Equal policies give equal texts.

    For a hierarchy, the text has the digest of its content instead of the name of its file.
    """
    data = policy_mapping(policy)
    for attribute in policy.attributes.values():
        if attribute.hierarchy is not None:
            data["attributes"][attribute.name]["hierarchy"] = attribute.hierarchy.digest
    return json.dumps(data, sort_keys=True, default=str)
