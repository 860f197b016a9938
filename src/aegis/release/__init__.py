"""Apply a configuration, verify and certify the written release, and audit any table."""

from aegis.release.anonymizing import AnonymizedRelease, anonymize
from aegis.release.applying import Release, apply
from aegis.release.auditing import Audit, audit
from aegis.release.certified import CertificateCheck, check_certificate
from aegis.release.risk_of_records import MaskedNumbers, RecordRisk, record_risk
from aegis.release.sql.query import release_sql
from aegis.release.transformer import MaskingTransformer
from aegis.requests import Dialect, Form

__all__ = [
    "AnonymizedRelease",
    "Audit",
    "CertificateCheck",
    "Dialect",
    "Form",
    "MaskedNumbers",
    "MaskingTransformer",
    "RecordRisk",
    "Release",
    "anonymize",
    "apply",
    "audit",
    "check_certificate",
    "record_risk",
    "release_sql",
]
