"""Check jobs against the provider's pinned settings: policies, a floor, and approvers' keys.

The floor is the minimum protection. The settings are stored next to the data, where the service
cannot change them. The agent refuses every job that the settings do not allow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

from aegis.advisor.composition import certified_rows
from aegis.errors import DataError, PolicyError, choices
from aegis.masks import Mask, parse_mask
from aegis.policy import Configuration, Policy, load_policy, policy_digest
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.statements import KIND, MOST_DAYS, SignedStatement, digest
from aegis.signing import PublicKey, Signature, load_public_key, verify_seal
from aegis.words import counted

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_SOURCE_KEYS = ("table", "policy", "floor")
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
"""Fields of the task of each kind of job, in addition to source and policy."""
_NUMBERS = {"noise": ("epsilon", "delta"), "counts": ("threshold",)}


class RefusedError(CatalogError):
    """A job asks for something that the provider's own file for the agent does not allow. The
    message contains no values of rows, so the agent may send it to the service.
    """


@dataclass(frozen=True)
class Floor:
    """The minimum protection of all output about a table.

    Attributes
    ----------
    k
        Smallest k that the rule of a policy may have.
    suppression
        Largest share of the rows that the rule may suppress, in [0, 1].
    never
        Columns that are never released.
    roles, masks
        Fixed roles and allowed masks, by attribute. By default, the candidates in the policy that
        the provider allows are allowed.
    threshold
        Smallest threshold of a summary that shows counts; None if no such summary is allowed.
    epsilon, epsilon_a_day
        Largest epsilon of all outputs in total, and within 24 hours; 0 if no noise is allowed.
    releases_a_day
        Largest number of releases in 24 hours.
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


_FLOOR_KEYS = tuple(field.name for field in fields(Floor))


@dataclass(frozen=True)
class PinnedSource:
    """A table (path or URL) that the agent may read, with the minimum protection and, by digest,
    the policies that the provider fixed for it. A policy is None if only its digest is known.
    """

    table: str
    policies: Mapping[str, Policy | None]
    floor: Floor = Floor()

    def require_policy(self, policy: Policy) -> None:
        """Raise `RefusedError` unless the provider allows the policy, and it protects at least as
        much as the provider's minimum protection. The message names the difference.
        """
        wrong = _below_floor(policy, self.floor)
        if policy_digest(policy) not in self.policies:
            pinned = next((p for p in self.policies.values() if p is not None), None)
            wrong = [*wrong, *([] if pinned is None else _differing(policy, pinned))]
            wrong = wrong or ["it is not the pinned policy"]
        if wrong:
            raise RefusedError(
                f"The agent refuses the policy: {'; '.join(dict.fromkeys(wrong))}.",
                hint="The agent's file names the allowed policies and the floor. Only the provider "
                "can change it.",
            )

    def require_masks(
        self, configuration: Configuration, policy: Policy, masks_seen: Mapping[str, Sequence[Any]]
    ) -> None:
        """Raise `RefusedError` unless every attribute of a configuration has a mask that is
        allowed. `masks_seen` has masks that are allowed in addition, by attribute: those that this
        agent fitted to the table in earlier checks, as a policy writes them.
        """
        wrong = []
        for name, attribute in policy.attributes.items():
            allowed = self._allowed(name, attribute)
            if not allowed:
                continue
            mask = configuration.masks.get(name)
            if mask is None:
                wrong.append(f"{name} has no mask")
            elif mask not in allowed and json.loads(json.dumps(mask.spec())) not in masks_seen.get(
                name, ()
            ):
                wrong.append(f"{mask} of {name} may not be used")
        unknown = configuration.masks.keys() - policy.attributes.keys()
        wrong += [f"the policy has no {name}" for name in unknown]
        if wrong:
            raise RefusedError(
                f"The agent refuses the configuration: {'; '.join(wrong)}.",
                hint="Choose candidate masks of the pinned policy.",
            )

    def _allowed(self, name: str, attribute: Any) -> tuple[Mask, ...]:
        if name not in self.floor.masks:
            return tuple(attribute.masks)
        hierarchy = attribute.hierarchy
        return tuple(parse_mask(text, hierarchy=hierarchy) for text in self.floor.masks[name])

    def require_summary(self, task: Mapping[str, Any]) -> None:
        """Raise `RefusedError` if a job requests a summary with less than the minimum protection."""
        if task["protect"] == "noise":
            return  # its epsilon is held against the budget, with all that was spent before
        least = self.floor.threshold
        if task["protect"] != "counts" or least is None or task["threshold"] < least:
            protection = f"{task['protect']} with threshold {task.get('threshold')}"
            allowed = "none by counts" if least is None else f"counts with {least} or more"
            raise RefusedError(
                f"The agent refuses a summary by {protection}: allowed is {allowed}.",
                hint="Ask the provider: `threshold` in the floor of the source decides.",
            )

    def require_columns(self, columns: Sequence[str]) -> None:
        """Raise an error if a release has one of the columns that the provider never releases."""
        leaving = [name for name in columns if name in self.floor.never]
        if leaving:
            raise RefusedError(
                f"The agent refuses to release {', '.join(leaving)}.",
                hint="Suppress these columns, or ask the provider: `never` in the floor of the source "
                "names them.",
            )


