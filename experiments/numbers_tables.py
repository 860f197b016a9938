"""Print the tables of docs/experiments.md on numbers to predict, from the results of numbers_to_predict.py,
and the table on new tables, from that of new_tables.py.

    python experiments/numbers_tables.py [FILE]

FILE is `experiments/summaries/numbers_to_predict.csv` if it is not given.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

SUMMARY = Path(__file__).parent / "summaries" / "numbers_to_predict.csv"
NEW = SUMMARY.with_name("new_tables.csv")
NEW_NUMBERS = SUMMARY.with_name("numbers_new_tables.csv")
NEW_MODELS, NEW_SPLITS = ("lr", "gbdt"), 4
Floats = npt.NDArray[np.float64]
Lines = list[dict[str, str]]
MODELS = ("ridge", "boosting", "forest")
LARGEST = 0.02
"""Difference of R2 within which a stated R2 counts as reached."""


def tables(file: Path) -> dict[str, Lines]:
    """Return the lines of the result by table."""
    found: dict[str, Lines] = {}
    with file.open(newline="") as opened:
        for line in csv.DictReader(opened):
            found.setdefault(line["data"], []).append(line)
    return found


def masked_of(file: Path) -> dict[str, Lines]:
    """Return the random configurations of each table that has some."""
    every = {
        name: [line for line in lines if line["configuration"] not in ("0", "released")]
        for name, lines in tables(file).items()
    }
    return {name: lines for name, lines in every.items() if lines}


def figures(lines: Lines, name: str) -> Floats:
    """Return one figure of each configuration."""
    return np.array([float(line[name]) for line in lines])


def of_models(lines: Lines, division: str = "") -> Floats:
    """Return R2 of each model, such as with the division "folds 0", and last their mean, shape (4, N)."""
    own = np.stack([figures(lines, f"{model} {division}".strip()) for model in MODELS])
    return np.vstack([own, own.mean(axis=0)])


def halves(lines: Lines, kind: str) -> tuple[Floats, Floats]:
    """Return R2 of the models under two divisions into folds, or on two halves of the rows."""
    return of_models(lines, f"{kind} 0"), of_models(lines, f"{kind} 1")


def rank(one: Floats, other: Floats) -> float:
    """Return Spearman's rank correlation; 0 if one of both is constant."""
    return float(np.nan_to_num(spearmanr(one, other)[0]))


def stated_table(file: Path = SUMMARY) -> list[str]:
    """Return a row for each table: what is stated and what models reach, unmasked and released."""
    rows = []
    for name, lines in tables(file).items():
        shown = [
            f"{float(line[of]):.3f}"
            for line in lines
            if line["configuration"] in ("0", "released")
            for of in ("stated", *MODELS)
        ]
        shown += ["-"] * (8 - len(shown))
        rows.append(_line([name, f"{int(lines[0]['rows']):,}", *shown]))
    return rows


RANKS: dict[str, Callable[[Lines], list[float]]] = {
    "score": lambda lines: [rank(figures(lines, "stated"), own) for own in of_models(lines)[:3]],
    "score for linear models": lambda lines: [
        rank(figures(lines, "(lr)"), of_models(lines)[MODELS.index("ridge")])
    ],
    "score, mean": lambda lines: [rank(figures(lines, "stated"), of_models(lines)[3])],
    "same model": lambda lines: _agreed(lines, "folds"),
    "other rows": lambda lines: _agreed(lines, "rows"),
    "another model": lambda lines: _crossed(lines),
    "all three": lambda lines: _by_mean(lines),
    "any score": lambda lines: [_highest(of_models(lines)[:3])],
}
"""Rank correlations of a table: of our score, of what trained models say, and the highest possible."""


def rank_table(file: Path = SUMMARY) -> list[str]:
    """Return a row for each table, and the means: how well the score ranks, and trained models would."""
    rows, every = [], []
    for name, lines in masked_of(file).items():
        own = [of(lines) for of in RANKS.values()]
        every.append([float(np.mean(values)) for values in own])
        rows.append(_line([name, *(" / ".join(f"{v:.2f}" for v in of) for of in own)]))
    return [*rows, _line(["**mean**", *(f"{v:.2f}" for v in np.mean(every, axis=0))])]


def _agreed(lines: Lines, kind: str) -> list[float]:
    return [rank(*both) for both in zip(*(own[:3] for own in halves(lines, kind)), strict=True)]


def _crossed(lines: Lines) -> list[float]:
    """Return the mean rank correlation of one model with another, under another division into folds."""
    first, second = halves(lines, "folds")
    return [float(np.mean([rank(first[a], second[b]) for a, b in permutations(range(3), 2)]))]


