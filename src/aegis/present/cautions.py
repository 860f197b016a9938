"""List what people should read before they rely on a release, in the same order for the terminal
and all pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from aegis.advisor.label_leaks import leak_sentences
from aegis.advisor.utility import UtilityFigure
from aegis.errors import DataError
from aegis.policy import Policy, rule_of
from aegis.policy.load import policy_mapping
from aegis.privacy.report import FORMER_NOTES, UNPROTECTED, same_values, shared_values
from aegis.release.released import Released, seed_note
from aegis.release.writing import not_released
from aegis.summary.outside import Outside
from aegis.words import jsonable


def cautions_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the warnings in a certificate that people should read before they rely on the release:
    first why the rule protects less than its name says, then risks to persons, limits of the use,
    and notes on how the figures were measured.

    Raises
    ------
    DataError
        The certificate states a utility that cannot be read.
    """
    return tuple(dict.fromkeys((*_of_rule(document), *_of_persons(document), *_of_use(document))))


def release_document(release: Released, policy: Policy) -> Mapping[str, Any]:
    """Return the certificate of a release, with the label classes that only its owner may see;
    without one, the facts that it would state, except for the digests of files.
    """
    if release.certificate is not None:
        return {**release.certificate, "utility": jsonable(release.utility)}
    facts = {key: value for key, value in release.to_dict().items() if value is not None}
    return facts | {"policy": policy_mapping(policy)}


def outside_stated(document: Mapping[str, Any]) -> Outside | None:
    """Return the risks that the rule does not cover, as a certificate states them, if any."""
    outside = document["privacy"].get("outside")
    if not isinstance(outside, Mapping):
        return None
    persons = document["privacy"].get("person") is not None
    return Outside.from_dict(outside, _label_column(document), persons=persons)


def figure_stated(document: Mapping[str, Any]) -> UtilityFigure | None:
    """Return the utility that a certificate states; None if it states none, or only a score, as
    older ones do.
    """
    utility = document.get("utility")
    if isinstance(utility, Mapping) and "reference_name" not in utility:
        return None
    return utility_stated(utility, document) if utility else None


def utility_stated(utility: Mapping[str, Any], document: Mapping[str, Any]) -> UtilityFigure:
    """Return the utility of a release from the values in its certificate.

    Raises
    ------
    DataError
        A value is missing or has another type.
    """
    table = document.get("input")
    rows = table.get("rows") if isinstance(table, Mapping) else None
    try:
        return UtilityFigure.from_dict(utility, rows if isinstance(rows, int) else None)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            "The certificate states a utility that cannot be read.",
            hint="Give what `aegis apply --certificate` wrote.",
        ) from error


def nothing_to_predict(column: str) -> str:
    """Return a warning that the released label has fewer than two classes."""
    return (
        f"the label {column} shows fewer than two classes in the released rows: there "
        "is nothing to predict, and the certificate states no utility"
    )


def _label_column(document: Mapping[str, Any]) -> Any:
    """Return the label's column that the policy in a certificate states."""
    label = document["policy"].get("label")
    return label.get("column") if isinstance(label, Mapping) else label


def _of_rule(document: Mapping[str, Any]) -> Iterator[str]:
    privacy, override = document["privacy"], document.get("rule_override")
    if privacy.get("rule") and not privacy.get("quasi_identifiers"):
        yield UNPROTECTED
    if isinstance(override, Mapping):
        yield str(override.get("sentence"))


def _of_persons(document: Mapping[str, Any]) -> Iterator[str]:
    privacy, outside = document["privacy"], outside_stated(document)
    unit = "rows" if privacy.get("person") is None else "persons"
    yield from same_values(privacy.get("homogeneous_rows") or {}, unit)
    alphas, distances = (
        {name: figures.get(field) for name, figures in (privacy.get(model) or {}).items()}
        for model, field in (("alpha_k", "alpha"), ("t_closeness", "equal"))
    )
    yield from shared_values(alphas, distances, unit)
    if privacy.get("rule") and document.get("configuration"):
        rule = replace(rule_of(privacy["rule"]), person=privacy.get("person"))
        yield from rule.missing_classes(int(document.get("suppressed_rows") or 0))
    if outside is not None:
        yield from outside.sentences
    if seeded := document.get("seeded_noise"):
        yield seed_note(seeded)
    account = privacy.get("differential_privacy")
    if isinstance(account, Mapping):
        yield from account.get("notes") or ()


def _of_use(document: Mapping[str, Any]) -> Iterator[str]:
    figure, label = figure_stated(document), _label_column(document)
    if figure is not None:
        for name, label_figure in {str(label): figure, **figure.labels}.items():
            yield from leak_sentences(label_figure.leaks, name)
            yield from label_figure.chance(name)
        yield from figure.caveats(int(document.get("suppressed_rows") or 0))
    weight = document["policy"].get("weight")
    if weight is not None and weight in (document.get("dropped_columns") or ()):
        yield not_released(weight)
    if label and "utility" in document and document["utility"] is None:
        yield nothing_to_predict(str(label))
    for note in document["privacy"].get("notes") or ():
        yield FORMER_NOTES.get(note, note)
