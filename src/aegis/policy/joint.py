"""Which rules can be checked against several releases of one table together."""

from __future__ import annotations

from aegis.errors import PolicyError
from aegis.policy.model import Policy


def require_joint_rule(policy: Policy) -> None:
    """Raise unless the rule of a policy says something of the joint classes of releases.

    Raises
    ------
    PolicyError
        The rule counts persons, or coarser classes may break it.
    """
    if policy.person is not None:
        raise PolicyError(
            "Releases are put together by rows, and the policy counts persons.",
            hint="Leave `person` out of the policy.",
        )
    if not policy.privacy.monotone:
        raise PolicyError(
            "The rule compares classes with the whole table, so that joint classes that meet it say "
            "nothing of a single release.",
            hint="Use criteria that coarser tables keep, such as k or l_diversity.",
        )
