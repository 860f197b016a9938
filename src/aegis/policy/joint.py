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


def require_same_table(releases: Sequence[Configuration], rows: int) -> None:
    """Raise an error if a release was certainly made from another table, because that table had
    another number of rows.

    Parameters
    ----------
    releases
        The releases; only those that were read from a certificate know the rows of their table.
    rows
        Number of rows of the table.

    Raises
    ------
    PolicyError
        A release was made from a table with another number of rows.
    """
    for release in releases:
        if release.rows is not None and release.rows != rows:
            raise PolicyError(
                f"Release {release.name!r} was made from a table of {release.rows:,} rows, but this table has {rows:,}.",
                hint="Give the table of that release. Aegis checks only releases of one table together; to check "
                "its masks as if they were applied to this table, give its configuration (YAML).",
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
