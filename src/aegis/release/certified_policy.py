"""Read policy and masks from a certificate, without the hierarchy files to which it refers, and
compare a certificate with the original table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from aegis.advisor.scores import coarse, rows_each
from aegis.advisor.utility import ColumnFigure, UtilityFigure, stated_roles
from aegis.masking import masked_population
from aegis.masks import Mask
from aegis.policy import Policy
from aegis.release.possible import Mismatch, alike, differing, is_number, lost_like, names_in
from aegis.release.released import texts_of, utility_of
from aegis.signing import PrivateKey, keyed_digest
from aegis.sources import DIGESTED, Reading, Source, open_table
from aegis.words import jsonable

_NO_DIGEST = "the certificate states none, so another table with the same figures passes, too"
_KEYED = "give the private key that signed the certificate (--signing-key)"


def as_certified(source: Source, document: Mapping[str, Any]) -> Source:
    """Return the table; if codes look like numbers, read them as the texts that are certified."""
    certified_texts = names_in(document["output"].get("text")) or []
    texts = [name for name in certified_texts if name in {*source.columns} - {*texts_of(source)}]
    if source.dialect is None or not source.files or not texts:
        return source
    reading = source.reading or Reading()
    numbers = tuple(name for name in reading.numbers if name not in texts)
    return open_table(
        source.origin, reading=replace(reading, text=(*reading.text, *texts), numbers=numbers)
    )


def names_hierarchies(policy: Mapping[str, Any]) -> bool:
    """Return whether the policy in a certificate refers to hierarchy files."""
    attributes = policy.get("attributes")
    if not isinstance(attributes, Mapping):
        return False
    return any(isinstance(entry, Mapping) and "hierarchy" in entry for entry in attributes.values())


def without_files(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the certificate's policy without hierarchies, and without masks that use them."""
    attributes = {
        name: {key: value for key, value in entry.items() if key in ("role", "weight", "kind")}
        for name, entry in policy["attributes"].items()
    }
    kept_keys = ("version", "label", "labels", "serve", "labels_known", "person", "weight")
    same_keys = {k: v for k, v in policy.items() if k in kept_keys}
    return same_keys | {"attributes": attributes}


def certified_population(
    policy: Policy | None, original: Source | None, masks: Mapping[str, Mask | None]
) -> Source | None:
    """Return the masked population with which certified classes are compared; None if no policy is
    given, or if the population follows from an original table that is not given.
    """
    if policy is None:
        return None
    needed = {policy.weight, *(a.name for a in policy.quasi_identifiers)}
    has_columns = original is not None and needed <= set(original.columns)
    return masked_population(policy, original if has_columns else None, masks)


def mask_parameters(spec: Any, path: str = "") -> set[tuple[str, str]]:
    """Return each parameter of a mask as a path, which begins with `path`, and a value as JSON."""
    if isinstance(spec, Mapping):
        return {
            leaf for k, value in spec.items() for leaf in mask_parameters(value, f"{path}.{k}")
        } or {(path, "")}
    return {(path, json.dumps(spec, default=str))} if path else {(f".{spec}", "")}


def incomparable(certified: Mapping[str, Any], source: Source) -> str:
    """Return why the digests of an entry (`input`, `output`) and a table cannot be compared, or ""."""
    files, ordered, unordered = DIGESTED
    kind = str(certified.get("sha256_of", files))
    if kind == source.digest_of and (kind != ordered or source.engine.in_process):
        return ""
    if source.digest_of == ordered:
        return "rows that are in no file have no digest"
    return f"it is a digest of {kind}" + ", see --engine spark" * (kind == unordered)


def digest_of_original(
    document: Mapping[str, Any], original: Source, key: PrivateKey | None
) -> Mismatch | str:
    """Return the stated and measured digest of the original, or why they cannot be compared.

    A certificate that is signed with `key` states a digest that needs this key, and an unsigned one
    states none. Earlier versions wrote the digest without a key.
    """
    certified = document["input"]
    name = "hmac_sha256" if "hmac_sha256" in certified else "sha256"
    if name not in certified:
        return f"input.digest: {_NO_DIGEST}"
    if reason := incomparable(certified, original):
        return f"input.{name}: {reason}"
    measured = original.digest()
    if name == "hmac_sha256":
        if key is None:
            return f"input.{name}: {_KEYED}"
        measured = keyed_digest(measured, str(document["output"].get("sha256")), key)
    return Mismatch(f"input.{name}", certified[name], measured)


