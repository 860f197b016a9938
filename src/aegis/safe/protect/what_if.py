"""Estimate from a protected summary how a score changes if one attribute gets another mask."""

from __future__ import annotations

from aegis.advisor.figures import MaskChange
from aegis.errors import PolicyError
from aegis.safe.protect.model import ProtectedSummary
from aegis.safe.protect.scores import DIFFERENT, Choice, ProtectedScorer, Replicates


def what_if(summary: ProtectedSummary, choice: Choice) -> tuple[MaskChange, ...]:
    """Return the effect of every other mask of every attribute if all other masks stay the same.

    Parameters
    ----------
    summary
        The protected summary.
    choice
        Index of each attribute's candidate, as returned by `ProtectedSummary.choose`.

    Raises
    ------
    PolicyError
        A candidate does not exist.
    """
    names, own = list(summary.attributes), tuple(choice)
    sizes = [len(a.candidates) for a in summary.attributes.values()]
    if len(own) != len(sizes) or any(not 0 <= c < n for c, n in zip(own, sizes, strict=True)):
        raise PolicyError(
            f"{own} names candidates that the summary does not have.",
            hint="Pass the result of ProtectedSummary.choose for a configuration.",
        )
    others = [
        (i, place) for i, size in enumerate(sizes) for place in range(size) if place != own[i]
    ]
    choices = [own, *((*own[:i], place, *own[i + 1 :]) for i, place in others)]
    scorer = ProtectedScorer(summary)
    scores = [scorer.score(c) for c in choices]
    drawn = Replicates(summary).scores(choices)
    errors = (drawn - drawn[:, :1]).std(axis=0, ddof=1)
    changes = []
    for (i, place), score, error in zip(others, scores[1:], errors[1:].tolist(), strict=True):
        mask = summary.attributes[names[i]].candidates[place].declared
        change = score - scores[0]
        tied = abs(change) <= DIFFERENT * error + 1e-12
        changes.append(MaskChange(names[i], str(mask), score, change, error, tied))
    return tuple(changes)
