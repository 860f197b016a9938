"""Apply a configuration, verify what was written, certify it; audit any table."""

from aegis.files import check_output, replacing, write_text
from aegis.release.apply import Release, Utility, apply
from aegis.release.audit import Audit, audit

__all__ = [
    "Audit",
    "Release",
    "Utility",
    "apply",
    "audit",
    "check_output",
    "replacing",
    "write_text",
]
