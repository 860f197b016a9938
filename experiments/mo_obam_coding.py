"""Which F1 does MO-OBAM's paper (Wei et al.) report on the original tables, and on which features?

The six classifiers with scikit-learn's own settings on features as plain numbers: categories
numbered, nothing scaled. F1 of either class, mean over splits, beside the published figures.

    python experiments/mo_obam_coding.py [--splits 5]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from common import write_json
from mo_obam import LABEL, PUBLISHED_F1
from records import adult, german


def numbered(table: pa.Table, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features as plain numbers, and the label as 1 for the rarer class."""
    columns = []
    for name in table.column_names:
        if name == label:
            continue
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            values = sorted(column.unique().to_pylist())
            columns.append([values.index(value) for value in column.to_pylist()])
        else:
            columns.append(column.to_pylist())
    values, codes = np.unique(table[label].to_pylist(), return_inverse=True)
    rarer = int(np.argmin(np.bincount(codes, minlength=len(values))))
    return np.array(columns, dtype=np.float64).T, (codes == rarer).astype(int)


def models() -> dict[str, Callable[[int], Any]]:
    """Return the six classifiers by name, made from a seed."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    return {
        "dt": lambda seed: DecisionTreeClassifier(random_state=seed),
        "lr": lambda _: LogisticRegression(),
        "nb": lambda _: GaussianNB(),
        "nn": lambda seed: MLPClassifier(random_state=seed),
        "rf": lambda seed: RandomForestClassifier(random_state=seed),
        "svm": lambda seed: LinearSVC(random_state=seed),
    }


def measure(table: pa.Table, label: str, splits: int) -> dict[str, dict[str, float]]:
    """Return the F1 of both classes by model."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import f1_score
    from sklearn.model_selection import train_test_split

    features, target = numbered(table, label)
    found: dict[str, dict[str, float]] = {}
    for name, make in models().items():
        rarer, commoner, stopped = [], [], 0
        for seed in range(splits):
            train, test, known, truth = train_test_split(
                features, target, test_size=0.3, random_state=seed, stratify=target
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                said = make(seed).fit(train, known).predict(test)
            stopped += any(issubclass(one.category, ConvergenceWarning) for one in caught)
            rarer.append(f1_score(truth, said))
            commoner.append(f1_score(truth, said, pos_label=0))
        found[name] = {
            "rarer": float(np.mean(rarer)),
            "commoner": float(np.mean(commoner)),
            "not_converged": stopped,
        }
        print(name, found[name], flush=True)
    return found


def main(argv: list[str] | None = None) -> None:
    """Train on both tables and write the figures beside the published ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    splits = parser.parse_args(argv).splits
    tables = {"German": german(), "Adult": adult()}
    found = {name: measure(table, LABEL[name], splits) for name, table in tables.items()}
    write_json("mo_obam_coding", {"splits": splits, "published": PUBLISHED_F1, "found": found})


if __name__ == "__main__":
    main()
