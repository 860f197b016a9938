"""Display a study: one line of text, and in a notebook also a table of attributes."""

from __future__ import annotations

import html

from aegis.study.subject import Subject
from aegis.summary import Summary
from aegis.words import counted


def describe_subject(subject: Subject) -> str:
    """Return one line that describes the study: its table, rows, label and rule."""
    of = "a summary" if subject.source is None else str(subject.source.origin)
    summary = subject.summarised
    read = "not read yet" if summary is None else counted(summary.rows, "row")
    policy = subject.policy
    label = f"label {policy.label.column!r}" if policy.label else "no label"
    return f"Study({of}, {read}, {label}, {policy.privacy})"


def subject_html(subject: Subject) -> str:
    """Return the description as HTML. If the table is already summarised, it has a table of the
    attributes.
    """
    summary = subject.summarised
    line = f"<p>{html.escape(describe_subject(subject))}</p>"
    return line + ("" if summary is None else _attributes_html(summary))


def _attributes_html(summary: Summary) -> str:
    """Return an HTML table of a summary's attributes."""
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(text)}</td>"
            for text in (
                a.name,
                str(a.role),
                f"{len(a.all_values):,}",
                ", ".join(str(c.declared) for c in a.candidates),
            )
        )
        + "</tr>"
        for a in summary.all_attributes
    )
    head = "".join(f"<th>{h}</th>" for h in ("attribute", "role", "values", "candidate masks"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
