"""Write the report on one release from its certificate: the released table, its utility and its
signature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from aegis._version import __version__
from aegis.errors import DataError
from aegis.policy import rule_of
from aegis.present.cautions import cautions_of, outside_stated, utility_stated
from aegis.release.reading import read_intact
from aegis.report.render import environment
from aegis.report.sections import KeyFigure, mask_words, release_facts, unique_figure
from aegis.report.words import clean, count, measured, percent, portion, share
from aegis.sources.source import DIGESTED
from aegis.words import cut, unquoted

DECLARED = "declarations"
"""What the digest of a policy covers: its declarations, and not the bytes of its file.
"""


def render_certificate(document: str | Path | Mapping[str, Any]) -> str:
    """Return the report on a release, from its certificate, as one HTML document.

    Parameters
    ----------
    document
        The file that `aegis apply --certificate` wrote, or its content (`Release.certificate`).

    Raises
    ------
    DataError
        The document cannot be read, is not a certificate, or was altered: its digest does not fit.
    """
    certificate = read_intact(document)
    try:
        context = _context(certificate)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        named = "The document" if isinstance(document, Mapping) else document
        raise DataError(
            f"{named} is not a certificate: a field is missing, or its value is of the wrong type.",
            hint="Give what `aegis apply --certificate` wrote. `aegis audit --certificate` lists the "
            "fields that differ from the release.",
        ) from error
    return environment().get_template("certificate.html.j2").render(context)


def _context(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the page on a release shows."""
    policy, audit = certificate["policy"], certificate["privacy"]
    rule = replace(rule_of(policy.get("privacy")), person=audit.get("person"))
    return {
        "title": "Release",
        "made": _release_sentence(certificate),
        "release": release_facts(policy),
        "passed": audit.get("passed"),
        "rule": str(rule).replace(" = ", "\u00a0=\u00a0") if rule.criteria else "",
        "figures": list(_figures(certificate)),
        "masks": list(_columns(certificate)),
        "dropped": [_name(name) for name in certificate.get("dropped_columns") or ()],
        "privacy": list(_privacy(audit)),
        "notes": [unquoted(text) for text in cautions_of(certificate)],
        "digests": list(_digests(certificate)),
        "version": clean(certificate.get("aegis", __version__), limit=40),
    }


def _release_sentence(certificate: Mapping[str, Any]) -> str:
    """Return a sentence on the released file, its table, and the persons of the rule."""
    file, origin = certificate["output"].get("file"), certificate["input"].get("origin")
    release = clean(file, limit=120) if file else "A release"
    if origin:
        release += f", made from {clean(PurePath(str(origin)).name, limit=120)}"
    column, persons = certificate["privacy"].get("person"), certificate.get("persons")
    if column is not None:
        release += f"; persons: {_name(column)}"
        release += f" ({count(persons)})" if isinstance(persons, int) else ""
    return release


