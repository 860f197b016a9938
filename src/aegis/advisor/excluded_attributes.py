"""Score the attributes that measures of whole configurations leave out, and warn about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aegis.measures import LabelKind, Measure, Scope
from aegis.summary import AttributeSummary, PairCounts, Summary
from aegis.summary.cooccurrence import FoldCounts
from aegis.summary.excluded_attributes import told_alone

_FOLDS = 10


def summary_of_one(summary: Summary, attribute: AttributeSummary) -> Summary:
    """Return a summary of a single attribute, computed from its number of rows by value and class.

    The fold of each row is drawn at random, because rows with the same value and class are
    interchangeable.
    """
    added = np.zeros((attribute.n_atoms, attribute.joint.shape[1]), dtype=attribute.joint.dtype)
    np.add.at(added, attribute.atoms, attribute.joint)
    joint = np.rint(added).astype(np.int64)
    draw = np.random.default_rng(0)
    dealt = draw.multinomial(joint.ravel(), np.full(_FOLDS, 1 / _FOLDS))
    by_fold = np.moveaxis(dealt.reshape(*joint.shape, _FOLDS), 2, 0).astype(np.int64)
    folds = FoldCounts(_FOLDS, by_fold.sum(axis=(1, 2)), (by_fold,), {}, {}, {})
    sizes, label_classes = (attribute.n_atoms,), joint.shape[1]
    rows = int(joint.sum())
    pairs = PairCounts((attribute.name,), sizes, label_classes, rows, (joint,), {}, {}, folds)
    pairs = replace(pairs, in_rows=summary.weights is not None)
    return replace(summary, attributes={attribute.name: attribute}, pairs=pairs)


def known_alone(attribute: AttributeSummary, measure: Measure) -> bool:
    """Return whether the measure of a single attribute can be computed from what the summary
    contains.

    It cannot be computed if the label is a number and scores leave the attribute out: a summary has
    no sums of the label by the values of such an attribute.
    """
    return not (attribute.aside and measure.label is LabelKind.NUMBER)


def sets_aside(summary: Summary) -> bool:
    """Return whether scores of whole configurations leave out some attributes of this summary."""
    return any(attribute.aside for attribute in summary.attributes.values())


def aside_note(summary: Summary, measure: Measure) -> tuple[str, ...]:
    """Return a sentence about the attributes that scores of whole configurations leave out: how
    many they are, and how much they could add to the score. If none are left out, the result is
    empty.
    """
    aside = [a for a in summary.attributes.values() if a.aside]
    if not aside or measure.scope is not Scope.CONFIGURATION:
        return ()
    whole, out = len(summary.attributes), len(aside)
    cause = "all of them together have too many values to be factorised at once"
    if not summary.label.there:
        return (
            f"scores of whole configurations use the {whole - out:,} of {whole:,} attributes that have "
            f"the fewest values: {cause}. They do not measure associations with the other attributes.",
        )
    if summary.label.kind is LabelKind.NUMBER:
        return (
            f"scores use the {whole - out:,} of {whole:,} attributes that explain the number best by "
            f"themselves: {cause}. Aegis does not know what the others add",
        )
    told = np.array([told_alone(a, summary.max_levels) for a in aside])
    label_classes = int(np.count_nonzero(summary.label.counts))
    return (
        f"scores of whole configurations use the {whole - out:,} of {whole:,} attributes that "
        f"predict the label best by themselves: {cause}. Of the other {out:,}, "
        f"{aside[int(told.argmax())].name!r} predicts best, with a trace of {told.max():.3g}; the traces of all of "
        f"them add up to {told.sum():.3g}. Their masks could change the score by at most this sum, or by at most "
        f"{label_classes - 1} if attributes predict more together than alone.",
    )
