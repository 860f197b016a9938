"""What the shape of scores is worth to the expected AUC, and whether a trace breaks its ties well.

The tables, configurations and trainings of `selection_public.py`. The expected AUC of normal scores
and with the shape of scores that label tables tell, beside what logistic regression reached (on many
splits where `calibration.py` trained them); correlation and points lost, as `selection_public.py` judges
choosers, of both, of the default, and of rules that put the two measures together.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/shape_of_scores.py --stores FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor import Choice, Scorer
from aegis.advisor.confidence import standard_errors
from aegis.measures import MEASURES, Expected, Learner, ModelMetric
from aegis.measures.cooccurrence import Encoding
from aegis.measures.discriminant import out_of_fold
from common import write_csv
from public_sets import CONFIRMATION, FURTHER
from selection_public import UNMASKED, judged, metrics_of, prepared, trained

NAME = "shape_of_scores"
Floats = npt.NDArray[np.float64]


def normal(scorer: Scorer, choice: Choice, what: Expected) -> float:
    """Return the expected AUC of normal scores: of the better encoding, as `Expected` has it."""
    counts = scorer.cooccurrence(choice, MEASURES.get(what.name).needs)
    encodings = (Encoding.NUMBERS,) if what.learners else (Encoding.NUMBERS, Encoding.THRESHOLDS)
    parts = [counts.by_fold(counts.same_as(encoding)) for encoding in encodings]
    return max(0.5, *(float(out_of_fold(own, jointly=False).aucs[0].max()) for own in parts))


def together(area: Floats, without: Floats, trace: Floats) -> dict[str, Floats]:
    """Return what puts an expected AUC, (n,), and a trace, (n,), together; (K, n) without each part."""
    best = area.argmax()
    near = area[best] - area <= standard_errors(without - without[:, [best]])
    ranks = [values.argsort().argsort() for values in (area, trace)]
    scaled = [(values - values.mean()) / values.std() for values in (area, trace)]
    return {
        "trace within a standard error": np.where(near, 1 + area[best] + trace, area),
        "mean of ranks": np.asarray(sum(ranks), dtype=float),
        "mean of scaled scores": np.asarray(sum(scaled)),
    }


def compared(name: str, stores: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return one row per configuration, and one per chooser and model."""
    summary, coded, choices = prepared(name)
    values = trained(coded, choices, stores / f"store_{name}.jsonl")
    many = stores / f"calibration_{name}.jsonl"
    splits: dict[str, list[float]] = values["lr"]
    if many.exists():
        stored = metrics_of(coded, choices, many, ((("lr",), 60),))["lr"]
        splits = {key: [float(s["roc_auc"]) for s in listed] for key, listed in stored.items()}
    scorer = Scorer(summary)
    both = Expected(ModelMetric.AUC), Expected(ModelMetric.AUC, (Learner.LR,))
    rows = [
        {
            "data": name,
            "configuration": key,
            **{f"normal {w.name}": normal(scorer, choice, w) for w in both},
            **{w.name: scorer.value(choice, MEASURES.get(w.name)) for w in both},
            "held-out-pillai": scorer.value(choice, MEASURES.get("held-out-pillai")),
            "trained": float(np.mean(splits[key])),
        }
        for key, choice in choices.items()
    ]
    names = [key for key in choices if key != UNMASKED]
    measure = MEASURES.get(both[0].name)
    assert measure.without_folds is not None
    without = [measure.without_folds(scorer.cooccurrence(choices[n], measure.needs)) for n in names]
    said = {key: {r["configuration"]: r[key] for r in rows} for key in list(rows[0])[2:-1]}
    own = [np.array([said[m][n] for n in names]) for m in (measure.name, "held-out-pillai")]
    rules = together(own[0], np.stack(without, axis=1), own[1])
    said |= {rule: dict(zip(names, scores, strict=True)) for rule, scores in rules.items()}
    return rows, judged(name, said, values)


def main(argv: list[str] | None = None) -> None:
    """Score, compare, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join([*CONFIRMATION, *FURTHER]))
    parser.add_argument("--stores", type=Path, required=True, help="folder of trainings")
    given = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    judgements: list[dict[str, Any]] = []
    for name in given.data.split(","):
        more, judged_here = compared(name, given.stores)
        rows += more
        judgements += judged_here
        write_csv(NAME, rows)
        write_csv(f"{NAME}_choosers", judgements)
        print(name, flush=True)
    for key in list(rows[0])[2:-2]:
        apart = np.abs([row[key] - row["trained"] for row in rows])
        print(key, f"{np.median(apart):.4f} {apart.max():.4f}")
    for chooser in dict.fromkeys(row["chooser"] for row in judgements):
        own = [r for r in judgements if r["chooser"] == chooser and r["model"] != "nb"]
        figures = [float(np.mean([r[c] for r in own])) for c in ("spearman", "points_lost")]
        print(chooser, [round(figure, 3) for figure in figures])


if __name__ == "__main__":
    main()
