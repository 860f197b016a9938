"""What another mask of one attribute would change, as far as a protected summary shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from aegis.errors import PolicyError
from aegis.safe.protect.model import ProtectedSummary
from aegis.safe.protect.scores import DIFFERENT, Choice, ProtectedScorer, Replicates


@dataclass(frozen=True)
class WhatIf:
    """What another mask of one attribute would change, all else equal.

    Attributes
    ----------
    attribute, mask
        The attribute, and the other candidate as the policy writes it.
    score
        Estimate with it.
    change
        That less the estimate without it.
    stderr
        Standard error of the change, by protection alone.
    tied
        Whether protection hides which of the two is better.
    """

    attribute: str
    mask: str
    score: float
    change: float
    stderr: float
    tied: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def what_if(summary: ProtectedSummary, choice: Choice) -> tuple[WhatIf, ...]:
    """Return what every other mask of every attribute would change of a choice, all else equal.

    Parameters
    ----------
    summary
        What is scored from.
    choice
        Place of each attribute's candidate, as `ProtectedSummary.choose` returns it.

    Raises
    ------
    PolicyError
        A candidate is not there.
    """
    names, own = list(summary.attributes), tuple(choice)
    sizes = [len(a.candidates) for a in summary.attributes.values()]
    if len(own) != len(sizes) or any(not 0 <= c < n for c, n in zip(own, sizes, strict=True)):
        raise PolicyError(
            f"{own} names candidates that the summary does not have.",
            hint="Take what ProtectedSummary.choose returns of a configuration.",
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
        changes.append(WhatIf(names[i], str(mask), score, change, error, tied))
    return tuple(changes)
