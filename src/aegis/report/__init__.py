"""Write the report on an advice as one offline HTML file: the recommended release, its utility and
its privacy.
"""

from __future__ import annotations

from aegis.report.anonymized import render_anonymized
from aegis.report.certificate import render_certificate
from aegis.report.page import write_page
from aegis.report.render import render_report
from aegis.report.section import Reported, ReportSection, added_sections

__all__ = [
    "ReportSection",
    "Reported",
    "added_sections",
    "render_anonymized",
    "render_certificate",
    "render_report",
    "write_page",
]
