"""Declare roles, candidate masks, the privacy rule and the measure in a policy."""

from aegis.policy.canonical import policy_digest
from aegis.policy.labels import (
    ANY_LABEL,
    NO_LABEL,
    Label,
    LabelTask,
    Serve,
    SeveralLabels,
    several_labels,
)
from aegis.policy.lines import Located
from aegis.policy.load import (
    as_policy,
    dump_configurations,
    dump_policy,
    load_configurations,
    load_policy,
    measure_of_choice,
    parse_value,
    read_document,
    read_mapping,
    write_mapping,
)
from aegis.policy.mapping import policy_mapping
from aegis.policy.model import (
    Attribute,
    AttributeKind,
    Configuration,
    MethodChoice,
    Policy,
    Role,
    SuppressedColumns,
    Unseen,
    ValueType,
    listed_configurations,
)
from aegis.policy.terms import OwnerRule, RuleOverride, Terms, owner_of_choice, rule_of

__all__ = [
    "ANY_LABEL",
    "NO_LABEL",
    "Attribute",
    "AttributeKind",
    "Configuration",
    "Label",
    "LabelTask",
    "Located",
    "MethodChoice",
    "OwnerRule",
    "Policy",
    "Role",
    "RuleOverride",
    "Serve",
    "SeveralLabels",
    "SuppressedColumns",
    "Terms",
    "Unseen",
    "ValueType",
    "as_policy",
    "dump_configurations",
    "dump_policy",
    "listed_configurations",
    "load_configurations",
    "load_policy",
    "measure_of_choice",
    "owner_of_choice",
    "parse_value",
    "policy_digest",
    "policy_mapping",
    "read_document",
    "read_mapping",
    "rule_of",
    "several_labels",
    "write_mapping",
]
