"""Define the models that are trained on masked tables, with their settings.

scikit-learn is in the extra `ml`; it is imported only when a model is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from inspect import signature
from typing import Any

from aegis.errors import PolicyError
from aegis.registry import Registry


class Features(StrEnum):
    """How masked values are encoded for a model."""

    ONE_HOT = "one-hot"
    """One 0/1 column per masked value that occurs in the training rows; sparse."""
    ORDINAL = "ordinal"
    """One column per attribute: the rank of the masked value in the order of the values."""
    NUMBERS = "numbers"
    """The number itself for attributes with an order and many values; one-hot for all others."""


@dataclass(frozen=True)
class Model:
    """A model that can be trained on masked tables.

    Attributes
    ----------
    name
        The name on the command line.
    title
        The usual name of the model.
    home
        Module and class of scikit-learn, separated by a colon.
    features
        The encoding of masked values.
    settings
        Parameters that differ from scikit-learn's defaults, without `random_state`.
    seeded
        Whether the model has the parameter `random_state`.
    prefers_dense
        Whether the model gets small one-hot features as a dense array, because trees split dense
        columns several times faster.
    regressor
        The variant that predicts a number; None if the model predicts only classes.
    """

    name: str
    title: str
    home: str
    features: Features = Features.ONE_HOT
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    prefers_dense: bool = False
    regressor: Model | None = None

    def of_number(self) -> Model:
        """Return the variant that predicts a number; raise `PolicyError` if there is none."""
        if self.regressor is None:
            able = [model.name for model in MODELS if model.regressor is not None]
            raise PolicyError(
                f"Model {self.name!r} predicts classes, but the label is a number.",
                hint=f"Allowed: {', '.join(able)}.",
            )
        return replace(self.regressor, name=self.name)

    def make(self, seed: int) -> Any:
        """Return the untrained model; raise `PolicyError` if the extra `ml` is not installed."""
        require_extra()
        module, _, name = self.home.partition(":")
        random = {"random_state": seed} if self.seeded else {}
        return getattr(import_module(module), name)(**self.settings, **random)

    @property
    def takes_weights(self) -> bool:
        """Whether the model accepts row weights in training."""
        return "sample_weight" in signature(self.make(0).fit).parameters

    def identity(self) -> dict[str, Any]:
        """Return the settings that, together with rows and seed, determine the result of a
        training.
        """
        settings = {key: repr(value) for key, value in self.settings.items()}
        return {"home": self.home, "features": str(self.features), "settings": settings}


MODELS: Registry[Model] = Registry("model")
"""All models by name; other packages add models through the entry points `aegis.models`."""

MODELS.register_all(
    Model(
        "lr",
        "Logistic regression",
        "sklearn.linear_model:LogisticRegression",
        settings={"max_iter": 200},
        # The penalty is chosen among some by the training rows alone.
        regressor=Model(
            "lr",
            "Ridge regression",
            "sklearn.linear_model:RidgeCV",
            Features.NUMBERS,
            {"alphas": (0.1, 1.0, 10.0, 100.0, 1000.0)},
            seeded=False,
        ),
    ),
    Model("svm", "Linear support vector machine", "sklearn.svm:LinearSVC"),
    Model(
        "rf",
        "Random forest",
        "sklearn.ensemble:RandomForestClassifier",
        settings={"n_estimators": 100, "n_jobs": 1},
        prefers_dense=True,
        # R's default: with single rows in its leaves a forest learns the noise of a number.
        regressor=Model(
            "rf",
            "Random forest of regression trees",
            "sklearn.ensemble:RandomForestRegressor",
            Features.ORDINAL,
            {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 1 / 3, "n_jobs": 1},
        ),
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
        regressor=Model(
            "gbdt",
            "Gradient boosting of regression trees (histograms)",
            "sklearn.ensemble:HistGradientBoostingRegressor",
            Features.ORDINAL,
            {"early_stopping": False},
        ),
    ),
)


def choose_models(names: Sequence[str]) -> tuple[Model, ...]:
    """Return the models with these names, without duplicates.

    Raises
    ------
    PolicyError
        A name is unknown, no name is given, or the extra `ml` is not installed.
    """
    if not names:
        raise PolicyError("No model was named.", hint=f"Allowed: {', '.join(MODELS.names())}.")
    chosen = tuple(MODELS.get(name) for name in dict.fromkeys(names))
    require_extra()
    return chosen


def require_extra() -> str:
    """Return the version of scikit-learn; raise `PolicyError` if it is not installed."""
    try:
        return str(import_module("sklearn").__version__)
    except ModuleNotFoundError as error:
        raise PolicyError(
            "Training models needs scikit-learn, which is not installed.",
            hint="Install it with: pip install 'aegis-advisor[ml]'.",
        ) from error