@dataclass(frozen=True)
class Approvers:
    """The approvers whose signatures an agent accepts, with their public keys by name, and the
    number of different approvers who must have signed.
    """

    keys: Mapping[str, PublicKey]
    needed: int

    def require(self, job: Mapping[str, Any], policy: Policy) -> None:
        """Raise `RefusedError` unless enough approvers have signed the release of a job: those in
        `approvals` of its task, for this `policy`.
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
        for approval in task.get("approvals") or ():
            name, reason = self._signer(approval, expected)
            if reason:
                reasons.append(reason)
            else:
                good.add(name)
        if len(good) < self.needed:
            why = f" ({'; '.join(reasons)})" if reasons else ""
            raise RefusedError(
                f"The agent wants {counted(self.needed, 'signed approval')} of this release and has "
                f"{len(good)}{why}.",
                hint="Approve with a key that the agent knows (aegis catalog approve --key), then retry "
                "the release (aegis catalog retry).",
            )

    def _signer(self, approval: object, expected: Mapping[str, Any]) -> tuple[str, str]:
        """Return the name of the signer of a signed statement, and why it does not count, for
        example because it has expired (empty if it counts). `expected` has the fields that the
        statement must have.
        """
        try:
            signed = SignedStatement.of(approval)
            remaining = signed.expires - datetime.now(UTC)
        except CatalogError as error:
            return "", error.message
        name = next((n for n, k in self.keys.items() if k.text == signed.signature.key), None)
        if name is None:
            return "", "the agent does not know the key of one of them"
        if not signed.verified():
            return "", f"the signature of {name} does not match its statement"
        if remaining <= timedelta():
            return "", f"the approval of {name} has expired"
        if remaining > timedelta(days=MOST_DAYS):
            return "", f"the approval of {name} lasts more than {MOST_DAYS} days"
        other = [key for key, value in expected.items() if signed.statement.get(key) != value]
        if other:
            return "", f"the approval of {name} is for another {', '.join(other)}"
        return name, ""


def require_shape(job: Mapping[str, Any]) -> None:
    """Raise `RefusedError` unless a job has the fields of its kind, each with the right type."""
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
        raise _malformed("a check of what is not text")


def certificate_of(text: str) -> dict[str, Any]:
    """Parse a certificate that the service sent with a job. Raise `RefusedError` if the text has no
    masks, or is no certificate.
    """
    try:
        document = dict(json.loads(text))
        dict(document["configuration"]["masks"])
        certified_rows(document)
    except (ValueError, KeyError, TypeError, RecursionError, PolicyError) as error:
        raise _malformed("a certificate without masks") from error
    return document


def require_signed(document: Mapping[str, Any], keys: Sequence[PublicKey]) -> None:
    """Raise `RefusedError` unless one of the keys has signed a certificate."""
    try:
        signature = Signature.of(document.get("signature"))
    except DataError as error:
        raise _foreign() from error
    if not any(verify_seal(document, signature, key) for key in keys):
        raise _foreign()


def _foreign() -> RefusedError:
    return RefusedError(
        "The agent refuses the certificate of an earlier release: none of its keys has signed it.",
        hint="If another agent made that release, list its public key in the agent's file: former_keys: "
        "[FILE.pub].",
    )


def _malformed(what: str) -> RefusedError:
    return RefusedError(
        f"The agent refuses {what}: the job is malformed.",
        hint="Use a service of the agent's version.",
    )


def load_sources(sources: object, folder: Path) -> dict[str, PinnedSource]:
    """Read the tables from an agent's settings file. Paths are relative to `folder`. Raise
    `PolicyError` if a table has no allowed policy, or a key of the file is unknown or out of range.
    """
    if not isinstance(sources, Mapping) or not sources:
        raise PolicyError(
            "`sources` of the agent's file names no table.",
            hint="Write sources: {NAME: {table: FILE, policy: FILE, floor: {...}}}.",
        )
    return {str(name): _source(str(name), entry, folder) for name, entry in sources.items()}


def load_approvers(approvers: object, needed: object, folder: Path) -> Approvers:
    """Read the approvers' public keys and the required number of signatures from an agent's
    settings file. Paths are relative to `folder`. Raise `PolicyError` if no key is given, a key
    cannot be read, or fewer keys are given than are needed.
    """
    if not isinstance(approvers, Mapping):
        approvers = {}
    keys = {str(name): load_public_key(folder / str(file)) for name, file in approvers.items()}
    signatures = 1 if needed is None else needed
    if not isinstance(signatures, int) or isinstance(signatures, bool) or signatures < 0:
        raise PolicyError(
            f"`approvals` of the agent's file is {signatures!r}.",
            hint="Give how many approvers must sign: 1, 2, ..., or 0 for none.",
        )
    if len({key.text for key in keys.values()}) < signatures:
        raise PolicyError(
            f"The agent's file wants {counted(signatures, 'signed approval')} and knows "
            f"{counted(len(keys), 'approver')}.",
            hint="Write approvers: {NAME: FILE.pub.pem}, or `approvals: 0` to run without.",
        )
    return Approvers(keys, signatures)


def _source(name: str, entry: object, folder: Path) -> PinnedSource:
    if not isinstance(entry, Mapping) or "table" not in entry or "policy" not in entry:
        raise PolicyError(
            f"The source {name!r} of the agent's file pins no policy.",
            hint="Write NAME: {table: FILE, policy: FILE or sha256:..., floor: {...}}.",
        )
    _require_keys(f"the source {name!r}", entry, _SOURCE_KEYS)
    table = str(entry["table"])
    named = entry["policy"] if isinstance(entry["policy"], list) else [entry["policy"]]
    policies = dict(_pinned(str(policy), folder) for policy in named)
    location = table if "://" in table else str(folder / table)
    return PinnedSource(location, policies, _floor(name, entry.get("floor") or {}))


def _pinned(pin: str, folder: Path) -> tuple[str, Policy | None]:
    if _DIGEST.fullmatch(pin):
        return pin.removeprefix("sha256:"), None
    policy = load_policy(folder / pin)
    policy.refuse_several("The service")
    return policy_digest(policy), policy


def _floor(name: str, floor: object) -> Floor:
    if not isinstance(floor, Mapping):
        raise PolicyError(
            f"The floor of {name!r} is not a mapping.", hint=f"Its keys: {', '.join(_FLOOR_KEYS)}."
        )
    _require_keys(f"the floor of {name!r}", floor, _FLOOR_KEYS)
    ranges = {
        "k": (int, 1, 1 << 40),
        "threshold": (int, 2, 10_000),
        "releases_a_day": (int, 0, 1 << 40),
        "suppression": (float, 0, 1),
        "epsilon": (float, 0, 1e6),
        "epsilon_a_day": (float, 0, 1e6),
    }
    for key, (kind, least, most) in ranges.items():
        value = floor.get(key, least)
        is_number = isinstance(value, int) or (kind is float and isinstance(value, float))
        if not is_number or isinstance(value, bool) or not least <= value <= most:
            raise PolicyError(
                f"{key} in the floor of {name!r} is {value!r}.",
                hint=f"Allowed: a number from {least} to {most:g}.",
            )
    values = dict(floor)
    values["never"] = tuple(map(str, floor.get("never") or ()))
    values["roles"] = {str(k): str(v) for k, v in (floor.get("roles") or {}).items()}
    values["masks"] = {str(k): tuple(v) for k, v in (floor.get("masks") or {}).items()}
    return Floor(**values)


def _require_keys(what: str, mapping: Mapping[Any, Any], allowed: Sequence[str]) -> None:
    for key in mapping:
        if key not in allowed:
            raise PolicyError(
                f"{what[0].upper()}{what[1:]} has the key {key!r}.", hint=choices(str(key), allowed)
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
    """Return one line for each way in which a policy protects less than the allowed
    `pinned_policy`.
    """
    wrong = []
    if policy.privacy != pinned_policy.privacy:
        wrong.append(
            f"its rule is {policy.privacy}, and the pinned rule is {pinned_policy.privacy}"
        )
    for name, attribute in policy.attributes.items():
        pinned = pinned_policy.attributes.get(name)
        if pinned is None:
            wrong.append(f"the pinned policy has no {name}")
        elif pinned.role != attribute.role:
            wrong.append(f"{name} is {attribute.role}, not {pinned.role}")
        elif pinned.masks != attribute.masks:
            wrong.append(f"{name} has other masks")
    wrong += [
        f"it lacks {name}" for name in pinned_policy.attributes if name not in policy.attributes
    ]
    return wrong
