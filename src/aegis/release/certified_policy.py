"""Read policy and masks from a certificate, without the hierarchy files to which it refers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aegis.masking import masked_population
from aegis.masks import Mask
from aegis.policy import Policy
from aegis.sources import Source


def names_hierarchies(policy: Mapping[str, Any]) -> bool:
    """Return whether the policy in a certificate refers to hierarchy files."""
    attributes = policy.get("attributes")
    if not isinstance(attributes, Mapping):
        return False
    return any(isinstance(entry, Mapping) and "hierarchy" in entry for entry in attributes.values())


def without_files(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the certificate's policy without hierarchies, and without masks that use them."""
    attributes = {
        name: {key: value for key, value in entry.items() if key in ("role", "weight", "kind")}
        for name, entry in policy["attributes"].items()
    }
    kept_keys = ("version", "label", "labels", "serve", "labels_known", "person", "weight")
    same_keys = {k: v for k, v in policy.items() if k in kept_keys}
    return same_keys | {"attributes": attributes}


def certified_population(
    policy: Policy | None, original: Source | None, masks: Mapping[str, Mask | None]
) -> Source | None:
    """Return the population with which the certified classes are compared.

    Return None if no policy is given, or if the population follows from an original table that is
    not given.
    """
    if policy is None:
        return None
    needed = {policy.weight, *(a.name for a in policy.quasi_identifiers)}
    known = original is not None and needed <= set(original.columns)
    return masked_population(policy, original if known else None, masks)


def mask_parameters(spec: Any, path: str = "") -> set[tuple[str, str]]:
    """Return each parameter of a mask as a path, which begins with `path`, and a value as JSON."""
    if isinstance(spec, Mapping):
        return {
            leaf for k, value in spec.items() for leaf in mask_parameters(value, f"{path}.{k}")
        } or {(path, "")}
    return {(path, json.dumps(spec, default=str))} if path else {(f".{spec}", "")}
