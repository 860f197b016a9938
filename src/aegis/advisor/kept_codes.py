"""Find the rows that a release keeps, among rows that were read as codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Choice
from aegis.masks import Kind
from aegis.policy import Policy
from aegis.summary import Summary
from aegis.summary.classes import WEIGHT
from aegis.summary.coded_rows import CodedRows

Codes = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class KeptCodes:
    """The rows that a release keeps, with their values as codes.

    Attributes
    ----------
    original, masked
        The columns of these rows before they are masked, and as they are released. The column
        `WEIGHT` has the unmasked weights, if rows have weights.
    """

    original: CodedRows
    masked: CodedRows


def kept_codes(
    known: CodedRows | None, plan: PrivacyPlan, policy: Policy, choice: Choice
) -> KeptCodes | None:
    """Return the rows that the release of a configuration keeps, with their values as codes; None
    if the codes do not show which rows it keeps (see `codes_known`).

    Parameters
    ----------
    known
        All rows of the table as codes, with the label's column; None if they were not read.
    plan, policy, choice
        The plan that decides which equivalence classes are kept, the policy, and the candidates of
        the configuration.
    """
    summary, frequency = plan.summary, plan.summary.frequency
    if known is None or frequency is None or not codes_known(known, plan, policy, choice):
        return None
    keep = np.ones(len(known.label), dtype=np.bool_)
    if frequency.quasi:
        cell = known.cell_of_rows(frequency, summary.attributes)
        keep = plan.kept_cells(choice)[cell]
    if policy.weight is not None:
        known = known.with_copy(policy.weight, WEIGHT)
    groups: dict[str, tuple[Codes, pa.Array]] = {}
    for name, values in known.values.items():
        own = choice.get(name)
        unmasked = np.arange(len(values)), values
        groups[name] = unmasked if own is None else (own.groups, own.shown)
    return KeptCodes(known.only(keep), known.shown(groups, keep))


def codes_known(known: CodedRows | None, plan: PrivacyPlan, policy: Policy, choice: Choice) -> bool:
    """Return whether the codes of a table's rows show which rows the release of a configuration
    keeps. The parameters are those of `kept_codes`.

    They do not show this if a mask adds noise or shows a type that cannot be compared, if the rule
    counts persons or depends on an earlier release, or if the classes of the label come from a
    mask.
    """
    frequency = plan.summary.frequency
    if known is None or frequency is None or frequency.earlier is not None:
        return False
    drawn = any(candidate.noise is not None for candidate in choice.values())
    if drawn or policy.person is not None or _label_masked(plan.summary):
        return False
    shown = (candidate.shown.type for candidate in choice.values())
    return all(Kind.of(ibis.dtype(own)) is not None for own in shown)


def _label_masked(summary: Summary) -> bool:
    """Return whether the classes of a label come from a mask, such as ranges of a number."""
    tasks = () if summary.several is None else summary.several.tasks
    return any(own.label.mask is not None for own in (summary, *(t.summary for t in tasks)))
