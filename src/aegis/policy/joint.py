"""Decide whether a rule can be checked on several releases of one table together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aegis.errors import PolicyError
from aegis.policy.model import Configuration, Policy


def require_joint_rule(policy: Policy) -> None:
    """Raise an error unless the policy's rule can be checked on the classes that several releases
    form together.

    Raises
    ------
    PolicyError
        The rule counts persons, or it is possible that fine classes meet the rule and coarser ones
        fail it.
    """
    if policy.person is not None:
        raise PolicyError(
            "Aegis combines releases row by row, but the policy counts persons.",
            hint="Leave `person` out of the policy.",
        )
    if not policy.privacy.monotone:
        raise PolicyError(
            "The rule compares classes with the whole table. So even if the joint classes meet it, a "
            "single release may not.",
            hint="Use criteria that coarser tables keep, such as k or l_diversity.",
        )


def made_after(releases: Sequence[Configuration]) -> tuple[frozenset[int], ...]:
    """Return, for each release, the indices of the earlier releases that it took into account.

    The certificate of a release lists these earlier releases. A configuration that is not yet
    released is treated as if it were released after all entries before it.

    Raises
    ------
    PolicyError
        A release took into account a release that is not among the entries before it.
    """
    return tuple(
        frozenset(range(place))
        if release.after is None
        else frozenset(_place(earlier, releases[:place], release) for earlier in release.after)
        for place, release in enumerate(releases)
    )


def _place(
    earlier: Mapping[str, Any], before: Sequence[Configuration], release: Configuration
) -> int:
    """Return the index in `before` of a release that the certificate of `release` names."""
    digest = earlier.get("certificate")
    for place, known in enumerate(before):
        same = known.spec() == earlier.get("masks")
        if known.certificate == digest if known.certificate and digest else same:
            return place
    named = "a release without a certificate" if digest is None else f"that of certificate {digest}"
    raise PolicyError(
        f"Release {release.name!r} was made after another one, {named}, which is not named before it.",
        hint="Name all releases in the order in which you made them, as you named them for --after.",
    )
