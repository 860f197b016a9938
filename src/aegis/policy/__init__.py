"""What the user declares: roles, candidate masks, the privacy rule, the measure."""

from aegis.policy.lines import Located
from aegis.policy.load import (
    as_policy,
    dump_configurations,
    dump_policy,
    load_configurations,
    load_policy,
    measure_of_choice,
    parse_value,
    policy_digest,
    policy_mapping,
    read_document,
    read_mapping,
    write_mapping,
)
from aegis.policy.model import (
    Attribute,
    AttributeKind,
    Configuration,
    Label,
    MethodChoice,
    Policy,
    Role,
    Unseen,
)

__all__ = [
    "Attribute",
    "AttributeKind",
    "Configuration",
    "Label",
    "Located",
    "MethodChoice",
    "Policy",
    "Role",
    "Unseen",
    "as_policy",
    "dump_configurations",
    "dump_policy",
    "load_configurations",
    "load_policy",
    "measure_of_choice",
    "parse_value",
    "policy_digest",
    "policy_mapping",
    "read_document",
    "read_mapping",
    "write_mapping",
]
