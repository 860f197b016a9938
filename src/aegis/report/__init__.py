"""One offline HTML file for an advice: what to release, how much it keeps, and why it may be
released.
"""

from __future__ import annotations

from aegis.report.anonymized import render_anonymized
from aegis.report.certificate import render_certificate
from aegis.report.page import write_page
from aegis.report.render import render, render_report
from aegis.report.section import Reported, ReportSection, added_sections

__all__ = [
    "ReportSection",
    "Reported",
    "added_sections",
    "render",
    "render_anonymized",
    "render_certificate",
    "render_report",
    "write_page",
]
