"""Sections that wings and packages add to the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Protocol

from aegis.errors import PolicyError
from aegis.registry import Extensions

if TYPE_CHECKING:
    from aegis.advisor.advice import Advice
    from aegis.summary import Summary

SECTIONS = Extensions("report section")
"""What is added: functions of a summary and the advice on it that return a section, or None."""


@dataclass(frozen=True)
class ReportSection:
    """A section that a package adds below the report's own sections.

    Attributes
    ----------
    anchor
        Where the contents lead: the `id` of its first element.
    title
        What the contents call it.
    html
        The section as it is in the page. Its maker has escaped every value of the table.
    """

    anchor: str
    title: str
    html: str


class Reported(Protocol):
    """The subject of a report: an advice, with additional sections."""

    @property
    def advice(self) -> Advice:
        """The advice that the report shows."""

    def report_sections(self) -> Sequence[ReportSection]:
        """Return the sections below those on the advice."""


def added_sections(summary: Summary, advice: Advice) -> tuple[ReportSection, ...]:
    """Return the sections that all packages add to the report on an advice.

    One that cannot be loaded leaves a sentence that names its package.
    """
    made = []
    for name in SECTIONS.names():
        try:
            section = SECTIONS.load(name)(summary, advice)
        except PolicyError as error:
            section = _missing(name, error)
        if section is not None:
            made.append(section)
    return tuple(made)


def _missing(name: str, error: PolicyError) -> ReportSection:
    anchor, title = escape(name, quote=True), escape(name)
    return ReportSection(
        anchor,
        title,
        f'<section id="{anchor}"><h2>{title}</h2><p>{escape(str(error))}</p></section>',
    )
