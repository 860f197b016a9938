"""Is the rule that looked best on thirteen tables better than the default on tables that took no part?

`RESERVE` of `public_sets.py`, in its order: 24 configurations a table drawn as in the AEGIS paper, models
trained as in `selection_public.py`. The rule was fixed before: the expected AUC, and what is within one standard error of its best by the default
(`together` of `shape_of_scores.py`). Beside it every chooser of `selection_public.py`, and the losses that ARX
minimises, of each configuration as it is, nothing suppressed.

    AEGIS_RDATASETS=FOLDER AEGIS_FURTHER=FOLDER python experiments/confirmation.py --stores FOLDER [--data NAME,...]

With `--train` it only trains. Tables scored before stay in the results. The results of a later version of
the scores get a suffix: `--suffix _again`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor import Choice, Scorer
from aegis.arx.losses.separable import ATTRIBUTE_LOSSES
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import CodedTable
from aegis.summary import Summary
from common import add_csv, write_json
from public_sets import RESERVE
from selection_public import (
    SCORE,
    UNMASKED,
    calibration,
    choosers,
    judged,
    metrics_of,
    prepared,
    trained,
)
from shape_of_scores import together

NAME = "confirmation"
DEFAULT = "held-out-pillai"
PROXY = "proxy, 2,000 rows"
LEARNERS = ("lr", "gbdt-60", "rf-50")
GROUPS = (LEARNERS, *((model,) for model in (*LEARNERS, "nb")))
"""Models whose mean is told: those that the aims are of, and each alone."""


def losses(
    summary: Summary, rows: CodedTable, choices: Mapping[str, Choice]
) -> dict[str, dict[str, float]]:
    """Return minus ARX's losses by loss and configuration; every attribute forms classes."""
    found: dict[str, dict[str, float]] = {}
    for loss in ("loss", "nu-entropy"):
        per_value = ATTRIBUTE_LOSSES[loss].per_value
        found[loss] = {
            name: -sum(
                float((a.counts * per_value(a, choice[a.name])).sum())
                for a in summary.attributes.values()
            )
            for name, choice in choices.items()
        }
    known = rows.labelled
    for name, choice in choices.items():
        shown = rows.design(choice).codes[known]
        ids = np.unique(shown, axis=0, return_inverse=True)[1].ravel()
        joint = np.zeros((ids.max() + 1, len(rows.classes)))
        np.add.at(joint, (ids, rows.label[known]), 1)
        sizes = joint.sum(axis=1)
        found.setdefault("discernibility", {})[name] = -float((sizes**2).sum())
        found.setdefault("classification", {})[name] = -float((sizes - joint.max(axis=1)).sum())
    return found


def rules(summary: Summary, choices: Mapping[str, Choice]) -> dict[str, dict[str, float]]:
    """Return the scores of the rules that put expected AUC and trace together."""
    scorer = Scorer(summary)
    names = [name for name in choices if name != UNMASKED]
    measure = MEASURES.get(SCORE)
    assert measure.without_folds is not None
    own = [
        np.array([scorer.value(choices[n], MEASURES.get(m)) for n in names])
        for m in (SCORE, DEFAULT)
    ]
    without = [measure.without_folds(scorer.cooccurrence(choices[n], measure.needs)) for n in names]
    both = together(own[0], np.stack(without, axis=1), own[1])
    return {rule: dict(zip(names, scores, strict=True)) for rule, scores in both.items()}


def compared(name: str, stores: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return one row per chooser and model, and one per configuration."""
    summary, rows, choices = prepared(name)
    values = trained(rows, choices, stores / f"store_{name}.jsonl")
    told = choosers(summary, rows, choices)
    said = {**told["scores"], **losses(summary, rows, choices), **rules(summary, choices)}
    counts = np.bincount(rows.label[rows.labelled])
    facts = {"rows": rows.rows, "rarest": counts.min() / counts.sum(), "classes": len(counts)}
    judgements = [{**row, **facts} for row in judged(name, said, values)]
    for row in judgements:
        row["seconds"] = told["seconds"].get(row["chooser"])
    return judgements, calibration(name, said[SCORE], values["lr"])


def by_table(
    rows: list[dict[str, str]], column: str, models: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return the mean over models of a column, by chooser and table; tables without one are left out."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["model"] in models:
            own = found.setdefault(row["chooser"], {}).setdefault(row["data"], [])
            own.append(float(row[column] or 0.0))
    return {
        chooser: {
            n: float(np.mean(values)) for n, values in own.items() if len(values) == len(models)
        }
        for chooser, own in found.items()
    }


def against(
    rows: list[dict[str, str]], models: Sequence[str], reference: str
) -> list[dict[str, Any]]:
    """Return the mean over tables of every chooser, and its gain over a reference with its error.

    Differences are paired: chooser less reference on the same table, means over the same models. The
    error is their standard deviation over tables by the root of the number of tables.
    """
    listed: list[dict[str, Any]] = []
    values = {column: by_table(rows, column, models) for column in ("spearman", "points_lost")}
    for chooser in values["spearman"]:
        entry: dict[str, Any] = {
            "chooser": chooser,
            "models": " ".join(models),
            "reference": reference,
        }
        for column, of in values.items():
            own, other = of[chooser], of[reference]
            both = [name for name in own if name in other]
            gains = np.array([own[name] - other[name] for name in both])
            error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else None
            entry |= {
                "tables": len(gains),
                column: float(np.mean([own[name] for name in both])),
                f"{column}_gain": float(gains.mean()),
                f"{column}_error": error,
                f"{column}_more": int((gains > 1e-12).sum()),
                f"{column}_less": int((gains < -1e-12).sum()),
            }
        listed.append(entry)
    return listed


def main(argv: list[str] | None = None) -> None:
    """Train what is missing; score, compare and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(RESERVE))
    parser.add_argument("--stores", type=Path, required=True, help="folder of trainings")
    parser.add_argument("--train", action="store_true", help="only train")
    parser.add_argument("--suffix", default="", help="of the result files, such as _again")
    given = parser.parse_args(argv)
    for name in given.data.split(","):
        if given.train:
            _summary, rows, choices = prepared(name)
            metrics_of(rows, choices, given.stores / f"store_{name}.jsonl")
        else:
            judgements, pairs = compared(name, given.stores)
            stem = NAME + given.suffix
            add_csv(f"{stem}_calibration", pairs)
            told = add_csv(stem, judgements)
            means = [
                one
                for models in GROUPS
                for reference in (DEFAULT, PROXY)
                for one in against(told, models, reference)
            ]
            write_json(stem, {"means": means})
        print(name, flush=True)


if __name__ == "__main__":
    main()