def _by_mean(lines: Lines) -> list[float]:
    """Return the rank correlation of the mean of the models with each model, under another division."""
    first, second = halves(lines, "folds")
    both = ((first, second), (second, first))
    return [float(np.mean([rank(a[3], b[m]) for a, b in both])) for m in range(3)]


def _highest(models: Floats) -> float:
    """Return a bound of the mean rank correlation that any score of N configurations can have with the
    M models, shape (M, N).

    Pearson's correlation with standardized ranks z_m is a scalar product with a vector of length one. Its
    mean over models is the scalar product with mean(z_m), and is at most the length of mean(z_m), which is
    the square root of the mean of all M x M rank correlations.
    """
    return float(np.sqrt(np.mean([[rank(one, other) for other in models] for one in models])))


def lost_table(file: Path = SUMMARY) -> list[str]:
    """Return a row for each table, and the means: the points of R2 that first choices lose.

    Choosers know one division into folds: the score, the mean of the three models, and each model. The
    best configuration on this division and the first choice are compared by the mean of the three models
    on the other division, so no chooser profits from the luck of a division.
    """
    rows, every = [], []
    for name, lines in masked_of(file).items():
        divisions = halves(lines, "folds")
        lost = []
        for known, tested in (divisions, divisions[::-1]):
            best = tested[3][int(known[3].argmax())]
            said = [figures(lines, "stated"), *known[:3]]
            lost.append([100 * (best - tested[3][int(own.argmax())]) for own in said])
        every.append(np.mean(lost, axis=0))
        rows.append(_line([name, *(f"{v:.2f}" for v in every[-1])]))
    return [*rows, _line(["**mean**", *(f"{v:.2f}" for v in np.mean(every, axis=0))])]


CODINGS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "the better of both codings (default)": np.maximum,
    "the mean of both codings": lambda numbers, thresholds: (numbers + thresholds) / 2,
    "thresholds count twice": lambda numbers, thresholds: (numbers + 2 * thresholds) / 3,
    "numbers alone (`--models lr`)": lambda numbers, _: numbers,
    "thresholds alone (`--models gbdt`)": lambda _, thresholds: thresholds,
}
"""Scores by which a configuration is chosen, from the R2 of numbers and that of thresholds."""


def codings_table(file: Path = SUMMARY, new: Path = NEW_NUMBERS) -> list[str]:
    """Return a row for each score and set of tables: the points of R2 that its first choices lose.

    The last row shows what first choices of the mean of the models lose on other rows than they know.
    """
    rows = []
    for score, of in CODINGS.items():
        for which, every in (("earlier", masked_of(file)), ("new", masked_of(new))):
            lost = [
                _lost_by_model(
                    lines, int(of(figures(lines, "(lr)"), figures(lines, "(gbdt)")).argmax())
                )
                for lines in every.values()
            ]
            rows.append(_line([score, f"{len(lost)} {which}", *_with_error(lost)]))
    elsewhere = [_lost_elsewhere(lines) for lines in masked_of(file).values()]
    shown = [*_with_error(elsewhere), "-", "-", "-", "-"]
    return [*rows, _line(["the models, on half of the rows", f"{len(elsewhere)} earlier", *shown])]


def _with_error(lost: Sequence[Sequence[float]]) -> list[str]:
    """Return the means over tables as text, the first one with its standard error."""
    mean, error = np.mean(lost, axis=0), np.std(lost, axis=0, ddof=1) / len(lost) ** 0.5
    return [f"{mean[0]:.2f} ({error[0]:.2f})", *(f"{v:.2f}" for v in mean[1:])]


def _lost_by_model(lines: Lines, first: int) -> list[float]:
    """Return the points of R2 that a first choice loses: by the mean of the models, by each, by the best.

    An R2 below 0 counts as 0. The first choice is compared with that of the mean of the models, and last
    with that of the best model. As in `lost_table`, these know the other division into folds.
    """
    lost = []
    both = [np.maximum(own[:3], 0) for own in halves(lines, "folds")]
    for known, tested in (both, both[::-1]):
        away = tested[:, int(known.mean(axis=0).argmax())] - tested[:, first]
        best = tested.max(axis=0)
        lost.append([away.mean(), *away, best[int(known.max(axis=0).argmax())] - best[first]])
    return [float(v) for v in 100 * np.mean(lost, axis=0)]


def _lost_elsewhere(lines: Lines) -> list[float]:
    """Return the points of R2 between the best configuration on one half of the rows, and the first choice
    of the models that are trained on the other half.
    """
    both = [own[3] for own in halves(lines, "rows")]
    pairs = (both, both[::-1])
    return [float(np.mean([100 * (b.max() - b[int(a.argmax())]) for a, b in pairs]))]


