"""The request for an evaluation: configurations, models, and options of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.options import documented, keyword, option

if TYPE_CHECKING:
    from aegis.anonymizers import Recipe
    from aegis.requests import Configurations

CLASS_MODELS = ("lr", "svm", "rf", "sgd", "nb", "mlp", "gbdt")
"""Models that are trained by default if the label has classes."""
NUMBER_MODELS = ("lr", "rf", "gbdt")
"""Models that are trained by default if the label is a number."""


@documented
@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """Options of an evaluation: the models to train on masked tables, the splits into training and
    test rows, and the estimators from the literature to compare with.
    """

    configurations: Configurations | None = keyword(None, "Configurations, as in `aegis.advise`.")
    generate_count: int | None = keyword(None, "Random configurations, as in `aegis.advise`.")
    models: Sequence[str] | None = option(
        None,
        "Models to train: lr (logistic regression), svm (linear), rf (random forest), sgd, nb "
        "(naive Bayes), mlp, gbdt (gradient boosting). For a numeric label: lr (ridge regression), rf "
        "and gbdt. By default: all.",
        "A,B,...",
        kind=str | None,
    )
    metric: str | None = option(
        None,
        "Metric of the trained models: accuracy (the default), roc_auc, log_loss or f1. For a numeric "
        "label: r2 (the default), rmse or mae.",
        "NAME",
    )
    splits: int = option(
        1,
        "How often to split the rows into training and test rows. Results are means over the splits.",
        "N",
    )
    test_share: float = option(0.3, "Share of the rows to test on.", "SHARE")
    unmasked: bool = keyword(True, "Whether to train also on the unmasked table.")
    comparators: Sequence[str] | None = keyword(
        None,
        "Names of estimators from the literature to compare in addition to the measures; by default "
        "all.",
    )
    methods: Sequence[str | Recipe] | None = keyword(
        None,
        "Record-level methods whose releases are also used for training: names of registered "
        "anonymizers, or recipes; by default those of the policy. Rows that a method leaves out are "
        "not used.",
    )
    seed: int = keyword(
        0, "Seed of the generator, the splits, the models, the comparators and the methods."
    )
    store: str | Path | None = option(
        None,
        "Save results in this file (JSON lines). A later run does not train these models again.",
        "FILE",
        kind=Path | None,
    )
    jobs: int = option(1, "How many models to train at the same time.", "N", short="-j")
