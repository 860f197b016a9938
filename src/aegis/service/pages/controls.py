"""Convert the workbench's form to a policy, and a policy to the form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from starlette.datastructures import FormData

from aegis.errors import PolicyError
from aegis.policy import Policy, Role
from aegis.policy.load import parse_value
from aegis.service.workbench import FormChanges


@dataclass(frozen=True)
class AttributeControl:
    """The form controls of one attribute: its role, and its candidate masks, each as readable text
    and as in a policy, on one line.
    """

    name: str
    role: str
    masks: tuple[tuple[str, str], ...]

    @property
    def open_to_change(self) -> bool:
        """Whether the attribute has several masks, or one that changes values. The form lists it
        first.
        """
        return any(mask not in ("identity", "suppress") for mask, _ in self.masks) or (
            len(self.masks) > 1
        )


def attributes_of(policy: Policy) -> tuple[AttributeControl, ...]:
    """Return the attributes of a policy for the form."""
    return tuple(
        AttributeControl(a.name, str(a.role), tuple((str(m), one_line(m.spec())) for m in a.masks))
        for a in policy.attributes.values()
    )


def rule_of(policy: Policy) -> dict[str, Any]:
    """Return the rule of a policy for the form: the smallest class size `k`, the percentage of rows
    that may be suppressed and, for each sensitive attribute, the l of l-diversity and the t of
    t-closeness (None where the rule requires none). Criteria without a control stay as in the policy.
    """
    mapping = policy.privacy.to_mapping()
    diverse = _per_attribute(mapping.get("l_diversity"), "l")
    close = _per_attribute(mapping.get("t_closeness"), "t")
    names = dict.fromkeys([*policy.sensitive, *diverse, *close])
    return {
        "k": int(mapping.get("k", 1)),
        "suppression": 100 * float(mapping.get("suppression", 0)),
        "sensitive": [(name, diverse.get(name), close.get(name)) for name in names],
    }


def privacy_of(policy: Policy, form: FormData) -> dict[str, Any]:
    """Return the `privacy:` mapping of the policy with the values of a form. Raise `PolicyError` if
    the value of a control is not a number.
    """
    mapping = dict(policy.privacy.to_mapping())
    k = int(_number(form, "k", 1))
    mapping.pop("k", None)
    if k > 1:
        mapping["k"] = k
    mapping["suppression"] = _number(form, "suppression", 0) / 100
    for key, name in (("l_diversity", "l"), ("t_closeness", "t")):
        before = {entry["attribute"]: entry for entry in _entries(mapping.pop(key, None))}
        thresholds = {
            attribute: _number(form, f"{name}:{attribute}", 0)
            for attribute, value in dict(_fields(form, name)).items()
            if value.strip()
        }
        if thresholds:
            mapping[key] = [
                {**before.get(attribute, {}), "attribute": attribute, name: value}
                for attribute, value in thresholds.items()
            ]
    return mapping


def form_values(policy: Policy) -> dict[str, Any]:
    """Return the controls of a policy, for the template of the form."""
    roles = [str(role) for role in Role]
    return {"attributes": attributes_of(policy), "rule": rule_of(policy), "roles": roles}


def changes(policy: Policy, form: FormData) -> FormChanges:
    """Return the changes that a form makes to a policy."""
    masks: dict[str, dict[str, list[Any]]] = {"mask": {}, "more": {}}
    for kind, by_name in masks.items():
        for name, value in _fields(form, kind):
            if value.strip():
                by_name.setdefault(name, []).append(parse_value(value, name))
    roles = dict(_fields(form, "role"))
    return FormChanges(roles, masks["mask"], masks["more"], privacy_of(policy, form))


def _fields(form: FormData, kind: str) -> list[tuple[str, str]]:
    """Return attributes and values from the form fields with names such as `kind:attribute`."""
    named = [(key.partition(":"), str(value)) for key, value in form.multi_items()]
    return [(name, value) for (prefix, colon, name), value in named if prefix == kind and colon]


def one_line(spec: Any) -> str:
    """Return a mask on one line of YAML, from its written form in a policy (`spec`)."""
    return spec if isinstance(spec, str) else json.dumps(spec, ensure_ascii=False, default=str)


def _entries(criterion: Any) -> list[dict[str, Any]]:
    """Return the entries of a privacy criterion, which may be one mapping, as a list."""
    listed: Sequence[Any] = criterion if isinstance(criterion, list) else [criterion]
    return [dict(e) for e in listed if isinstance(e, Mapping) and "attribute" in e]


def _per_attribute(criterion: Any, name: str) -> dict[str, float]:
    return {str(e["attribute"]): float(e[name]) for e in _entries(criterion) if name in e}


def _number(form: FormData, name: str, default: float) -> float:
    text = str(form.get(name, default)).strip() or str(default)
    try:
        value = float(text)
    except ValueError as error:
        raise PolicyError(f"{name} is {text!r}.", hint="Give a number.") from error
    if not isfinite(value):
        raise PolicyError(f"{name} is {text!r}.", hint="Give a finite number.")
    return value
