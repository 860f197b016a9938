"""Save a stopped search in a file, so that a later search can continue it.

The file contains the best configurations, and the unsearched boxes with their bounds. Use only your
own files: Aegis does not check the bounds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.branch import Found, OpenBox
from aegis.advisor.search.problem import Box, Problem
from aegis.errors import PolicyError
from aegis.files import read_text, write_text
from aegis.policy import Policy, policy_digest

_FORMAT = 1
_KEPT = 10
"""Largest number of best configurations to save; a later search begins with them."""


@dataclass(frozen=True)
class SearchFile:
    """The file in which Aegis saves a search, to continue it later.

    Attributes
    ----------
    path
        Path of the file, which need not exist yet.
    digests
        Digests of the table and of the policy with its rule, and the measure. They identify the
        search, so that `read` can refuse the file of another search.
    full
        For each variable of the search, the set of all candidates as a bit mask: bit i is set for
        candidate i.
    """

    path: Path
    digests: Mapping[str, str]
    full: Box

    @classmethod
    def of(
        cls, path: Path, policy: Policy, problem: Problem, plan: PrivacyPlan, objective: str
    ) -> SearchFile:
        """Return the file for a search of this search space under this policy and the rule of this
        plan. `objective` identifies the objective and the number of requested configurations.
        """
        return cls(
            path,
            {
                "policy": policy_digest(replace(policy, privacy=plan.rule)),
                "table": _digest(*_counts(problem)),
                "measure or --top": objective,
            },
            tuple(variable.full for variable in problem.variables),
        )

    def read(self) -> tuple[tuple[Box, ...], tuple[OpenBox, ...]] | None:
        """Return the best configurations that an earlier search found, and the boxes (sets of
        configurations) that it did not search; None if the file does not exist yet.

        Raises
        ------
        PolicyError
            The file was not written by a search, or it is from a search with another table, policy
            or measure.
        """
        if not self.path.exists():
            return None
        text = read_text(self.path, "search to resume", PolicyError)
        try:
            data = json.loads(text)
            known = {name: data["of"][name] for name in self.digests}
            best = tuple(self._box(box) for box in data["best"])
            boxes = tuple(
                OpenBox(_bound(bound), self._box(box), bool(tight))
                for bound, tight, box in data["open"]
            )
            if data["aegis_search"] != _FORMAT:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise PolicyError(
                f"{self.path} is not a search that can be resumed.",
                hint="Give a file that --resume wrote, or a name that does not exist.",
            ) from error
        other = [name for name, digest in self.digests.items() if known[name] != digest]
        if other:
            raise PolicyError(
                f"{self.path} is from a search with another {' and another '.join(other)}.",
                hint="Give another file, or the table, policy and measure of that search.",
            )
        return best, boxes

    def write(self, outcome: Found) -> None:
        """Write the best configurations that a search has found so far, and the boxes (sets of
        configurations) that it has not searched.
        """
        data = {
            "aegis_search": _FORMAT,
            "of": dict(self.digests),
            "best": [list(map(str, box)) for _, box in outcome.best[:_KEPT]],
            "open": [
                [None if math.isinf(bound) else bound, tight, list(map(str, box))]
                for bound, box, tight in outcome.open
            ],
        }
        write_text(self.path, json.dumps(data))

    def _box(self, given: Any) -> Box:
        box = tuple(int(domain) for domain in given)
        if len(box) != len(self.full) or not all(
            0 < own <= full and own & full == own for own, full in zip(box, self.full, strict=True)
        ):
            raise ValueError
        return box


def _bound(given: Any) -> float:
    bound = math.inf if given is None else float(given)
    if math.isnan(bound):
        raise ValueError
    return bound


def _counts(problem: Problem) -> list[str]:
    """Return texts that together identify the table and the masks of a search: its number of rows,
    the candidate masks, and a digest of each array of counts.

    The counts by fold (part of the rows, for cross-validation) are included because they differ
    even between tables whose columns have the same counts.
    """
    summary = problem.summary
    pairs, frequency = summary.pairs, summary.frequency
    arrays = list(pairs.joints if pairs.folds is None else pairs.folds.joints)
    if frequency is not None:
        arrays += [frequency.counts, *(frequency.codes[name] for name in sorted(frequency.codes))]
    masks = [repr((v.name, [str(c.mask) for c in v.candidates])) for v in problem.variables]
    digests = [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays]
    return [str(summary.rows), *masks, *digests]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
