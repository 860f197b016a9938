"""Apply a configuration, verify what was written, certify it; audit any table."""

from aegis.release.apply import Release, Utility, apply
from aegis.release.audit import Audit, audit
from aegis.release.write import check_output, replacing, write_text

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
