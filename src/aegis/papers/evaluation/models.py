"""The models that judge a masked table, with the settings that they are trained with.

scikit-learn is the extra `ml`; it is imported when a model is made, never before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import Any

from aegis.errors import PolicyError
from aegis.registry import Registry


class Features(StrEnum):
    """How a model sees the masked values."""

    ONE_HOT = "one-hot"
    """One 0/1 column per masked value that occurs in the training rows; sparse."""
    ORDINAL = "ordinal"
    """One column per attribute: the rank of the masked value in the order of the values."""


@dataclass(frozen=True)
class Model:
    """One classifier.

    Attributes
    ----------
    name
        As the command line writes it.
    title
        The field's term for it.
    home
        Module and class of scikit-learn, separated by a colon.
    features
        How it sees the masked values.
    settings
        Its parameters where they are not scikit-learn's own; `random_state` is added.
    seeded
        Whether it takes `random_state`.
    prefers_dense
        Whether it is given one-hot features as a dense array where that is small: trees split
        dense columns several times faster.
    """

    name: str
    title: str
    home: str
    features: Features = Features.ONE_HOT
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    prefers_dense: bool = False

    def make(self, seed: int) -> Any:
        """Return an untrained classifier; raise `PolicyError` when the extra is missing."""
        require_extra()
        module, _, name = self.home.partition(":")
        random = {"random_state": seed} if self.seeded else {}
        return getattr(import_module(module), name)(**self.settings, **random)

    def identity(self) -> dict[str, Any]:
        """Return what, besides the rows and the seed, decides what a training gives."""
        settings = {key: repr(value) for key, value in self.settings.items()}
        return {"home": self.home, "features": str(self.features), "settings": settings}


MODELS: Registry[Model] = Registry("model")
"""All models by name; third parties add theirs through the entry points `aegis.models`."""

for _model in (
    Model(
        "lr",
        "Logistic regression",
        "sklearn.linear_model:LogisticRegression",
        settings={"max_iter": 200},
    ),
    Model("svm", "Linear support vector machine", "sklearn.svm:LinearSVC"),
    Model(
        "rf",
        "Random forest",
        "sklearn.ensemble:RandomForestClassifier",
        settings={"n_estimators": 100, "n_jobs": 1},
        prefers_dense=True,
    ),
    Model(
        "sgd",
        "Linear classifier by stochastic gradient descent (hinge loss)",
        "sklearn.linear_model:SGDClassifier",
    ),
    Model("nb", "Naive Bayes (Bernoulli)", "sklearn.naive_bayes:BernoulliNB", seeded=False),
    Model(
        "mlp",
        "Multilayer perceptron (two hidden layers of 100, Adam)",
        "sklearn.neural_network:MLPClassifier",
        settings={"hidden_layer_sizes": (100, 100), "max_iter": 200},
    ),
    Model(
        "gbdt",
        "Gradient boosting (histograms)",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        Features.ORDINAL,
        # Early stopping sets rows aside, and fails on a class with one row.
        settings={"early_stopping": False},
    ),
):
    MODELS.register(_model)


def choose_models(names: Sequence[str]) -> tuple[Model, ...]:
    """Return the models called `names`, each once.

    Raises
    ------
    PolicyError
        A name is unknown, there is none, or the extra `ml` is not installed.
    """
    if not names:
        raise PolicyError("No model was named.", hint=f"Allowed: {', '.join(MODELS.names())}.")
    chosen = tuple(MODELS.get(name) for name in dict.fromkeys(names))
    require_extra()
    return chosen


def require_extra() -> str:
    """Return the version of scikit-learn; raise `PolicyError` when it is not installed."""
    try:
        return str(import_module("sklearn").__version__)
    except ModuleNotFoundError as error:
        raise PolicyError(
            "Training models needs scikit-learn, which is not installed.",
            hint="Install it with: pip install 'aegis-advisor[ml]'.",
        ) from error
