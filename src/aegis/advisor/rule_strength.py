"""Set one parameter of a privacy rule, to compute a point of a front."""

from __future__ import annotations

import math
from dataclasses import replace

from aegis.errors import PolicyError
from aegis.privacy import MODELS, PrivacyRule


def rule_at(rule: PrivacyRule, parameter: str, value: float) -> PrivacyRule:
    """Return `rule` with one parameter set.

    The parameters `k` and `risk` (1 / k) both set the k of the rule; if the rule has no k, they add
    one.

    Raises
    ------
    PolicyError
        No criterion of the rule has the parameter, or its model does not allow the value.
    """
    if parameter == "suppression":
        return replace(rule, suppression=value)
    if parameter in ("k", "risk"):
        k = int(value) if parameter == "k" else math.ceil(1 / value - 1e-9)
        asked = PrivacyRule.parse({"k": k}).criteria
        models = [criterion.model for criterion in asked]
        others = tuple(c for c in rule.criteria if c.model not in models)
        return replace(rule, criteria=(*asked, *others))
    varied = [c for c in rule.criteria if parameter in (p.name for p in c.model.parameters)]
    if not varied:
        keys = {m.key for m in MODELS if parameter in (p.name for p in m.parameters)}
        raise PolicyError(
            f"A front over {parameter} needs a rule with one of: {', '.join(sorted(keys))}.",
            hint="Add the criterion to `privacy` in the policy.",
        )
    criteria = (c.with_parameter(parameter, value) if c in varied else c for c in rule.criteria)
    return replace(rule, criteria=tuple(criteria))