def apart(file: Path = SUMMARY) -> list[str]:
    """Return sentences on how far stated figures are from trained ones."""
    found = []
    for kind in ("0", "released"):
        own = [
            line
            for lines in tables(file).values()
            for line in lines
            if line["configuration"] == kind
        ]
        reached = of_models(own)[:3]
        best = figures(own, "stated") - reached.max(axis=0)
        pairs = {"best model": best, "ridge": figures(own, "stated") - reached[0]}
        if kind == "0":
            pairs["ridge, by the score for linear models"] = figures(own, "(lr)") - reached[0]
        for model, away in pairs.items():
            found.append(
                f"{kind}, {len(own)} tables, stated less {model}: median {np.median(away):.3f}, median size"
                f" {np.median(np.abs(away)):.3f}, from {away.min():.3f} to {away.max():.3f}, within {LARGEST}:"
                f" {int((np.abs(away) <= LARGEST).sum())}"
            )
    return found


def misplaced(file: Path = SUMMARY) -> list[str]:
    """Return a row for each table: the configuration whose place by the score is most wrong, and its places."""
    rows = []
    for name, lines in masked_of(file).items():
        scores = (figures(lines, "stated"), *of_models(lines))
        places = [(-own).argsort(kind="stable").argsort() + 1 for own in scores]
        worst = int(np.abs(places[0] - places[-1]).argmax())
        shown = [str(own[worst]) for own in places[:4]]
        rows.append(_line([name, lines[worst]["configuration"], *shown]))
    return rows


def new_table(file: Path = NEW) -> list[str]:
    """Return a row for each table, and the means: what is stated, what models reach, and how it ranks."""
    rows, every = [], []
    for name, lines in tables(file).items():
        masked = [line for line in lines if line["configuration"] != "unmasked"]
        unmasked = [line for line in lines if line["configuration"] == "unmasked"]
        stated, *reached = (figures(unmasked, of).mean() for of in ("stated", *NEW_MODELS))
        own = [*ranked(masked), *covered(lines)]
        every.append([*own, abs(stated - max(reached))])
        shown_aucs = [f"{auc:.3f}" for auc in (stated, *reached)]
        rows.append(
            [
                name,
                f"{int(lines[0]['rows']):,}",
                *shown_aucs,
                str(len(masked) // NEW_SPLITS),
                *_said(own),
            ]
        )
    *own, away = np.mean(every, axis=0)
    rows.append(["**mean**", "", f"off by {away:.3f}", "", "", "", *_said(own)])
    return [_line(row) for row in rows]


def _said(own: Sequence[float]) -> list[str]:
    score, halves, lost, one, two = own
    return [f"{score:.2f}", f"{halves:.2f}", f"{lost:.2f}", f"{one:.0%}", f"{two:.0%}"]


def ranked(masked: Lines) -> tuple[float, float, float]:
    """Return how the score ranks configurations, how two of the splits do, and the points that are lost.

    Choosers know two splits. Their first choices are compared by the mean AUC of both models on the other
    two splits, so no chooser profits from the luck of a split.
    """
    stated = figures(masked, "stated").reshape(NEW_SPLITS, -1)
    reached = np.mean([figures(masked, model) for model in NEW_MODELS], axis=0).reshape(
        NEW_SPLITS, -1
    )
    half = NEW_SPLITS // 2
    pairs = [(slice(half), slice(half, NEW_SPLITS)), (slice(half, NEW_SPLITS), slice(half))]
    halves = [reached[own].mean(axis=0) for own, _ in pairs]
    lost = []
    for known, tested in pairs:
        auc = reached[tested].mean(axis=0)
        best, first = (of[known].mean(axis=0).argmax() for of in (reached, stated))
        lost.append(100 * (auc[best] - auc[first]))
    return rank(stated.mean(axis=0), reached.mean(axis=0)), rank(*halves), float(np.mean(lost))


def covered(lines: Lines) -> tuple[float, float]:
    """Return in which share of the configurations and splits the better model is within one and two errors."""
    best = np.max([figures(lines, model) for model in NEW_MODELS], axis=0)
    away = np.abs(best - figures(lines, "stated")) / figures(lines, "error")
    return float((away <= 1).mean()), float((away <= 2).mean())


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main(argv: list[str] | None = None) -> None:
    """Print all tables."""
    names = sys.argv[1:] if argv is None else argv
    file = Path(names[0]) if names else SUMMARY
    for table in (stated_table, rank_table, lost_table, misplaced, apart):
        print("\n".join(table(file)), end="\n\n")
    print("\n".join(codings_table(file)), end="\n\n")
    print("\n".join(new_table()))


if __name__ == "__main__":
    main()
