"""Apply a configuration, verify what was written, certify it; audit any table."""

from aegis.files import check_output, replacing, write_text
from aegis.release.anonymizing import AnonymizedRelease, anonymize
from aegis.release.applying import Release, apply
from aegis.release.auditing import Audit, audit
from aegis.release.released import Utility
from aegis.release.sql import Dialect, Form, ReleaseQuery, release_sql
from aegis.release.transformer import MaskingTransformer

__all__ = [
    "AnonymizedRelease",
    "Audit",
    "Dialect",
    "Form",
    "MaskingTransformer",
    "Release",
    "ReleaseQuery",
    "Utility",
    "anonymize",
    "apply",
    "audit",
    "check_output",
    "release_sql",
    "replacing",
    "write_text",
]
