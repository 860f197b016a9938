"""Apply a configuration, verify what was written, certify it; audit any table."""

from aegis.files import check_output, replacing, write_text
from aegis.release.anonymizing import AnonymizedRelease, anonymize
from aegis.release.applying import Release, apply
from aegis.release.auditing import Audit, audit
from aegis.release.certified import CertificateCheck, Mismatch, check_certificate
from aegis.release.released import Utility
from aegis.release.risk_of_records import MaskedNumbers, Missing, RecordRisk, record_risk
from aegis.release.sql import Dialect, Form, ReleaseQuery, release_sql
from aegis.release.transformer import MaskingTransformer

__all__ = [
    "AnonymizedRelease",
    "Audit",
    "CertificateCheck",
    "Dialect",
    "Form",
    "MaskedNumbers",
    "MaskingTransformer",
    "Mismatch",
    "Missing",
    "RecordRisk",
    "Release",
    "ReleaseQuery",
    "Utility",
    "anonymize",
    "apply",
    "audit",
    "check_certificate",
    "check_output",
    "record_risk",
    "release_sql",
    "replacing",
    "write_text",
]
