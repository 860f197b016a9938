"""One text for all that a policy declares, and its digest."""

from __future__ import annotations

import hashlib
import json

from aegis.policy.mapping import policy_mapping
from aegis.policy.model import Policy


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 of a policy's content, including that of its hierarchies."""
    return hashlib.sha256(canonical_policy(policy).encode()).hexdigest()


def canonical_policy(policy: Policy) -> str:
    """Return the content of a policy as one JSON text, equal for equal policies.

    In place of a hierarchy's file stands the digest of its content.
    """
    data = policy_mapping(policy)
    for attribute in policy.attributes.values():
        if attribute.hierarchy is not None:
            data["attributes"][attribute.name]["hierarchy"] = attribute.hierarchy.digest
    return json.dumps(data, sort_keys=True, default=str)
