"""How sure are both sides of the calibration: the expected AUC, and the trained one?

The tables and configurations of `selection_public.py` and `confirmation.py`. Logistic regression on
`SPLITS` splits of the rows, each tested on 30 %; the AUC of several classes is the mean over classes
alike, as it is expected. The difference between expected and trained AUC has three sources of error beside what is wrong with the measure:

- other rows of the same kind: delete-a-group jackknife over `GROUPS` groups of rows that are scored,
  of the difference (the AUC of discriminants of values under normal scores less that of test rows),
- how rows were dealt into folds: the deviation of the expected AUC over `DEALS` seeds,
- how rows were split: the deviation over splits, over the square root of their number.

Where the gap lies is told by the discriminants themselves, fitted to rows: `discriminant` is the AUC,
by rank and within each part, of the scores whose moments the expected AUC is made of. Expected less
that is the fault of normal theory and shape; that less trained the difference between learners.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/calibration_errors.py [--data NAME,...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor import Choice, Scorer
from aegis.advisor.confidence import standard_errors
from aegis.advisor.fold_counts import CV_FOLDS
from aegis.measures import MEASURES
from aegis.measures.discriminant import PENALTIES
from aegis.measures.numerics import cumulative
from aegis.papers.evaluation.coding import CodedTable, code_table
from aegis.papers.evaluation.training import make_splits
from aegis.policy import load_policy
from aegis.sources import open_table
from aegis.summary import summarize
from aegis.summary.builder import FOLDS
from aegis.summary.codes import Dealer
from common import add_csv
from paper_masks import paper_configurations, paper_policy
from public_sets import CONFIRMATION, FURTHER, RESERVE
from selection_public import COUNT, SEED, UNMASKED

NAME = "calibration_errors"
SPLITS, DEALS, GROUPS = 20, 5, 25
SCORE, LINEAR = "held-out-auc", "held-out-auc(lr)"
TINY, WIDEST = 1e-300, 1_500
AIM = 0.03
Floats = npt.NDArray[np.float64]
Which = npt.NDArray[np.bool_]


def area(own: Which, scores: Floats) -> float:
    """Return the share of pairs of a row of the class and another whose scores are in order."""
    hits = int(own.sum())
    if hits in (0, len(own)):
        return float("nan")
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - 0.5 * (counts - 1)
    return float((rank[place][own].sum() - hits * (hits + 1) / 2) / (hits * (len(own) - hits)))


def mean_area(label: npt.NDArray[np.int64], scores: Floats) -> float:
    """Return the AUC of scores by class, shape (n, C): of two the second, else the mean over classes."""
    told = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    return float(np.nanmean([area(label == c, scores[:, c]) for c in told]))


def trained(rows: CodedTable, choice: Choice, group: npt.NDArray[np.int64]) -> Floats:
    """Return the AUC by split and left-out group, (SPLITS, 1 + GROUPS); first of all test rows."""
    from sklearn.linear_model import LogisticRegression

    design = rows.design(choice)
    listed = []
    for split in make_splits(rows.label, count=SPLITS, test_share=0.3, seed=SEED):
        model = LogisticRegression(max_iter=200)
        model.fit(design.one_hot(split.train), rows.label[split.train])
        said = model.predict_proba(design.one_hot(split.test))
        label, own = rows.label[split.test], group[split.test]
        scores = np.zeros((len(label), len(rows.classes)))
        scores[:, model.classes_] = said
        kept = [own >= 0, *(own != g for g in range(GROUPS))]
        listed.append([mean_area(label[k], scores[k]) for k in kept])
    return np.array(listed)


def discriminants(
    rows: CodedTable, choice: Choice, fold: npt.NDArray[np.int64], group: npt.NDArray[np.int64]
) -> tuple[float, Floats]:
    """Return two AUCs of discriminants of values out of fold, means over penalties and classes.

    By rank within each part, and under normal scores of all parts and without each group, (1 + GROUPS,).
    """
    design, known = rows.design(choice), rows.labelled
    if sum(design.sizes) > WIDEST:
        return float("nan"), np.full(1 + GROUPS, np.nan)
    shown = np.asarray(design.one_hot(known).todense(), dtype=float)
    label, part, group = rows.label[known], fold[known] % CV_FOLDS, group[known]
    scores = np.zeros((len(PENALTIES), len(label), len(rows.classes)))
    for own in range(CV_FOLDS):
        x, y, test = shown[part != own], label[part != own], part == own
        for c in range(len(rows.classes)):
            sides = x[y == c], x[y != c]
            means = [side.mean(axis=0) for side in sides]
            within = 0.5 * sum(np.cov(side.T, bias=True) for side in sides)
            for p, penalty in enumerate(PENALTIES):
                ridge = penalty / len(y) * np.eye(len(means[0]))
                slope = np.linalg.solve(np.atleast_2d(within) + ridge, means[0] - means[1])
                scores[p, test, c] = (shown[test] - 0.5 * (means[0] + means[1])) @ slope
    by_rank = [
        mean_area(label[part == own], s[part == own]) for own in range(CV_FOLDS) for s in scores
    ]
    kept = [group >= 0, *(group != g for g in range(GROUPS))]
    normal = [np.mean([normal_area(label[k], s[k]) for s in scores]) for k in kept]
    return float(np.mean(by_rank)), np.array(normal)


def normal_area(label: npt.NDArray[np.int64], scores: Floats) -> float:
    """Return the AUC of scores by class under normal theory, mean over classes as `mean_area`."""
    told = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    areas = []
    for c in told:
        own, rest = scores[label == c, c], scores[label != c, c]
        areas.append(
            cumulative((own.mean() - rest.mean()) / np.sqrt(own.var() + rest.var() + TINY))
        )
    return float(np.mean(areas))


def prepared(name: str) -> tuple[list[Scorer], CodedTable, dict[str, list[Choice]]]:
    """Return scorers by seed of the folds, a table's rows, and what is judged by each scorer."""
    chosen = {**CONFIRMATION, **RESERVE, **FURTHER}[name]
    source = open_table(chosen.open())
    scored = [column for column in source.columns if column != chosen.label]
    attributes = {column: {"role": "feature"} for column in scored}
    policy = paper_policy(
        source,
        load_policy({"version": 1, "label": chosen.label, "privacy": {}, "attributes": attributes}),
    )
    summaries = [summarize(source, policy, seed=seed) for seed in range(DEALS)]
    scorers = [Scorer(summary) for summary in summaries]
    listed = paper_configurations(summaries[0], COUNT, seed=SEED)
    choices = {c.name: [scorer.choose(c) for scorer in scorers] for c in listed}
    choices[UNMASKED] = [scorer.unmasked for scorer in scorers]
    return scorers, code_table(source, summaries[0], policy, seed=SEED), choices


