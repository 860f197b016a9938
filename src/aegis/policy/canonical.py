"""Write the canonical text of a policy, and compute its digest."""

from __future__ import annotations

import hashlib
import json

from aegis.policy.mapping import policy_mapping
from aegis.policy.model import Policy


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 of the canonical policy, which includes the content of hierarchies."""
    return hashlib.sha256(canonical_policy(policy).encode()).hexdigest()


def canonical_policy(policy: Policy) -> str:
    """Return all declarations of the policy as one JSON text, equal for equal policies.

    The digest of a hierarchy's content replaces the name of its file.
    """
    data = policy_mapping(policy)
    for attribute in policy.attributes.values():
        if attribute.hierarchy is not None:
            data["attributes"][attribute.name]["hierarchy"] = attribute.hierarchy.digest
    return json.dumps(data, sort_keys=True, default=str)
