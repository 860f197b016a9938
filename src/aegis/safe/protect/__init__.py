"""Make protected summaries, audit what a file reveals, and rank from protected summaries."""

from aegis.safe.protect.budget import (
    Unit,
    budget_of,
    epsilon_of,
    rho_of,
    sigma_of,
)
from aegis.safe.protect.counts import Perturbation
from aegis.safe.protect.differences import Difference, compare
from aegis.safe.protect.documents import DocumentLeak, audit_document
from aegis.safe.protect.file import dumps, load_protected, loads, save_protected
from aegis.safe.protect.leak import LeakAudit, audit_leak
from aegis.safe.protect.model import (
    CellMethod,
    Moments,
    ProtectedSummary,
    ProtectionLevel,
    narrowed,
    summary_under,
)
from aegis.safe.protect.noise import Noise
from aegis.safe.protect.ranking import rank_protected, search_protected
from aegis.safe.protect.release import protect, release_protected
from aegis.safe.protect.scores import ProtectedScorer, reconstruct_protected

__all__ = [
    "CellMethod",
    "Difference",
    "DocumentLeak",
    "LeakAudit",
    "Moments",
    "Noise",
    "Perturbation",
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
    "load_protected",
    "loads",
    "narrowed",
    "protect",
    "rank_protected",
    "reconstruct_protected",
    "release_protected",
    "rho_of",
    "save_protected",
    "search_protected",
    "sigma_of",
    "summary_under",
]
