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
    label = policy.label
    data: dict[str, Any] = {
        "version": VERSION,
        **({"label": _label_entry(label)} if label else {}),
        **({} if label.several is None else _several_entries(label.several)),
        **({} if policy.reading is None else {"reading": policy.reading.to_dict()}),
        **({} if policy.measure is None else {"measure": policy.measure}),
        **({} if policy.person is None else {"person": policy.person}),
        **({} if policy.weight is None else {"weight": policy.weight}),
        **({} if policy.population is None else {"population": policy.population}),
        "privacy": policy.privacy.to_mapping(),
        "unseen": str(policy.unseen),
        **_unless_filled(policy.suppressed_columns),
        "attributes": {a.name: _attribute_entry(a) for a in policy.attributes.values()},
    }
    if policy.configurations:
        data["configurations"] = {n: c.spec() for n, c in policy.configurations.items()}
    if policy.anonymizers:
        data["anonymizers"] = [
            {anonymizer.method: plain(anonymizer.options)}
            if anonymizer.options
            else anonymizer.method
            for anonymizer in policy.anonymizers
        ]
    if policy.release:
        data["release"] = dict(policy.release)
    return data


def _attribute_entry(attribute: Attribute) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": str(attribute.role)}
    if attribute.hierarchy_source is not None:
        entry["hierarchy"] = attribute.hierarchy_source
    if attribute.masks:
        entry["masks"] = [mask.spec() for mask in attribute.masks]
    if attribute.weight != 1.0:
        entry["weight"] = attribute.weight
    for name, value in (("kind", attribute.kind), ("type", attribute.type)):
        if value is not None:
            entry[name] = str(value)
    for name, values in (("order", attribute.order), ("values", attribute.values)):
        if values:
            entry[name] = list(values)
    return entry


def _unless_filled(columns: SuppressedColumns) -> dict[str, Any]:
    return {} if columns is SuppressedColumns.FILL else {"suppressed_columns": str(columns)}


def _several_entries(several: SeveralLabels) -> dict[str, Any]:
    """Return the policy's keys for several labels, without keys that have their default value."""
    return {
        "labels": "any" if several.any_column else [_task_entry(task) for task in several.tasks],
        **({} if several.serve is Serve.MEAN else {"serve": str(several.serve)}),
        **({"labels_known": True} if several.known else {}),
    }


def _task_entry(task: LabelTask) -> str | dict[str, Any]:
    entry = _label_entry(task.label)
    more = {
        **({} if task.weight == 1.0 else {"weight": task.weight}),
        **({} if task.measure is None else {"measure": task.measure}),
    }
    if not more:
        return entry
    return {**(entry if isinstance(entry, dict) else {"column": entry}), **more}


def _label_entry(label: Label) -> str | dict[str, Any]:
    more = {
        **({"kind": str(label.kind)} if label.is_number else {}),
        **({"bins": label.bins} if label.bins else {}),
        **({"classes": list(label.classes)} if label.classes else {}),
        **({"cuts": list(label.cuts)} if label.cuts else {}),
        **({"bounds": list(label.bounds)} if label.bounds else {}),
    }
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
