"""Check that an agent's upload matches the request, in addition to its signature.

A signature shows who made a file. It does not show that the file is the approved release, or that
an answer is about the requested configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aegis.errors import AegisError
from aegis.files import SILENT, Progress, temporary_folder
from aegis.masks import Mask
from aegis.masks.base import Kind
from aegis.policy import Policy, Role, policy_digest
from aegis.release import audit
from aegis.release.certified import check_certificate
from aegis.release.writing import unfitting
from aegis.safe.protect import ProtectedSummary
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.flow import configuration_of, policy_of
from aegis.sources import open_table

_MOST_TEXT = 4 << 20


@dataclass(frozen=True)
class MaskedFile:
    """A masked file (its content and extension), with what it must match.

    Attributes
    ----------
    certificate
        The uploaded certificate, as JSON.
    policy, configuration
        The approved policy and configuration, as YAML.
    kinds
        Kinds of the columns of the unmasked table, by name.
    rows
        Number of rows of the table, and number of rows to suppress, as the agent stated them; None
        if unknown.
    """

    content: bytes
    suffix: str
    certificate: str
    policy: str
    configuration: str
    kinds: Mapping[str, str]
    rows: tuple[int, int] | None


def verify_file(masked: MaskedFile, *, progress: Progress = SILENT) -> list[str]:
    """Return one line for each difference between a masked file and the approved release. Raise
    `CatalogError` if the file cannot be read.

    Columns, types and values must fit the configuration, the number of rows must be that of the
    table minus the suppressed rows, the file must meet the policy's rule over all
    quasi-identifiers, and every figure of the certificate must be correct.
    """
    policy = policy_of(masked.policy)
    configuration = configuration_of(masked.configuration, policy)
    kinds = {name: Kind(kind) for name, kind in masked.kinds.items()}
    step = progress.step("Comparing the file with the approved release")
    with step, temporary_folder("check") as folder:
        path = folder / f"masked{masked.suffix}"
        path.write_bytes(masked.content)
        try:
            # First, because a file of a few MB can hold a billion rows.
            wrong = _rows_unlike(open_table(path).rows, masked, policy)
            wrong = wrong or unfitting(path, policy, configuration, kinds)
            if wrong:
                return wrong
            wrong += audit(path, policy=policy, configuration=configuration).violations
            checked = check_certificate(path, json.loads(masked.certificate), policy=policy)
        except (AegisError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = getattr(error, "message", type(error).__name__)
            raise CatalogError(
                f"The masked file or its certificate cannot be read: {reason}",
                hint="Run the job again (aegis catalog retry).",
            ) from error
    return wrong + list(dict.fromkeys(each.in_words for each in checked.mismatches))


def _rows_unlike(rows: int, masked: MaskedFile, policy: Policy) -> list[str]:
    if masked.rows is None:
        return []
    table, suppressed = masked.rows
    if rows == table - suppressed:
        return []
    least = table - int(policy.privacy.suppression * table)
    return [
        f"it has {rows:,} rows, and the check of this configuration left {table - suppressed:,} of "
        f"{table:,} (the rule keeps {least:,} at least)"
    ]


def require_summary(
    summary: ProtectedSummary, policy: Policy, task: Mapping[str, Any], policy_text: str
) -> None:
    """Raise `CatalogError` if an uploaded protected summary has another policy, label, schema or
    protection than the `task` of the job requested; the message names which. `policy_text` is the
    uploaded policy, as YAML.
    """
    protection = summary.protection
    wrong = []
    if policy_text != task["policy"]:
        wrong.append("it came with another policy")
    if summary.policy and summary.policy != policy_digest(policy):
        wrong.append("it was made under another policy")
    if summary.label != policy.label.column:
        wrong.append(f"its label is {summary.label}, not {policy.label.column}")
    if str(protection.level) != task["protect"]:
        wrong.append(f"its protection is {protection.level}, not {task['protect']}")
    elif task["protect"] == "noise":
        if not _at_most(protection.epsilon, task["epsilon"]):
            wrong.append(f"it spent epsilon {protection.epsilon}, not {task['epsilon']:g}")
        if not _at_most(protection.delta, task["delta"]):
            wrong.append(f"its delta is {protection.delta}, not {task['delta']:g}")
    elif protection.threshold != task["threshold"]:
        wrong.append(f"its threshold is {protection.threshold}, not {task['threshold']}")
    wrong += _other_schema(summary, policy)
    if wrong:
        raise CatalogError(
            f"The summary does not match what the service asked for: {'; '.join(wrong)}.",
            hint="The service did not store it. Ask for the summary again.",
        )


def _other_schema(summary: ProtectedSummary, policy: Policy) -> list[str]:
    wrong = []
    for name, attribute in summary.attributes.items():
        declared = policy.attributes.get(name)
        if declared is None or declared.role is Role.IDENTIFIER:
            wrong.append(f"the policy scores no {name}")
        elif declared.role is not attribute.role:
            wrong.append(f"{name} is {attribute.role}, not {declared.role}")
        elif set(declared.masks) != {candidate.declared for candidate in attribute.candidates}:
            wrong.append(f"{name} has other masks")
    lacking = [a.name for a in policy.features if a.name not in summary.attributes]
    return [*wrong, *(f"it lacks {name}" for name in lacking)]


def _at_most(measured: float | None, allowed: float) -> bool:
    return measured is not None and 0 < measured <= allowed * (1 + 1e-6)


_Texts = list[Annotated[str, Field(max_length=1999)]]
_Keys = Annotated[list[Annotated[str, Field(pattern="^[0-9a-f]{64}$")]], Field(max_length=1000)]
_MOST_COUNTED = 2**63 - 1
_Count = Annotated[int, Field(ge=0, le=_MOST_COUNTED)]


class Answer(BaseModel):
    """The fields of an agent's answer about a configuration, as `checking.check` makes it."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    configuration: str = Field(max_length=_MOST_TEXT - 1)
    holds: bool
    masks: dict[str, str]
    place: int = Field(ge=1, le=_MOST_COUNTED)
    searched: bool
    measure: str = ""
    utility_kept: float | None = None
    smallest_class: _Count | None = None
    suppressed_rows: _Count | None = None
    rows: int = Field(default=1, ge=1, le=_MOST_COUNTED)
    violations: _Texts = []
    proven: bool = False
    joint_smallest_class: _Count | None = None
    joint_rows_below: _Count | None = None
    joint_attributes: _Texts = []
    signers: _Keys = []


