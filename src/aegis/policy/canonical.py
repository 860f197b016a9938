"""Write the canonical text of a policy, and compute its digest."""

from __future__ import annotations

import hashlib
import json

from aegis.policy.mapping import policy_mapping
from aegis.policy.model import Policy


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 digest of the canonical policy. It covers the content of hierarchies."""
    return hashlib.sha256(canonical_policy(policy).encode()).hexdigest()


def canonical_policy(policy: Policy) -> str:
    """Return all declarations of the policy as one JSON text. Equal policies give equal texts.

    For a hierarchy, the text has the digest of its content instead of the name of its file.
    """
    data = policy_mapping(policy)
    for attribute in policy.attributes.values():
        if attribute.hierarchy is not None:
            data["attributes"][attribute.name]["hierarchy"] = attribute.hierarchy.digest
    return json.dumps(data, sort_keys=True, default=str)
