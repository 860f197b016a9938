"""SAMPLING with the label of the masked row, and with that of the sampled original record.

Spearman's correlation of the estimated with the true deviation over 50 configurations of the AEGIS
paper's generator, on Adult: what changes when labels come with the sampled records, as its section
5.1.6 says.

    python experiments/sampling_labels.py [--count 50]
"""

from __future__ import annotations

import argparse

from scipy.stats import spearmanr

from aegis import summarize
from aegis.advisor import Scorer
from aegis.measures import MEASURES
from aegis.papers.evaluation import Reconstructed
from aegis.policy import load_policy
from common import ADULT, ROOT, write_csv
from paper_masks import paper_configurations, paper_policy

ESTIMATORS = {
    "sampling": Reconstructed(histogram=False, sampled=True),
    "sampling-records": Reconstructed(histogram=False, sampled=True, records=True),
}


def main(argv: list[str] | None = None) -> None:
    """Estimate, correlate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    count = parser.parse_args(argv).count
    policy = paper_policy(ADULT, load_policy(ROOT / "experiments" / "policies" / "adult.yaml"))
    summary = summarize(ADULT, policy)
    scorer = Scorer(summary)
    choices = [scorer.choose(one) for one in paper_configurations(summary, count, seed=1)]
    rows = []
    for name in ("mi", "chi2", "g3"):
        measure = MEASURES.get(name)
        true = [scorer.score(choice, measure).pud for choice in choices]
        for label, estimator in ESTIMATORS.items():
            told = [
                estimator.deviation(scorer, choice, [measure], seed=number)[name]
                for number, choice in enumerate(choices)
            ]
            rows.append(
                {
                    "measure": name,
                    "estimator": label,
                    "spearman_with_true": float(spearmanr(told, true).statistic),
                    "mean_error": sum(abs(a - b) for a, b in zip(told, true, strict=True)) / count,
                }
            )
            print(rows[-1])
    write_csv("sampling_labels", rows)


if __name__ == "__main__":
    main()
