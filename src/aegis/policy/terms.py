"""Keep the policy and the rule of a summary's owner, and whether the rule is locked; and decide
whether a rule can be checked on several releases of one table together.

People who compute advice from the summary, or apply the advice, may declare another rule. Aegis
then reports the difference. If the owner has locked the rule, Aegis refuses a weaker rule.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from aegis.errors import PolicyError
from aegis.policy.configuration import Configuration
from aegis.policy.lines import Located
from aegis.policy.load import canonical_policy, choice
from aegis.policy.model import Policy
from aegis.privacy import PrivacyRule, Strength, missing, strength
from aegis.words import counted, json_fields


@dataclass(frozen=True)
class OwnerRule:
    """The privacy rule under which the owner of a table made its summary, and whether the rule is
    locked: whether the owner forbids weaker rules.
    """

    rule: PrivacyRule
    locked: bool = False

    @classmethod
    def of(cls, entry: object, where: str) -> OwnerRule:
        """Return the rule in a mapping that `to_dict` wrote; refuse anything else, at `where`."""
        if not isinstance(entry, Mapping) or not entry.keys() <= {"privacy", "person", "locked"}:
            raise PolicyError(
                f"{where} does not state correctly which rule the summary was made under: {entry!r}.",
                hint="Write {privacy: {k: 5}}, with person and locked where they matter.",
            )
        person, locked = entry.get("person"), entry.get("locked", False)
        if not isinstance(person, str | None) or not isinstance(locked, bool):
            raise PolicyError(
                f"{where} does not state correctly which rule the summary was made under: {entry!r}.",
                hint="person is the name of a column, and locked is true or false.",
            )
        return cls(replace(rule_of(entry.get("privacy")), person=person), locked)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as in a policy, with the column of persons and whether it is locked."""
        return {
            "privacy": self.rule.to_mapping(),
            "person": self.rule.person,
            "locked": self.locked,
        }

    def require(self, rule: PrivacyRule, *, override: bool, what: str) -> RuleOverride | None:
        """Return how `rule` differs from the owner's rule; None if both require the same. Raise
        `PolicyError` if the rule differs and the user did not confirm this (`override`), or if it
        is weaker and the owner's rule is locked. The message calls the object that was made under
        the owner's rule `what`.
        """
        compared = strength(rule, self.rule)
        if compared is Strength.SAME:
            return None
        lacks = missing(rule, self.rule)
        if compared is Strength.WEAKER and self.locked:
            raise PolicyError(
                f"{what} is locked to the rule {self.rule}, and the policy's rule is weaker: it does not "
                f"require {'; '.join(lacks)}.",
                hint="Declare a rule that requires as much, or ask the owner for another summary.",
            )
        if not override:
            raise PolicyError(
                f"{what} was made under the rule {self.rule}; the policy has another one: {rule}.",
                hint="Declare the owner's rule. To use the other rule on purpose, add --rule-override "
                "(in Python, rule_override=True).",
            )
        return RuleOverride(self, rule, lacks)


@dataclass(frozen=True)
class RuleOverride:
    """A rule that the user chose on purpose although it differs from the owner's rule. `lacks` has
    the requirements of the owner's rule that it does not imply; empty if it is stronger.
    """

    owner: OwnerRule
    used: PrivacyRule
    lacks: tuple[str, ...] = ()

    @property
    def weaker(self) -> bool:
        """Whether the used rule is weaker than the owner's, or cannot be compared."""
        return bool(self.lacks)

    @property
    def sentence(self) -> str:
        """A sentence for readers that says how the rule in use differs from the owner's rule."""
        overridden = (
            f"the owner's rule was overridden: the summary was made under {self.owner.rule}; "
            f"this is compared with {self.used}"
        )
        lacks = f", which does not ask for {'; '.join(self.lacks)}" if self.lacks else ""
        return f"{overridden}{lacks}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "owner": self.owner.to_dict(),
            "used": {"privacy": self.used.to_mapping(), "person": self.used.person},
            **json_fields(self, "weaker", "lacks", "sentence"),
        }


@dataclass(frozen=True)
class Terms:
    """The policy under which a summary was made, and whether its rule is locked.

    Attributes
    ----------
    policy
        Canonical form of the policy: the JSON text whose SHA-256 is the policy's digest.
    binding
        Whether a different rule must be confirmed. This is True if the summary was read from a
        bundle or its rule is locked. Somebody who has just summarised a table has the table, so no
        confirmation is needed.
    """

    policy: str
    locked: bool = False
    binding: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, policy: Policy, *, locked: bool = False) -> Terms:
        """Return the terms of a policy; `locked` forbids use with a weaker rule."""
        return cls(canonical_policy(policy), locked)

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the policy, as `policy_digest` computes it."""
        return hashlib.sha256(self.policy.encode()).hexdigest()

    @cached_property
    def declared(self) -> dict[str, Any]:
        """The policy as plain values, with digests in place of hierarchies."""
        try:
            mapping = json.loads(self.policy)
        except ValueError as error:
            raise ValueError(f"its policy is not JSON: {error}") from error
        if not isinstance(mapping, dict):
            raise ValueError("its policy is not a mapping")
        return mapping

    @cached_property
    def owner(self) -> OwnerRule:
        """The rule of the summary's owner, and whether it is locked."""
        person = self.declared.get("person")
        if not isinstance(person, str | None):
            raise ValueError("its policy's person is not a column")
        rule = rule_of(self.declared.get("privacy"))
        return OwnerRule(replace(rule, person=person), self.locked)


