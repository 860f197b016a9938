"""Aegis: a masking advisor.

`Study` holds a table and a policy, and answers every question about them. The main commands are
also functions here: `init_policy`, `summarize`, `advise`, `search`, `apply`, `anonymize`, `audit`.
Names are loaded when they are first used, so `import aegis` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aegis._version import __version__

_HOMES = {
    "Advice": "aegis.advisor",
    "AnonymizedRelease": "aegis.release",
    "Audit": "aegis.release",
    "Configuration": "aegis.policy",
    "MaskingTransformer": "aegis.release",
    "Policy": "aegis.policy",
    "PrivacyReport": "aegis.privacy",
    "ProposedPolicy": "aegis.policy.suggest",
    "RecordRisk": "aegis.release",
    "Release": "aegis.release",
    "Study": "aegis.study",
    "Summary": "aegis.summary",
    "advise": "aegis.study",
    "Evaluation": "aegis.papers.evaluation",
    "anonymize": "aegis.release",
    "connect": "aegis.service.client",
    "apply": "aegis.release",
    "audit": "aegis.release",
    "check_certificate": "aegis.release",
    "dump_configurations": "aegis.policy",
    "dump_policy": "aegis.policy",
    "evaluate": "aegis.study",
    "init_policy": "aegis.policy.suggest",
    "load_bundle": "aegis.summary",
    "load_configurations": "aegis.policy",
    "load_policy": "aegis.policy",
    "merge": "aegis.summary",
    "merge_bundles": "aegis.summary",
    "record_risk": "aegis.release",
    "release_sql": "aegis.release",
    "render_report": "aegis.report",
    "save_bundle": "aegis.summary",
    "search": "aegis.study",
    "summarize": "aegis.summary",
}

__all__ = [
    "Advice",
    "AnonymizedRelease",
    "Audit",
    "Configuration",
    "Evaluation",
    "MaskingTransformer",
    "Policy",
    "PrivacyReport",
    "ProposedPolicy",
    "RecordRisk",
    "Release",
    "Study",
    "Summary",
    "__version__",
    "advise",
    "anonymize",
    "apply",
    "audit",
    "check_certificate",
    "connect",
    "dump_configurations",
    "dump_policy",
    "evaluate",
    "init_policy",
    "load_bundle",
    "load_configurations",
    "load_policy",
    "merge",
    "merge_bundles",
    "record_risk",
    "release_sql",
    "render_report",
    "save_bundle",
    "search",
    "summarize",
]

if TYPE_CHECKING:
    from aegis.advisor import Advice
    from aegis.papers.evaluation import Evaluation
    from aegis.policy import (
        Configuration,
        Policy,
        dump_configurations,
        dump_policy,
        load_configurations,
        load_policy,
    )
    from aegis.policy.suggest import ProposedPolicy, init_policy
    from aegis.privacy import PrivacyReport
    from aegis.release import (
        AnonymizedRelease,
        Audit,
        MaskingTransformer,
        RecordRisk,
        Release,
        anonymize,
        apply,
        audit,
        check_certificate,
        record_risk,
        release_sql,
    )
    from aegis.report import render_report
    from aegis.service.client import connect
    from aegis.study import Study, advise, evaluate, search
    from aegis.summary import Summary, load_bundle, merge, merge_bundles, save_bundle, summarize


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'aegis' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
