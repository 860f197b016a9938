"""The limits that an agent checks every job against: the provider's policy, a floor, approvers'
keys.

All of it lies beside the data, where the service cannot reach. A job that asks for more is refused,
whoever sent it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any

from aegis.errors import PolicyError, choices
from aegis.masks import Mask, parse_mask
from aegis.policy import Configuration, Policy, load_policy, policy_digest
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.statements import KIND, SignedStatement, digest
from aegis.signing import PublicKey, load_public_key

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_SOURCE_KEYS = ("table", "policy", "floor")
_FLOOR_KEYS = (
    "k",
    "suppression",
    "never",
    "roles",
    "masks",
    "threshold",
    "epsilon",
    "epsilon_a_day",
    "releases_a_day",
)


_SHAPES: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "summarize": {"protect": str},
    "check": {
        "configurations": list,
        "certificates": list,
        "measure": (str, NoneType),
        "may_search": bool,
    },
    "release": {"configuration": str, "measure": (str, NoneType), "approvals": list},
}
"""What the task of each kind of job holds, beside source and policy."""
_NUMBERS = {"noise": ("epsilon", "delta"), "counts": ("threshold",)}


class RefusedError(CatalogError):
    """A job is below the provider's limits; the message quotes no row, so the service may read
    it.
    """


@dataclass(frozen=True)
class Floor:
    """The least protection of all outputs of a table.

    Attributes
    ----------
    k
        Least k of the rule.
    suppression
        Most share of the rows that the rule may suppress, in [0, 1].
    never
        Columns that never leave.
    roles
        Roles that cannot change, by attribute.
    masks
        Masks that may be used, by attribute; by default the candidates of the pinned policy.
    threshold
        Least threshold of a summary by counts; None if none may leave.
    epsilon, epsilon_a_day
        Most epsilon that all outputs may spend, and those of 24 hours; 0 where no noise may leave.
    releases_a_day
        Most releases in 24 hours.
    """

    k: int = 2
    suppression: float = 1.0
    never: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    masks: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    threshold: int | None = None
    epsilon: float = 0.0
    epsilon_a_day: float | None = None
    releases_a_day: int = 1


@dataclass(frozen=True)
class PinnedSource:
    """A table that the agent may read, and the allowed outputs.

    Attributes
    ----------
    table
        Path or URL.
    policies
        The policies that it may be masked under, by digest; None if the digest alone is known.
    floor
        The least protection.
    """

    table: str
    policies: Mapping[str, Policy | None]
    floor: Floor = Floor()

    def require_policy(self, policy: Policy) -> None:
        """Raise unless a policy is a pinned one and above the floor.

        Raises
        ------
        RefusedError
            It is not; the message names what differs.
        """
        wrong = _below_floor(policy, self.floor)
        if policy_digest(policy) not in self.policies:
            pinned = next((p for p in self.policies.values() if p is not None), None)
            wrong = [*wrong, *([] if pinned is None else _differing(policy, pinned))]
            wrong = wrong or ["it differs from the pinned one"]
        if wrong:
            raise RefusedError(
                f"The agent refuses the policy: {'; '.join(dict.fromkeys(wrong))}.",
                hint="The provider pins policies and a floor in the agent's file.",
            )

    def require_masks(
        self, configuration: Configuration, policy: Policy, seen: Mapping[str, Sequence[Any]]
    ) -> None:
        """Raise an error unless every mask is allowed.

        Parameters
        ----------
        configuration
            What would be released.
        policy
            A pinned policy.
        seen
            By attribute the masks, as written, that this agent has fitted to candidates before.

        Raises
        ------
        RefusedError
            A mask may not be used, or an attribute has none.
        """
        wrong = []
        for name, attribute in policy.attributes.items():
            allowed = self._allowed(name, attribute)
            if not allowed:
                continue
            mask = configuration.masks.get(name)
            if mask is None:
                wrong.append(f"{name} has no mask")
            elif mask not in allowed and _plain(mask.spec()) not in seen.get(name, ()):
                wrong.append(f"{mask} of {name} may not be used")
        unknown = configuration.masks.keys() - policy.attributes.keys()
        wrong += [f"the policy has no {name}" for name in unknown]
        if wrong:
            raise RefusedError(
                f"The agent refuses the configuration: {'; '.join(wrong)}.",
                hint="Choose among the candidate masks of the pinned policy.",
            )

    def _allowed(self, name: str, attribute: Any) -> tuple[Mask, ...]:
        if name not in self.floor.masks:
            return tuple(attribute.masks)
        hierarchy = attribute.hierarchy
        return tuple(parse_mask(given, hierarchy=hierarchy) for given in self.floor.masks[name])

    def require_summary(self, task: Mapping[str, Any]) -> None:
        """Raise unless a summary would be protected enough.

        Raises
        ------
        RefusedError
            It would not.
        """
        if task["protect"] == "noise":
            return  # its epsilon is held against the budget, with all that was spent before
        least = self.floor.threshold
        if task["protect"] != "counts" or least is None or task["threshold"] < least:
            asked = f"{task['protect']} with threshold {task.get('threshold')}"
            allowed = "none by counts" if least is None else f"counts with {least} or more"
            raise RefusedError(
                f"The agent refuses a summary by {asked}: allowed is {allowed}.",
                hint="The provider names `threshold` in the floor of the source.",
            )

    def require_columns(self, columns: Sequence[str]) -> None:
        """Raise an error if a column would leave that must never leave."""
        leaving = [name for name in columns if name in self.floor.never]
        if leaving:
            raise RefusedError(
                f"The agent refuses to release {', '.join(leaving)}.",
                hint="The provider names columns that never leave in the floor of the source.",
            )


@dataclass(frozen=True)
class Approvers:
    """Whose signatures an agent believes.

    Attributes
    ----------
    keys
        Public keys by name.
    needed
        How many different approvers must have signed.
    """

    keys: Mapping[str, PublicKey]
    needed: int

    def require(self, job: Mapping[str, Any], policy: Policy) -> None:
        """Raise an error unless enough approvers have signed the release of a job.

        Parameters
        ----------
        job
            The job as the service gave it, its task with `approvals`.
        policy
            The policy of the task.

        Raises
        ------
        RefusedError
            Too few have.
        """
        task = job["task"]
        expected = {
            "kind": KIND,
            "request": job["request"],
            "data_set": job["data_set"],
            "source": task["source"],
            "policy": policy_digest(policy),
            "configuration": digest(task["configuration"]),
        }
        good, reasons = set[str](), []
        for given in task.get("approvals") or ():
            name, reason = self._signer(given, expected)
            if reason:
                reasons.append(reason)
            else:
                good.add(name)
        if len(good) < self.needed:
            why = f" ({'; '.join(reasons)})" if reasons else ""
            raise RefusedError(
                f"The agent wants {self.needed} signed approvals of this release and has "
                f"{len(good)}{why}.",
                hint="Approve with a key that the agent knows: aegis catalog approve --key.",
            )

    def _signer(self, given: object, expected: Mapping[str, Any]) -> tuple[str, str]:
        """Return who signed, and why that does not count; empty if it does."""
        try:
            signed = SignedStatement.of(given)
            over = signed.expires <= datetime.now(UTC)
        except CatalogError as error:
            return "", error.message
        name = next((n for n, k in self.keys.items() if k.text == signed.signature.key), None)
        if name is None:
            return "", "one is by a key that the agent does not know"
        if not signed.verified():
            return "", f"the signature of {name} is not of this statement"
        if over:
            return "", f"that of {name} has expired"
        other = [key for key, value in expected.items() if signed.statement.get(key) != value]
        if other:
            return "", f"that of {name} is for another {', '.join(other)}"
        return name, ""


def require_shape(job: Mapping[str, Any]) -> None:
    """Raise an error unless a job holds the fields of its kind, each of the right type.

    Raises
    ------
    RefusedError
        It does not; nothing of it was looked at.
    """
    task, kind = job.get("task"), str(job.get("kind"))
    if kind not in _SHAPES or not isinstance(task, Mapping) or type(job.get("attempt")) is not int:
        raise _malformed(f"a job of kind {kind!r}")
    shape = {"source": str, "policy": str, **_SHAPES[kind]}
    if kind == "release" and not isinstance(job.get("request"), str):
        raise _malformed("a release without a request")
    for key, types in shape.items():
        if key not in task or not isinstance(task[key], types):
            raise _malformed(f"{kind} with {key} {task.get(key)!r:.40}")
    for key in _NUMBERS.get(str(task.get("protect")), ()) if kind == "summarize" else ():
        value = task.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise _malformed(f"a summary with {key} {value!r:.40}")
    if kind == "check" and not all(
        isinstance(text, str) for text in (*task["configurations"], *task["certificates"])
    ):
        raise _malformed("a check of what is no text")


def certificate_of(text: str) -> dict[str, Any]:
    """Return a certificate that came with a job, with the masks that it is of.

    Raises
    ------
    RefusedError
        It has none.
    """
    try:
        document = json.loads(text)
        dict(document["configuration"]["masks"])
    except (ValueError, KeyError, TypeError) as error:
        raise _malformed("a certificate without masks") from error
    return dict(document)


def _malformed(what: str) -> RefusedError:
    return RefusedError(
        f"The agent refuses {what}: the job is malformed.",
        hint="Use a service of the agent's version.",
    )


def load_sources(given: object, folder: Path) -> dict[str, PinnedSource]:
    """Return the sources of an agent's file, by name.

    Raises
    ------
    PolicyError
        A source pins no policy, or a key is unknown or out of range.
    """
    if not isinstance(given, Mapping) or not given:
        raise PolicyError(
            "`sources` of the agent's file names no table.",
            hint="Write sources: {NAME: {table: FILE, policy: FILE, floor: {...}}}.",
        )
    return {str(name): _source(str(name), entry, folder) for name, entry in given.items()}


def load_approvers(given: object, needed: object, folder: Path) -> Approvers:
    """Return whose signatures the agent believes.

    Raises
    ------
    PolicyError
        No key is given, a key cannot be read, or fewer keys are given than are needed.
    """
    if not isinstance(given, Mapping):
        given = {}
    keys = {str(name): load_public_key(folder / str(file)) for name, file in given.items()}
    wanted = 1 if needed is None else needed
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
        raise PolicyError(
            f"`approvals` of the agent's file is {wanted!r}.",
            hint="Give how many approvers must sign: 1, 2, ..., or 0 for none.",
        )
    if len({key.text for key in keys.values()}) < wanted:
        raise PolicyError(
            f"The agent's file wants {wanted} signed approvals and knows {len(keys)} approvers.",
            hint="Write approvers: {NAME: FILE.pub.pem}, or `approvals: 0` to run without.",
        )
    return Approvers(keys, wanted)


def _source(name: str, given: object, folder: Path) -> PinnedSource:
    if not isinstance(given, Mapping) or "table" not in given or "policy" not in given:
        raise PolicyError(
            f"The source {name!r} of the agent's file pins no policy.",
            hint="Write NAME: {table: FILE, policy: FILE or sha256:..., floor: {...}}.",
        )
    _require_known(f"the source {name!r}", given, _SOURCE_KEYS)
    table = str(given["table"])
    named = given["policy"] if isinstance(given["policy"], list) else [given["policy"]]
    policies = dict(_pinned(str(policy), folder) for policy in named)
    place = table if "://" in table else str(folder / table)
    return PinnedSource(place, policies, _floor(name, given.get("floor") or {}))


def _pinned(given: str, folder: Path) -> tuple[str, Policy | None]:
    if _DIGEST.fullmatch(given):
        return given.removeprefix("sha256:"), None
    policy = load_policy(folder / given)
    return policy_digest(policy), policy


def _floor(name: str, given: object) -> Floor:
    if not isinstance(given, Mapping):
        raise PolicyError(
            f"The floor of {name!r} is no mapping.", hint=f"Its keys: {', '.join(_FLOOR_KEYS)}."
        )
    _require_known(f"the floor of {name!r}", given, _FLOOR_KEYS)
    ranges = {
        "k": (int, 1, 1 << 40),
        "threshold": (int, 2, 10_000),
        "releases_a_day": (int, 0, 1 << 40),
        "suppression": (float, 0, 1),
        "epsilon": (float, 0, 1e6),
        "epsilon_a_day": (float, 0, 1e6),
    }
    for key, (kind, least, most) in ranges.items():
        value = given.get(key, least)
        whole = isinstance(value, int) or (kind is float and isinstance(value, float))
        if not whole or isinstance(value, bool) or not least <= value <= most:
            raise PolicyError(
                f"{key} in the floor of {name!r} is {value!r}.",
                hint=f"Allowed: a number from {least} to {most:g}.",
            )
    values = dict(given)
    values["never"] = tuple(map(str, given.get("never") or ()))
    values["roles"] = {str(k): str(v) for k, v in (given.get("roles") or {}).items()}
    values["masks"] = {str(k): tuple(v) for k, v in (given.get("masks") or {}).items()}
    return Floor(**values)


def _require_known(what: str, given: Mapping[Any, Any], allowed: Sequence[str]) -> None:
    for key in given:
        if key not in allowed:
            raise PolicyError(
                f"{what[0].upper()}{what[1:]} has the key {key!r}.",
                hint=choices(str(key), allowed),
            )


def _below_floor(policy: Policy, floor: Floor) -> list[str]:
    wrong = []
    k = policy.privacy.minimum_size
    if k < floor.k:
        wrong.append(f"its k is {k}, below {floor.k}")
    if policy.privacy.suppression > floor.suppression:
        allowed = f"above {floor.suppression:g}"
        wrong.append(f"it may suppress {policy.privacy.suppression:g} of the rows, {allowed}")
    for name, role in floor.roles.items():
        attribute = policy.attributes.get(name)
        if attribute is not None and str(attribute.role) != role:
            wrong.append(f"{name} is {attribute.role}, not {role}")
    for name in floor.never:
        attribute = policy.attributes.get(name)
        released = attribute is not None and str(attribute.role) != "identifier"
        if released or policy.label.column == name:
            wrong.append(f"{name} never leaves")
    return wrong


def _differing(policy: Policy, pinned_policy: Policy) -> list[str]:
    """Return what a policy says otherwise than the pinned one, as far as it protects."""
    wrong = []
    if policy.privacy != pinned_policy.privacy:
        wrong.append(f"its rule is {policy.privacy}, and the pinned one {pinned_policy.privacy}")
    for name, attribute in policy.attributes.items():
        own = pinned_policy.attributes.get(name)
        if own is None:
            wrong.append(f"the pinned one has no {name}")
        elif own.role != attribute.role:
            wrong.append(f"{name} is {attribute.role}, not {own.role}")
        elif own.masks != attribute.masks:
            wrong.append(f"{name} has other masks")
    wrong += [
        f"it lacks {name}" for name in pinned_policy.attributes if name not in policy.attributes
    ]
    return wrong


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