_OF_HELD = ("rows", "suppressed_rows", "smallest_class")
"""Fields of an answer about a configuration that meets the rule."""
_JOINT = ("joint_smallest_class", "joint_rows_below", "joint_attributes")
"""Fields of an answer about a configuration together with earlier releases."""


def require_answer(answer: Mapping[str, Any], policy: Policy, task: Mapping[str, Any]) -> None:
    """Raise `CatalogError` unless an agent's answer is well formed and about a configuration that
    the `task` of the job allows; the message names the problem.
    """
    wrong = _malformed(answer)
    if not wrong and answer["holds"]:
        wrong = [f"it lacks {key}" for key in _OF_HELD if not isinstance(answer.get(key), int)]
        if not wrong and answer["suppressed_rows"] > answer["rows"]:
            wrong = ["it suppresses more rows than there are"]
    if not wrong and any(key in answer for key in _JOINT):
        wrong = [f"it lacks {key}" for key in _JOINT if answer.get(key) is None]
    if not wrong:
        wrong = _other_configuration(answer, policy, task)
    if wrong:
        raise CatalogError(
            f"The agent sent another result than the service asked for: {'; '.join(wrong)}.",
            hint="Use an agent of this version.",
        )


def _malformed(answer: Mapping[str, Any]) -> list[str]:
    """Return one line for each field of an answer that is missing, unknown or wrong."""
    try:
        Answer.model_validate(answer)
    except ValidationError as error:
        fields = ((each["type"], str(each["loc"][0])) for each in error.errors())
        return list(dict.fromkeys(_field_wrong(kind, key, answer) for kind, key in fields))
    return []


def _field_wrong(kind: str, key: str, answer: Mapping[str, Any]) -> str:
    if kind == "missing":
        return f"it lacks {key}"
    if kind == "extra_forbidden":
        return f"it has {key[:40]!r}"
    return f"{key} is {str(answer[key])[:40]!r}"


def _other_configuration(
    answer: Mapping[str, Any], policy: Policy, task: Mapping[str, Any]
) -> list[str]:
    """Return one line for each mask of an answer that the policy or the task does not allow."""
    answered = configuration_of(answer["configuration"], policy).masks
    if answer["searched"]:
        if not task["may_search"]:
            return ["nothing was to be searched"]
        choices: Mapping[str, Sequence[Mask]] = {
            a.name: a.masks for a in policy.attributes.values() if a.masks
        }
    else:
        listed = task["configurations"]
        if answer["place"] > len(listed):
            return [f"its place is {answer['place']} of {len(listed)}"]
        configuration = configuration_of(listed[answer["place"] - 1], policy)
        choices = {name: (mask,) for name, mask in configuration.masks.items()}
    wrong = []
    for name, masks in choices.items():
        declared = [mask for mask in masks if str(mask) == answer["masks"].get(name)]
        if not any(_fits(answered.get(name), mask) for mask in declared):
            wrong.append(f"{answered.get(name)} of {name} was not asked about")
    return wrong + [f"nothing was asked of {name}" for name in answered.keys() - choices.keys()]


def _fits(mask: Mask | None, declared: Mask) -> bool:
    """Return whether a mask equals the declared mask, or is the declared mask after fitting."""
    return mask == declared or (type(mask) is type(declared) and not declared.fitted)
