"""Compute standard errors of a ranking by the delete-a-group jackknife over folds of the rows, and
choose among configurations that score about the same.

The score is computed again without each of the G folds. Let v_g be the score without fold g. Then
the standard error is sqrt((G - 1) / G * sum_g (v_g - mean v)^2) (Kott, The delete-a-group
jackknife, Journal of Official Statistics 17, 2001; the jackknife of groups goes back to Quenouille,
1956). Two configurations are compared by the standard error of the *difference* of their scores.
Both mask the same rows, so the scores vary together, and the error of the difference is much
smaller than the errors of the two scores.

Among configurations that score about the same, the choice is by the amount of masking, which does
not depend on the label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from aegis.advisor.encodings import group_rows, has_excluded, masked_classes
from aegis.advisor.figures import FirstByMasking
from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer
from aegis.arrays import Array, Floats
from aegis.files import SILENT, Progress
from aegis.measures import Direction, LabelKind, Measure, Scope
from aegis.measures.association import entropy
from aegis.measures.merits import area_error
from aegis.summary import AttributeSummary, Candidate, Summary
from aegis.summary.build import without_fold
from aegis.summary.row_pairs import RowPairCounts

COMPARED = 10
"""Number of best configurations whose standard errors are computed."""
EFFORT = 6e9
"""Largest total cost of standard errors. The cost of one configuration is the number of folds times
the cube of its number of levels.
"""
_PER_CELL = 300
"""Cost of counting one cell of the matrix of all atoms from the rows, in the same unit."""
CERTAINTY = 0.975
"""A difference is significant if, in standard errors, it exceeds the quantile of Student's t for
this probability (two-sided, five percent).
"""
_STUDENT = (
    12.706204736174694,
    4.302652729749462,
    3.1824463052837078,
    2.7764451051977934,
    2.5705818356363146,
    2.4469118511449786,
    2.364624251592784,
    2.306004135204166,
    2.262157162798205,
)
"""The quantile `CERTAINTY` for 1 to 9 degrees of freedom."""


class FoldScorer(Scorer):
    """Scores configurations on all rows except those of one fold. The counts by fold put all rare
    masked values of an attribute together, and so do the scores.
    """

    def __init__(self, scorer: Scorer, fold: int) -> None:
        rest = without_fold(scorer.summary.pairs, fold)
        super().__init__(replace(scorer.summary, pairs=rest))

    def _rows_by_class(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> Array:
        counts = self.summary.pairs.atom_counts[self._names.index(attribute.name)]
        level = self.levels(attribute, candidate)
        if level.ndim == 2:
            return level.T @ masked_classes(counts, label)
        return masked_classes(group_rows(counts, level, candidate.n_levels), label)


def compared(scorer: Scorer, choices: Sequence[Choice], measure: Measure) -> int:
    """Return for how many of the best configurations standard errors are computed: at most
    `COMPARED`.

    The errors of a measure of whole configurations usually need one factorisation per fold, and its
    time grows with the cube of the number of levels. So for tables with many levels the result is
    smaller, or 0. It is also 0 if there are several labels, or if the measure scores single
    attributes and some attributes have no counts by fold.
    """
    if measure.label is LabelKind.SEVERAL:
        return 0  # each label's rows are dealt to other folds; its own error is stated
    most = min(len(choices), COMPARED)
    folds = scorer.summary.pairs.folds
    if measure.scope is Scope.ATTRIBUTE and has_excluded(scorer.summary):
        return 0  # excluded attributes are not counted by fold
    if measure.without_folds is not None or measure.scope is not Scope.CONFIGURATION or not folds:
        return most
    spent = 0.0
    if isinstance(scorer.summary.pairs, RowPairCounts):
        atoms = float(sum(scorer.summary.pairs.sizes))
        spent = np.count_nonzero(folds.rows) * _PER_CELL * atoms**2
    for count, choice in enumerate(choices[:most]):
        levels = sum(choice[name].n_levels for name in scorer.summary.attributes)
        spent += np.count_nonzero(folds.rows) * float(levels) ** 3
        if spent > EFFORT:
            return count if count > 1 else 0  # of one alone nothing is compared
    return most


def confidence_note(scorer: Scorer, choices: Sequence[Choice], measure: Measure) -> tuple[str, ...]:
    """Return a sentence if some standard errors were left out, because they would take too long."""
    few = compared(scorer, choices, measure)
    if measure.label is LabelKind.SEVERAL or few == min(len(choices), COMPARED):
        return ()
    of = f"for the best {few} configurations only" if few else "for no configuration"
    if measure.scope is Scope.ATTRIBUTE:
        return (
            f"standard errors were computed {of}: some attributes have too many values to be counted by "
            "fold. To get standard errors, give coarser candidates or fewer attributes.",
        )
    return (
        f"standard errors were computed {of}: the attributes together have so many values that the "
        "others would take long. To get them, give coarser candidates or fewer attributes.",
    )


def jackknife(
    scorer: Scorer, choices: Sequence[Choice], measure: Measure, progress: Progress = SILENT
) -> Floats | None:
    """Return the score of each configuration without each of the G folds of the rows, shape (G,
    len(choices)).

    Folds without rows are left out; the result is None if fewer than two folds remain. If the
    measure is itself a mean over folds, the score without a fold is the mean over all other folds.
    """
    if measure.without_folds is not None:
        counts = [scorer.cooccurrence(choice, measure.needs) for choice in choices]
        if not counts or scorer.folds < 2:
            return None
        return np.stack([measure.without_folds(own_counts) for own_counts in counts], axis=1)
    folds = scorer.summary.pairs.folds
    if folds is None or np.count_nonzero(folds.rows) < 2:
        return None
    scores = []
    counted = np.flatnonzero(folds.rows)
    with progress.step("Estimating standard errors", len(counted)) as step:
        for fold in counted:
            rest = FoldScorer(scorer, int(fold))
            scores.append([rest.value(choice, measure) for choice in choices])
            step.advance()
    return np.array(scores)


def standard_errors(values: Floats) -> Floats:
    """Return the jackknife standard error of each score, shape (n,), from the scores without each
    fold, shape (G, n).
    """
    groups = len(values)
    spread = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    errors: Floats = np.sqrt((groups - 1) / groups * spread)
    return errors


def with_confidence(
    ranking: Sequence[Ranked],
    choices: Sequence[Choice],
    scorer: Scorer,
    measure: Measure,
    progress: Progress = SILENT,
) -> list[Ranked]:
    """Return the ranking with standard errors of its first entries, whose candidates are `choices`.
    Entries that do not differ significantly from the best one are marked as tied.
    """
    chosen = list(choices)[: compared(scorer, choices, measure)]
    values = jackknife(scorer, chosen, measure, progress) if chosen else None
    if values is None:
        return list(ranking)
    entries = marked_by_folds(ranking, values, shrink_of(scorer.summary, measure))
    return [
        r
        if r.stderr is None
        else replace(r, stderr=sampling_error(scorer, measure, r.score, r.stderr))
        for r in entries
    ]


def sampling_error(scorer: Scorer, measure: Measure, score: float, jackknifed: float) -> float:
    """Return the standard error of a score: for an AUC from a formula, for any other measure the
    jackknife error `jackknifed`.

    The jackknife of an AUC has only five folds, so its result varies up to threefold between
    samples of one population. The formula of Hanley and McNeil needs only the AUC and the number of
    rows of each class. It gives errors that are about a fifth too large.
    """
    if measure.unit != "AUC":
        return jackknifed
    rows = np.asarray(scorer.label_rows)
    return area_error(score, rows * (scorer.summary.pairs.n / max(float(rows.sum()), 1.0)))


def marked_by_folds(ranking: Sequence[Ranked], values: Floats, shrink: float) -> list[Ranked]:
    """Return the ranking with the standard errors of the jackknife, and marks of ties. `values` has
    the scores of the first n entries without each fold, shape (G, n), and `shrink` is as in
    `shrink_of`.
    """
    errors = shrink * standard_errors(values)
    difference_errors = shrink * standard_errors(values - values[:, :1])
    return marked(ranking, errors, difference_errors * student_quantile(len(values) - 1))


def marked(ranking: Sequence[Ranked], errors: Floats, limits: Floats) -> list[Ranked]:
    """Return the ranking with the standard errors of its first n entries, and marks of those that
    differ from the best score by at most their entry in `limits`, shape (n,).
    """
    best = ranking[0]
    compared_entries = [
        replace(
            ranked,
            stderr=float(error),
            tied_with_best=_tied(best, ranked, float(limit)),
        )
        for ranked, error, limit in zip(ranking, errors, limits, strict=False)
    ]
    return [*compared_entries, *ranking[len(compared_entries) :]]


def _tied(best: Ranked, ranked: Ranked, limit: float) -> bool | None:
    """Return whether the score differs from the best one by at most `limit`, so that the difference
    may be chance; None if one of the two configurations breaks the rule.
    """
    if best.admissible is False or ranked.admissible is False:
        return None
    rounding = 1e-12 * max(abs(best.score), 1.0)
    return abs(best.score - ranked.score) <= limit + rounding


def shrink_of(summary: Summary, measure: Measure) -> float:
    """Return the factor that converts standard errors for the rows in the folds to those for all
    scored rows.

    It is 1 for measures of whole configurations, which use the rows in the folds. Measures of
    single attributes use all rows, of which the folds may have only a sample.
    """
    if measure.scope is Scope.CONFIGURATION:
        return 1.0
    return math.sqrt(summary.pairs.n / max(float(summary.label.weighted.sum()), 1.0))


def student_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile (`CERTAINTY`) of Student's t distribution."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    from scipy.special import stdtrit

    return float(stdtrit(freedom, CERTAINTY))


AUC_MARGIN = 0.002
"""An AUC or accuracy counts as equal to the best one if it is lower by at most this."""
UTILITY_MARGIN = 0.005
"""A score by any other measure counts as equal to the best one if it is lower by at most this share
of the unmasked table's utility.
"""


class Prefer(StrEnum):
    """Which configuration Aegis recommends among several that score about the same."""

    LEAST_MASKING = "least-masking"
    MOST_PRIVATE = "most-private"
    SCORE = "score"

    @property
    def sign(self) -> int:
        """1 if the user prefers the configuration that masks more, otherwise -1."""
        return 1 if self is Prefer.MOST_PRIVATE else -1


def hidden_share(
    attribute: AttributeSummary, candidate: Candidate, channel: Floats | None = None
) -> float:
    """Return which share of the entropy of an attribute's values a mask hides, from 0 to 1.

    The share is 1 - I(value; masked value) / H(value). It is 0 if each value follows from its
    masked value, and 1 if the masked value carries no information. It is 0 for an attribute with
    one value. For a noise mask, `channel` has the probability of each of L masked values for each
    of A atoms (sets of original values), shape (A, L).
    """
    counts = attribute.counts.astype(np.float64)
    total = entropy(counts)
    if total <= 0:
        return 0.0
    if channel is None:
        groups = np.bincount(candidate.groups, weights=counts)
        return max(0.0, 1 - entropy(groups.astype(np.float64)) / total)
    atoms = np.bincount(attribute.atoms, weights=counts, minlength=len(channel))
    share = atoms / atoms.sum()
    mutual = entropy(share @ channel)
    mutual -= sum(float(p) * entropy(row) for p, row in zip(share, channel, strict=True) if p > 0)
    return min(max(0.0, 1 - mutual / total), 1.0)


def configuration_masking(choice: Choice, scorer: Scorer) -> float:
    """Return the mean of `hidden_share` over the attributes of a configuration."""
    shares = []
    for attribute in scorer.summary.all_attributes:
        if (candidate := choice.get(attribute.name)) is not None:
            channel = None if candidate.noise is None else scorer.levels(attribute, candidate)
            shares.append(hidden_share(attribute, candidate, channel))
    return sum(shares) / max(len(shares), 1)


def tie_margin(
    measure: Measure,
    unmasked: float,
    best: float,
    error: float | None,
    label_rows: Sequence[float],
) -> float:
    """Return how far a score may be below the best score and still count as equal to it.

    This margin is `AUC_MARGIN` for an AUC or an accuracy. For any other measure, it is the share
    `UTILITY_MARGIN` of the unmasked utility. It is infinite if scores cannot distinguish masks: if
    the unmasked table has no utility, or if the best score is within two standard errors (`error`)
    of a constant prediction's score.
    """
    sign, none = measure.direction.sign, measure.worst(label_rows)
    utility = sign * (unmasked - none)
    bounded = measure.direction is Direction.HIGHER or measure.constant is not None
    if bounded and (not utility > 0 or sign * (best - none) < 2 * (error or 0.0)):
        return math.inf
    return AUC_MARGIN if measure.unit in ("AUC", "accuracy") else UTILITY_MARGIN * abs(utility)


def preferred_first(
    ranking: Sequence[Ranked],
    choices: Sequence[Choice],
    scorer: Scorer,
    measure: Measure,
    prefer: Prefer,
) -> tuple[list[Ranked], FirstByMasking | None]:
    """Return the ranking with the recommended configuration first: the one that masks least (or
    most, as the user prefers) among those whose scores are about equal to the best score. If it
    does not have the best score, also return the reason (else None). `choices` are the candidates
    of each admissible configuration, in the same order.
    """
    if prefer is Prefer.SCORE or not ranking[0].admissible:
        return list(ranking), None
    best, sign = ranking[0], measure.direction.sign
    unmasked = scorer.value(scorer.unmasked, measure)
    margin = tie_margin(measure, unmasked, best.score, best.stderr, scorer.label_rows)
    entries = list(ranking)
    ties = [
        i
        for i, (ranked, _) in enumerate(zip(ranking, choices, strict=False))
        if ranked.admissible and sign * (best.score - ranked.score) <= margin
    ]
    for i in ties:
        entries[i] = replace(entries[i], masking=configuration_masking(choices[i], scorer))

    def order(i: int) -> tuple[float, int, int]:
        ranked = entries[i]
        # Equal where only the last digits differ.
        return (-prefer.sign * round(ranked.masking or 0.0, 9), ranked.suppressed_rows or 0, i)

    first = min(ties, key=order)
    if first == 0:
        return entries, None
    chosen = entries[first]
    hidden, other = chosen.masking or 0.0, entries[0].masking or 0.0
    why = FirstByMasking(str(prefer), best.score, margin, hidden, other)
    return [chosen, *entries[:first], *entries[first + 1 :]], why
