"""Write the texts on the configuration that a request of a catalog would release, and on its
release once it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.advisor.utility import UtilityFigure
from aegis.present.finding import utility_words
from aegis.words import counted, percent


def chosen_words(
    answer: Mapping[str, Any], label: str | None, measured: UtilityFigure | None = None
) -> dict[str, Any]:
    """Return the result of a check with a headline, and with the reasons (`why`) as sentences.

    `answer` is the result of the check on the table, as the provider's agent sent it. The utility
    that the certificate states (`measured`; None as long as there is no release) replaces that of
    the check, which covers all rows. `label` is the column that models predict, if any.
    """
    if not answer["holds"]:
        reasons = "; ".join(answer.get("violations", ())) or (
            "together with earlier releases, the rule no longer holds"
        )
        return {**answer, "headline": f"This configuration breaks the rule: {reasons}.", "why": []}
    if measured is not None:
        answer = {**answer, "utility_kept": measured.utility_kept}
    left_out, rows = answer["suppressed_rows"], answer["rows"]
    headline = (
        f"{_utility(answer, label, measured)}It suppresses {left_out:,} of {counted(rows, 'row')}; every "
        f"released row is like at least {counted(answer['smallest_class'] - 1, 'other')} in all "
        "quasi-identifiers."
    )
    return {**answer, "headline": headline, "why": _reasons(answer)}


def _utility(answer: Mapping[str, Any], label: str | None, measured: UtilityFigure | None) -> str:
    """Return a sentence on the utility that a release keeps, and on which rows; empty if not known."""
    share = answer.get("utility_kept")
    if share is None:
        return ""
    utility = f"keeps {percent(share)} of {utility_words(answer.get('measure', ''), label)}"
    if measured is not None:
        return f"The release {utility}, measured on {measured.on} ({measured.detail}). "
    if not answer["suppressed_rows"]:
        return f"The release {utility}, computed beside the data from all rows. "
    return (
        f"The release {utility}. This is an estimate: it is computed beside the data from all rows, before "
        "the rule suppresses any. The certificate will state the figure of the released rows. "
    )


def _reasons(answer: Mapping[str, Any]) -> list[str]:
    """Return sentences on how the configuration was chosen, and on earlier releases."""
    why = []
    if answer.get("searched"):
        proof = "proven best" if answer.get("proven") else "the best found"
        why.append(f"It is {proof} of all combinations of masks, searched beside the data.")
    elif answer.get("scores"):
        why.append(
            f"It is number {answer['place']} of {answer['combinations']:,} combinations by the "
            "protected summary, and the first of them that meets the rule."
        )
    elif answer.get("chosen_by"):
        why.append(f"{answer['chosen_by']} chose it.")
    if answer.get("releases"):
        why.append(
            f"Together with {counted(len(answer['releases']), 'earlier release')} the rule still holds "
            f"(smallest joint class {answer.get('joint_smallest_class', '?')})."
        )
    return why
