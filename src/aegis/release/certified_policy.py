"""Read the policy in a certificate, without the files that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def names_hierarchies(policy: Mapping[str, Any]) -> bool:
    """Return whether a certified policy names files of hierarchies."""
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
    kept_keys = ("version", "label", "labels", "serve", "labels_known", "person")
    same_keys = {k: v for k, v in policy.items() if k in kept_keys}
    return same_keys | {"attributes": attributes}