def owner_of_choice(source: str | Path | Located) -> OwnerRule | None:
    """Return the rule of the summary from which the configurations in a file (its path or its
    `read_document`) were chosen; None if they were chosen from the table itself. Raise
    `PolicyError` if the file is missing, not YAML or not a mapping, or has an invalid entry for the
    rule.
    """
    data = choice(source)
    if "made_under" not in data:
        return None
    where = source.origin if isinstance(source, Located) else str(source)
    return OwnerRule.of(data["made_under"], where)


def rule_of(mapping: object) -> PrivacyRule:
    """Return the rule in an entry `privacy`; without one, it requires nothing."""
    if mapping is None or mapping == {}:
        return PrivacyRule()
    if isinstance(mapping, Mapping) and mapping.keys() == {"suppression"}:
        return PrivacyRule(suppression=mapping["suppression"])
    return PrivacyRule.parse(mapping)  # type: ignore[arg-type]


def require_joint_rule(policy: Policy) -> None:
    """Raise `PolicyError` unless the policy's rule can be checked on the classes that several
    releases form together: not if it counts persons, or if fine classes may meet the rule and
    coarser ones fail it.
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
    """Refuse releases whose certificates state another number of rows of their table."""
    for release in releases:
        certified_rows = release.certified.get("rows")
        if certified_rows is not None and certified_rows != rows:
            raise PolicyError(
                f"Release {release.name!r} was made from a table of {certified_rows:,} rows, but this table has {rows:,}.",
                hint="Give the table of that release. Aegis checks only releases of one table together; to check "
                "its masks as if they were applied to this table, give its configuration (YAML).",
            )


def require_as_certified(
    releases: Sequence[Configuration], suppressed: Sequence[int], rule: PrivacyRule
) -> None:
    """Raise `PolicyError` if a release that was read from a certificate suppressed another number of
    rows than its masks suppress under `rule` (`suppressed`): then it is unknown which rows it shows.

    A release under a stronger rule may suppress more rows: the joint classes that Aegis checks are
    then at least as fine as the real ones.
    """
    for release, rows in zip(releases, suppressed, strict=True):
        suppressed_rows = release.certified.get("suppressed_rows")
        certified_rule = release.certified.get("rule")
        if suppressed_rows in (None, rows):
            continue
        stronger = isinstance(certified_rule, PrivacyRule) and (
            strength(replace(certified_rule, suppression=0.0), replace(rule, suppression=0.0))
            is Strength.STRONGER
        )
        if stronger and suppressed_rows > rows:
            continue
        why = "So it was made under another rule or other quasi-identifiers, or from another table"
        if isinstance(certified_rule, PrivacyRule) and not _same_criteria(certified_rule, rule):
            why = f"It was made under another rule: {certified_rule}"
        raise PolicyError(
            f"Release {release.name!r} suppressed {counted(suppressed_rows, 'row')}, but under this policy its masks would "
            f"suppress {counted(rows, 'row')} of this table. {why}. Aegis cannot tell which rows it shows.",
            hint="Give the table of that release, and a policy with the quasi-identifiers and the rule of that "
            "release. No later release can protect rows that it shows in classes that are too small.",
        )


def _same_criteria(rule: PrivacyRule, other_rule: PrivacyRule) -> bool:
    """Return whether two rules require the same of each class, in any order."""
    return {*map(str, rule.criteria)} == {*map(str, other_rule.criteria)}


def made_after(releases: Sequence[Configuration]) -> tuple[frozenset[int], ...]:
    """Return, for each release, the indices of the earlier releases that it took into account. Its
    certificate lists these. A configuration that is not yet released is treated as if it were
    released after all entries before it. Raise `PolicyError` if a release took into account one
    that is not among the entries before it.
    """
    return tuple(
        frozenset(range(index))
        if release.after is None
        else frozenset(_index_of(earlier, releases[:index], release) for earlier in release.after)
        for index, release in enumerate(releases)
    )


def _index_of(
    earlier: Mapping[str, Any], before: Sequence[Configuration], release: Configuration
) -> int:
    """Return the index in `before` of the `earlier` release that a certificate describes."""
    digest = earlier.get("certificate")
    for index, other in enumerate(before):
        unlisted = {name: mask.unlisted().spec() for name, mask in other.masks.items()}
        same = earlier.get("masks") in (other.spec(), unlisted)
        if other.certificate == digest if other.certificate and digest else same:
            return index
    named = "a release without a certificate" if digest is None else f"that of certificate {digest}"
    raise PolicyError(
        f"Release {release.name!r} was made after another one, {named}, which is not named before it.",
        hint="Name all releases in the order in which you made them, as you named them for --after.",
    )
