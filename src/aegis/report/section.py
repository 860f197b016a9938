"""Define sections that installed packages add to the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from aegis.errors import PolicyError
from aegis.registry import Extensions
from aegis.words import brief

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.summary import Summary

SECTIONS = Extensions("report section")
"""The functions that packages add. Each accepts a summary and the advice on it, and returns a
section or None.
"""


@dataclass(frozen=True)
class ReportSection:
    """A section that a package adds after the standard sections of the report.

    Attributes
    ----------
    anchor
        The `id` of the section's first element, to which the table of contents links.
    title
        The section's title in the table of contents.
    html
        The section as HTML, in which the package has escaped every value of the table.
    """

    anchor: str
    title: str
    html: str


@runtime_checkable
class Reported(Protocol):
    """An object on which a report can be made: it has an advice and further sections of the report."""

    @property
    def advice(self) -> Advice:
        """The advice that the report describes."""

    def report_sections(self) -> Sequence[ReportSection]:
        """Return the sections that follow the sections on the advice."""


def advice_of(subject: Advice | Reported) -> Advice:
    """Return the advice that a report describes: `subject`, or the advice of the object `subject`.

    Raises
    ------
    PolicyError
        The object is not an advice and does not have one.
    """
    from aegis.advisor import Advice

    if isinstance(subject, Advice):
        return subject
    if not isinstance(subject, Reported):
        raise PolicyError(
            f"{brief(subject)} is no advice, but of type {type(subject).__name__}.",
            hint="Give what advise, rank, search or evaluate returned. `aegis report CERTIFICATE` "
            "makes the page of a release.",
        )
    return subject.advice


def added_sections(summary: Summary, advice: Advice) -> tuple[ReportSection, ...]:
    """Return the sections that packages add; if one cannot be loaded, a sentence names its package."""
    sections = []
    for name in SECTIONS.names():
        try:
            section = SECTIONS.load(name)(summary, advice)
        except PolicyError as error:
            section = _missing(name, error)
        if section is not None:
            sections.append(section)
    return tuple(sections)


def _missing(name: str, error: PolicyError) -> ReportSection:
    anchor, title = escape(name, quote=True), escape(name)
    return ReportSection(
        anchor,
        title,
        f'<section id="{anchor}"><h2>{title}</h2><p>{escape(str(error))}</p></section>',
    )