def original_differs(
    document: Mapping[str, Any], original: Source, output: Source, policy: Policy | None
) -> Iterator[Mismatch]:
    """Yield each field for which the certificate and the original table have different values."""
    certified = document["input"]
    measured_input: dict[str, Any] = {"rows": original.rows}
    if original.dialect is not None:
        measured_input["dialect"] = jsonable(original.dialect)
    for key in ("rows", "dialect"):
        pair = certified.get(key), measured_input.get(key)
        for what, entry, measured in differing(*pair, f"input.{key}"):
            yield Mismatch(what, entry, measured)
    utility = document.get("utility")
    if policy is None or not isinstance(utility, Mapping) or "value" not in utility:
        return
    if policy.weight or policy.person:
        return  # the released file shows neither the weights nor the persons of its rows
    labels = utility.get("labels")
    policy = _measured_as(labels, policy) if isinstance(labels, Mapping) else policy
    first: list[Mismatch] = []
    for earlier in (False, True):
        figure = utility_of(
            original, output, policy, measure=str(utility.get("measure")), earlier=earlier
        )
        differing_now = list(_utilities_differ(utility, figure, original.rows))
        if not differing_now:
            return
        first = first or differing_now
    yield from first


def _utilities_differ(
    utility: Mapping[str, Any], figure: UtilityFigure | None, rows: int
) -> Iterator[Mismatch]:
    """Yield each field of the certified utility that differs from the measured one."""
    labels = utility.get("labels")
    measured = {} if figure is None else figure.to_dict()
    for name, measured_label in measured.get("labels", {}).items():
        certified_label = labels.get(name) if isinstance(labels, Mapping) else None
        if isinstance(certified_label, Mapping):  # where it is missing, `check_certificate` says so
            yield from _utility_differs(
                f"utility.labels.{name}", certified_label, measured_label, rows
            )
    yield from _utility_differs("utility", utility, measured, rows)


def _measured_as(labels: Mapping[str, Any], policy: Policy) -> Policy:
    """Return the policy with the measures that the certificate states for several labels."""
    if policy.label.several is None:
        return policy
    tasks = []
    for task in policy.tasks:
        certified = labels.get(task.label.column)
        measure = certified.get("measure") if isinstance(certified, Mapping) else None
        tasks.append(replace(task, measure=task.measure if measure is None else str(measure)))
    several = replace(policy.label.several, tasks=tuple(tasks))
    return replace(policy, label=replace(policy.label, several=several), measure=None)


def _utility_differs(
    what: str, certified: Mapping[str, Any], measured_fields: Mapping[str, Any], rows: int
) -> Iterator[Mismatch]:
    """Yield each such field; the first versions of Aegis stated all digits of scores."""
    exact = certified.get("reference") != measured_fields.get("reference")
    each = rows_each(rows, 1, earlier=True)
    for key, measured in measured_fields.items():
        if key in ("reference", "kept", "stderr", "lost_classes", "reference_rmse", "columns"):
            entry = certified.get(key)
            if key == "lost_classes":
                measured = lost_like(entry, measured)
            if alike(entry, measured):
                continue
            if key in ("reference", "reference_rmse") and is_number(entry):
                entry = coarse(float(entry), each, in_units=key == "reference_rmse")
            elif key == "columns" and isinstance(entry, Mapping) and stated_roles(entry):
                entry = {
                    name: ColumnFigure.from_dict(figure).rounded(each).to_dict()
                    for name, figure in entry.items()
                }
            elif key == "kept" and exact:
                continue  # `check_certificate` computes it from the stated reference
            if not alike(entry, measured):
                yield Mismatch(f"{what}.{key}", certified.get(key), measured)
