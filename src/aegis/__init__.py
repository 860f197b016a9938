"""Aegis: a masking advisor.

Every verb of the command line is a function here: `init_policy`, `summarize`, `advise`, `search`,
`apply`, `anonymize`, `audit`. Names are loaded when they are first used, so that `import aegis` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Advice": "aegis.advisor",
    "AnonymizedRelease": "aegis.release",
    "Audit": "aegis.release",
    "Configuration": "aegis.policy",
    "MaskingTransformer": "aegis.release",
    "Policy": "aegis.policy",
    "PrivacyReport": "aegis.privacy",
    "Release": "aegis.release",
    "Summary": "aegis.summary",
    "advise": "aegis.advisor",
    "Evaluation": "aegis.evaluation",
    "anonymize": "aegis.release",
    "apply": "aegis.release",
    "audit": "aegis.release",
    "evaluate": "aegis.evaluation",
    "init_policy": "aegis.policy.suggest",
    "load_bundle": "aegis.summary",
    "load_configurations": "aegis.policy",
    "load_policy": "aegis.policy",
    "merge": "aegis.summary",
    "release_sql": "aegis.release",
    "render_report": "aegis.report",
    "save_bundle": "aegis.summary",
    "search": "aegis.advisor.search",
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
    "Release",
    "Summary",
    "__version__",
    "advise",
    "anonymize",
    "apply",
    "audit",
    "evaluate",
    "init_policy",
    "load_bundle",
    "load_configurations",
    "load_policy",
    "merge",
    "release_sql",
    "render_report",
    "save_bundle",
    "search",
    "summarize",
]

if TYPE_CHECKING:
    from aegis.advisor import Advice, advise
    from aegis.advisor.search import search
    from aegis.evaluation import Evaluation, evaluate
    from aegis.policy import Configuration, Policy, load_configurations, load_policy
    from aegis.policy.suggest import init_policy
    from aegis.privacy import PrivacyReport
    from aegis.release import (
        AnonymizedRelease,
        Audit,
        MaskingTransformer,
        Release,
        anonymize,
        apply,
        audit,
        release_sql,
    )
    from aegis.report.render import render as render_report
    from aegis.summary import Summary, load_bundle, merge, save_bundle, summarize


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'aegis' has no attribute {name!r}")
    attribute = "render" if name == "render_report" else name
    return getattr(import_module(_HOMES[name]), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