def _columns(certificate: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield each released column with its role and its mask in words, the labels last."""
    policy, masks = certificate["policy"], (certificate.get("configuration") or {}).get("masks", {})
    declared, label_entries = policy.get("attributes"), policy.get("labels")
    each = label_entries if isinstance(label_entries, list) else [policy.get("label")]
    named = [label.get("column") if isinstance(label, Mapping) else label for label in each]
    labels = [name for name in named if isinstance(name, str) and masks]
    for name, mask in (masks | {n: masks.get(n, "identity") for n in labels}).items():
        attribute = declared.get(name) if isinstance(declared, Mapping) else None
        role = attribute.get("role") if isinstance(attribute, Mapping) else None
        words = [word for word in ("label" if name in labels else None, role) if word]
        yield {
            "name": _name(name),
            "role": clean(", ".join(map(str, words)), limit=60),
            "words": mask_words(_text(mask)),
        }


def _text(mask: Any) -> str:
    """Return a mask of a certificate (a name, or its parameters by name) as text."""
    if isinstance(mask, Mapping) and len(mask) == 1:
        ((name, parameters),) = mask.items()
        if not isinstance(parameters, Mapping):
            return f"{name}({parameters})"
        return f"{name}({', '.join(f'{key}={value}' for key, value in parameters.items())})"
    return str(mask)


def _figures(certificate: Mapping[str, Any]) -> Iterator[KeyFigure]:
    rows, released = certificate["input"].get("rows"), certificate["output"].get("rows")
    if rows is not None and released is not None:
        left_out = rows - released
        note = f"{count(left_out)} of {count(rows)} suppressed ({share(left_out, rows)})"
        yield "Rows released", count(released), note
    audit, persons = certificate["privacy"], certificate.get("persons")
    suppressed = certificate.get("suppressed_persons")
    if persons and suppressed is not None:  # the limit of the rule counts persons
        note = f"of {count(persons)}, because a row of theirs is suppressed"
        yield "Persons suppressed", f"{count(suppressed)} ({share(suppressed, persons)})", note
    note = (
        f"{'rows' if audit.get('person') is None else 'persons'} that look the same in every "
        "quasi-identifier, measured on the written file"
    )
    yield "Smallest class", count(audit.get("k")), note
    alone = unique_figure(outside_stated(certificate))
    if alone is not None:
        yield alone
    utility = certificate.get("utility")
    if utility:
        yield from _utility(utility, certificate)


def _utility(utility: Mapping[str, Any], certificate: Mapping[str, Any]) -> Iterator[KeyFigure]:
    """Yield the utility of a certificate and that of each of several labels as key figures; older
    certificates state only the measure's value.
    """
    if "reference_name" not in utility:
        value = measured(utility.get("value", utility.get("released")))
        share = utility.get("kept")
        note = f"by {utility['measure']}"
        yield "Utility kept", value if share is None else percent(share), note
        return
    for name, figure in utility_stated(utility, certificate).by_label.items():
        share = figure.utility_kept
        value = measured(figure.value) if share is None else percent(share)
        yield f"Utility kept, {_name(name)}" if name else "Utility kept", value, figure.basis


def _name(column: object) -> str:
    """Return the name of a column; of a long one, the beginning and the end."""
    return clean(cut(str(column), 120))


def _privacy(audit: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the most important privacy figures of the audit in a certificate."""
    yield {"name": "Equivalence classes", "value": count(audit.get("classes"))}
    unit = "Rows" if audit.get("person") is None else "Persons"
    yield {"name": f"{unit} unique by quasi-identifiers", "value": count(audit.get("uniques"))}
    risk = audit.get("risk") or {}
    for name in ("prosecutor", "marketer"):
        for kind, value in (risk.get(name) or {}).items():
            if value is not None:
                yield {"name": f"Risk, {name}, {kind}", "value": portion(value)}
    for column, figures in (audit.get("l_diversity") or {}).items():
        label = f"Fewest values of {clean(cut(str(column), 60))} in a class"
        yield {"name": label, "value": count(figures.get("distinct"))}


def _digests(certificate: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for key, title in (("output", "Release"), ("policy", "Policy")):
        digest, of = certificate[key].get("sha256"), certificate[key].get("sha256_of")
        of = DECLARED if key == "policy" else None if of == DIGESTED[0] else of
        if digest:
            name = f"{title}, SHA-256{f' of its {clean(of, limit=40)}' if of else ''}"
            yield {"name": name, "value": clean(digest, limit=80)}
    for earlier in certificate.get("after") or ():
        digest = earlier.get("certificate") if isinstance(earlier, Mapping) else None
        yield {
            "name": "Made after the release with the certificate, SHA-256",
            "value": clean(digest or "not known: its masks were given", limit=80),
        }
    if certificate.get("created"):
        yield {"name": "Certified", "value": clean(certificate["created"], limit=40)}
