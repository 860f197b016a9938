"""What the user declares: roles, candidate masks, the privacy rule, the measure."""

from aegis.policy.load import (
    dump_configurations,
    dump_policy,
    load_configurations,
    load_policy,
    policy_digest,
    policy_mapping,
)
from aegis.policy.model import Attribute, Configuration, Label, Policy, Role, Unseen

__all__ = [
    "Attribute",
    "Configuration",
    "Label",
    "Policy",
    "Role",
    "Unseen",
    "dump_configurations",
    "dump_policy",
    "load_configurations",
    "load_policy",
    "policy_digest",
    "policy_mapping",
]