def compared(name: str) -> list[dict[str, Any]]:
    """Return one row per configuration of a table."""
    scorers, rows, choices = prepared(name)
    measure = MEASURES.get(SCORE)
    fold = np.full(rows.rows, -1)
    atoms = [rows.attributes[own].atoms[codes][rows.labelled] for own, codes in rows.codes.items()]
    dealer = Dealer(tuple(rows.codes), FOLDS, 0)
    fold[rows.labelled] = dealer.rows(atoms, rows.label[rows.labelled].astype(np.int64))
    group = np.random.default_rng(SEED).permutation(rows.rows) % GROUPS
    counts = np.bincount(rows.label[rows.labelled])
    facts = {"rows": int(counts.sum()), "rarest": int(counts.min()), "classes": len(counts)}
    listed = []
    for key, by_scorer in choices.items():
        choice = by_scorer[0]
        said = {m: scorers[0].value(choice, MEASURES.get(m)) for m in (SCORE, LINEAR)}
        by_rank, normal = discriminants(rows, choice, fold, group)
        other = normal[1:]
        by_deal = [s.value(c, measure) for s, c in zip(scorers, by_scorer, strict=True)]
        dealt = np.std(by_deal, ddof=1)
        reached = trained(rows, choice, group)
        mean, split = reached.mean(axis=0), reached[:, 0].std(ddof=1) / np.sqrt(SPLITS)
        sampled = standard_errors(np.stack([other - mean[1:], mean[1:], other], axis=1))
        error = float(np.sqrt(sampled[0] ** 2 + dealt**2 + split**2))
        listed.append(
            {
                "data": name,
                "configuration": key,
                **facts,
                **said,
                "trained": float(mean[0]),
                "discriminant": by_rank,
                "discriminant_normal": float(normal[0]),
                "error_of_trained": float(np.hypot(sampled[1], split)),
                "error_of_expected": float(np.hypot(sampled[2], dealt)),
                "error_of_difference": error,
                "dealt": float(dealt),
                "split": float(split),
                "errors_apart": (said[SCORE] - float(mean[0])) / error if error else 0.0,
            }
        )
    return listed


def summed_up(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line of a table: distances, errors, and shares beyond two of them.

    Designs of more than `WIDEST` columns have no discriminant, and take part in the distances alone.
    """
    texts = ("data", "configuration")
    get = {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if key not in texts}
    gaps = [get[measure] - get["trained"] for measure in (SCORE, LINEAR)]
    known = np.isfinite(get["errors_apart"])
    beyond = np.abs(get["errors_apart"][known]) > 2
    cells = [name, f"{len(rows)}"]
    cells += [f"{np.median(np.abs(gap)):.3f} / {np.abs(gap).max():.3f}" for gap in gaps]
    cells += [f"{(np.abs(gaps[0]) <= AIM).mean():.0%}", f"{gaps[0].mean():+.3f}"]
    cells += [f"{np.nanmedian(get[f'error_of_{of}']):.3f}" for of in ("trained", "difference")]
    cells += [f"{beyond.mean():.0%}"]
    for first, second in ((LINEAR, "discriminant"), ("discriminant", "trained")):
        cells.append(f"{np.nanmean(get[first] - get[second]):+.3f}")
    return "| " + " | ".join(cells) + " |"


def main(argv: list[str] | None = None) -> None:
    """Train, compare, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join([*CONFIRMATION, *FURTHER, *RESERVE]))
    given = parser.parse_args(argv)
    every: list[dict[str, str]] = []
    for name in given.data.split(","):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of 200 steps that did not settle, as in an evaluation
            rows = compared(name)
        every = add_csv(NAME, rows)
        print(summed_up(name, rows), flush=True)
    print(summed_up("all in the results", every))


if __name__ == "__main__":
    main()
