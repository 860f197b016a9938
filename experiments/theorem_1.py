"""The published estimate of the deviation is zero up to rounding, for every configuration.

Adult, 50 configurations of the paper's generator. For each: the true predictive utility deviation
(mean over attributes of |MI of the original - MI of the masked attribute|), the one estimated by
the published procedure before its randomised rounding, and after it. Theorem 1 says that the
second is 0: one deterministic mask holds no information on what it hid.

    python experiments/theorem_1.py [--count 50]
"""

from __future__ import annotations

import argparse

import numpy as np

from aegis.advisor import Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation import Reconstructed
from aegis.papers.evaluation.result import spearman
from aegis.policy import load_policy
from aegis.summary import summarize
from common import ADULT, ROOT, save_chart, write_csv, write_json
from paper_masks import paper_configurations, paper_policy

NAME = "theorem_1"
SETTINGS = {"AEGIS+1D": True, "AEGIS-1D": False}


def information(table: np.ndarray) -> float:
    """Return the mutual information of a table of fractions, in bits."""
    n = table.sum()
    expected = table.sum(axis=1, keepdims=True) @ table.sum(axis=0, keepdims=True) / n
    full = table > 0
    return float((table[full] / n * np.log2(table[full] / expected[full])).sum())


def main(argv: list[str] | None = None) -> None:
    """Compute the three deviations, and write figures and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    count = parser.parse_args(argv).count
    policy = paper_policy(ADULT, load_policy(ROOT / "experiments" / "policies" / "adult.yaml"))
    summary = summarize(ADULT, policy)
    scorer = Scorer(summary)
    measure = MEASURES.get("mi")
    rows = []
    estimators = {name: Reconstructed(histogram=known) for name, known in SETTINGS.items()}
    for number, configuration in enumerate(paper_configurations(summary, count, seed=1)):
        choice = scorer.choose(configuration)
        row = {
            "configuration": configuration.name,
            "true": scorer.score(choice, measure).pud,
        }
        for name, estimator in estimators.items():
            exact = [
                abs(
                    information(estimator.fitted(attribute, choice[attribute.name]))
                    - measure(scorer.contingency(attribute, choice[attribute.name]))
                )
                for attribute in summary.attributes.values()
            ]
            row[f"{name} before rounding"] = float(np.mean(exact))
            rounded = estimator.deviation(scorer, choice, [measure], seed=number)
            row[f"{name} published"] = rounded["mi"]
        rows.append(row)
    write_csv(NAME, rows)
    true = [row["true"] for row in rows]
    facts = {
        key: {
            "largest": max(row[key] for row in rows),
            "spearman_with_true": spearman([row[key] for row in rows], true),
        }
        for key in rows[0]
        if key not in ("configuration", "true")
    }
    write_json(NAME, {"count": count, "largest_true": max(true), "estimates": facts})
    print(max(true), facts)
    draw(rows)


def draw(rows: list[dict]) -> None:
    """Draw estimated against true deviations."""
    import altair

    points = [
        {"true": row["true"], "estimate": key, "value": max(float(value), 1e-12)}
        for row in rows
        for key, value in row.items()
        if key not in ("configuration", "true")
    ]
    chart = (
        altair.Chart(altair.Data(values=points))
        .mark_point(filled=True, opacity=0.7)
        .encode(
            x=altair.X("true:Q", title="True deviation of mutual information, bits"),
            y=altair.Y(
                "value:Q",
                title="Estimated, bits (log; 1e-12 stands for 0)",
                scale=altair.Scale(type="log"),
                axis=altair.Axis(format="e"),
            ),
            color=altair.Color("estimate:N", title=None),
        )
        .properties(width=420, height=280)
    )
    save_chart(NAME, chart)


if __name__ == "__main__":
    main()
