"""Safe summaries: what may leave the house, what a file gives away, and how both are known."""

from aegis.protect.accounting import (
    NoiseRound,
    Unit,
    budget_of,
    epsilon_of,
    rho_of,
    sigma_of,
)
from aegis.protect.advice import ProtectedAdvice, ProtectedRanked
from aegis.protect.build import protect
from aegis.protect.counts import Perturbation
from aegis.protect.differences import Difference, compare
from aegis.protect.documents import DocumentLeak, audit_document
from aegis.protect.file import dumps, load_protected, loads, save_protected
from aegis.protect.front import ProtectedPoint, front_protected, rows_alike
from aegis.protect.joint import reconstruct_protected
from aegis.protect.leak import LeakAudit, audit_leak
from aegis.protect.model import (
    CellMethod,
    Moments,
    ProtectedSummary,
    ProtectionLevel,
)
from aegis.protect.narrow import narrowed
from aegis.protect.noise import Noise
from aegis.protect.ranking import rank_protected, search_protected
from aegis.protect.release import release_protected
from aegis.protect.scores import ProtectedScorer
from aegis.protect.terms import summary_under
from aegis.protect.what_if import what_if

__all__ = [
    "CellMethod",
    "Difference",
    "DocumentLeak",
    "LeakAudit",
    "Moments",
    "Noise",
    "NoiseRound",
    "Perturbation",
    "ProtectedAdvice",
    "ProtectedPoint",
    "ProtectedRanked",
    "ProtectedScorer",
    "ProtectedSummary",
    "ProtectionLevel",
    "Unit",
    "audit_document",
    "audit_leak",
    "budget_of",
    "compare",
    "dumps",
    "epsilon_of",
    "front_protected",
    "load_protected",
    "loads",
    "narrowed",
    "protect",
    "rank_protected",
    "reconstruct_protected",
    "release_protected",
    "rho_of",
    "rows_alike",
    "save_protected",
    "search_protected",
    "sigma_of",
    "summary_under",
    "what_if",
]
