"""Apply a configuration, verify what was written, certify it; audit any table."""

from aegis.files import check_output, replacing, write_text
from aegis.release.applying import Release, Utility, apply
from aegis.release.auditing import Audit, audit
from aegis.release.sql import Dialect, Form, ReleaseQuery, release_sql
from aegis.release.transformer import MaskingTransformer

__all__ = [
    "Audit",
    "Dialect",
    "Form",
    "MaskingTransformer",
    "Release",
    "ReleaseQuery",
    "Utility",
    "apply",
    "audit",
    "check_output",
    "release_sql",
    "replacing",
    "write_text",
]
