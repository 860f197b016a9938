"""Train and test models on masked tables: the models with their settings, the splits, and a store
of finished trainings, with which an evaluation continues after it was killed.

Splits are stratified, and the same for each configuration. scikit-learn is in the extra `ml`; it is
imported only when a model is made.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from aegis.arrays import Floats, Ints
from aegis.blas import release_control
from aegis.errors import DataError, PolicyError
from aegis.measures import LabelKind
from aegis.papers.evaluation.coding import Design
from aegis.papers.evaluation.metrics import METRICS, NumberPrediction, Prediction
from aegis.registry import Registry
from aegis.words import json_fields


class Features(StrEnum):
    """How masked values are encoded as features of a model: as indicators, ranks or numbers."""

    ONE_HOT = "one-hot"
    """One 0/1 column per masked value that occurs in the training rows; sparse."""
    ORDINAL = "ordinal"
    """One column per attribute: the rank of the masked value in the order of the values."""
    NUMBERS = "numbers, also of ranges"
    """The number itself for attributes with an order, the mean of a range; one-hot for all others."""


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
        Module and class in scikit-learn, separated by a colon.
    features
        The encoding of masked values.
    settings
        Parameters that differ from scikit-learn's defaults, without `random_state`.
    seeded
        Whether the model has the parameter `random_state`.
    prefers_dense
        Whether the model gets one-hot features as a dense array if they are small.
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
        """Return the model's settings that influence the result of a training, as JSON values."""
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


Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """A split of the labelled rows into training and test rows.

    Attributes
    ----------
    number
        Number of the split, from 0.
    train, test
        Row numbers, ascending. Each labelled row is in exactly one of them.
    """

    number: int
    train: Rows
    test: Rows


def check_splits(count: int, test_share: float) -> None:
    """Raise `PolicyError` if the number of splits or the share of test rows is out of range."""
    if count < 1:
        raise PolicyError(f"{count} splits were asked for.", hint="Ask for at least 1.")
    if not 0 < test_share < 1:
        raise PolicyError(
            f"The share of test rows is {test_share}.",
            hint="Give a share above 0 and below 1, such as 0.3.",
        )


def make_splits(
    label: Ints, *, count: int, test_share: float, seed: int, persons: Ints | None = None
) -> tuple[Split, ...]:
    """Split the labelled rows `count` times into training and test rows, each class in the same
    proportion.

    For each class, floor(test_share * rows + 1/2) rows are test rows, but at least one row is a
    training row. So a class with one row is never tested. With `persons`, persons are split in this
    way instead of rows. The class of a person is the class of the person's first labelled row.

    Parameters
    ----------
    label
        Class of each row, shape (n,); rows with -1 are in no split.
    count
        Number of splits, at least 1.
    test_share
        Share of the rows to test on, above 0 and below 1.
    seed
        Seed of the splits. With a larger `count`, the first splits stay the same.
    persons
        The person of each row, shape (n,); None means that each row is a different person.

    Raises
    ------
    PolicyError
        A parameter is out of range.
    DataError
        There is no row to test on.
    """
    check_splits(count, test_share)
    if persons is None:
        splits = tuple(_split(number, _members(label), test_share, seed) for number in range(count))
    else:
        labelled = np.flatnonzero(label >= 0)
        _, first, person = np.unique(persons[labelled], return_index=True, return_inverse=True)
        members = _members(label[labelled][first])
        divided = (_split(number, members, test_share, seed) for number in range(count))
        splits = tuple(_of_rows(split, labelled, person) for split in divided)
    if not len(splits[0].test):
        raise DataError(
            f"No row is left to test on: {int((label >= 0).sum())} labelled rows at a test share "
            f"of {test_share:g}.",
            hint="Give more rows or a larger share of test rows.",
        )
    return splits


def _members(label: Ints) -> list[Rows]:
    return [np.flatnonzero(label == c) for c in range(int(label.max(initial=-1)) + 1)]


def _of_rows(split: Split, labelled: Rows, person: Rows) -> Split:
    """Turn a split of persons into one of rows."""
    tested = np.isin(person, split.test)
    return Split(split.number, labelled[~tested], labelled[tested])


def _split(number: int, members: list[Rows], test_share: float, seed: int) -> Split:
    random = np.random.default_rng([seed, number])
    train, test = [], []
    for rows in members:
        shuffled = random.permutation(rows)
        tested = min(int(np.floor(test_share * len(rows) + 0.5)), len(rows) - 1)
        test.append(shuffled[: max(tested, 0)])
        train.append(shuffled[max(tested, 0) :])
    return Split(number, np.sort(np.concatenate(train)), np.sort(np.concatenate(test)))


def rare_classes(splits: tuple[Split, ...], label: Ints) -> Rows:
    """Return the classes with a single training row in some split."""
    classes = int(label.max(initial=-1)) + 1
    counts = np.array([np.bincount(label[s.train], minlength=classes) for s in splits])
    return np.flatnonzero((counts == 1).any(axis=0))


DENSE_CELLS = 1 << 26
"""Most cells of a dense one-hot table; a cell has four bytes."""


@dataclass(frozen=True)
class Training:
    """The result of one model on one configuration and one split.

    Attributes
    ----------
    configuration, model, split
        Names of configuration and model, and number of the split, from 0.
    metrics
        The value of each metric, by name; None if the metric is not defined, such as the log loss
        of a model without probabilities.
    converged
        Whether the solver reported convergence. Results without convergence are kept, too.
    messages
        First lines of the warnings of the training.
    seconds
        Time of training and testing.
    """

    configuration: str
    model: str
    split: int
    metrics: Mapping[str, float | None]
    converged: bool = True
    messages: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Task:
    """A training to run, with everything that determines the result.

    Attributes
    ----------
    configuration
        The configuration's name.
    design
        The masked features of all rows.
    label
        Class of each row, shape (n,).
    classes
        Number of classes C.
    model
        The model to train.
    split
        Number of the split.
    train, test
        Numbers of the training rows and of the test rows.
    seed
        Seed of the model.
    response
        The numeric label of each row, shape (n,); None if classes are predicted.
    weights
        The weight of each row, shape (n,), scaled so that the sum is (sum of weights)^2 / (sum of
        squared weights). None if each row counts once.
    """

    configuration: str
    design: Design
    label: Ints
    classes: int
    model: Model
    split: int
    train: Rows
    test: Rows
    seed: int
    response: Floats | None = None
    weights: Floats | None = None
    _key: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """SHA-256 of everything that determines the result; equal keys mean equal results."""
        if "key" not in self._key:
            sha = hashlib.sha256(self.design.digest.encode())
            for rows in (self.label, self.train, self.test):
                sha.update(np.ascontiguousarray(rows, dtype=np.int64).tobytes())
                sha.update(b"|")
            if self.response is not None:
                sha.update(np.ascontiguousarray(self.response).tobytes())
                sha.update(repr(self.design.numbers).encode())
            if self.weights is not None:
                sha.update(b"weights" + np.ascontiguousarray(self.weights).tobytes())
            facts = [self.model.identity(), self.seed, self.classes, require_extra()]
            sha.update(json.dumps(facts, sort_keys=True).encode())
            self._key["key"] = sha.hexdigest()
        return self._key["key"]

    def weights_of(self, rows: Rows) -> Floats | None:
        """Return the weights of the rows with the indices `rows`; None if each row counts once."""
        return None if self.weights is None else self.weights[rows]

    def weighing(self) -> dict[str, Floats]:
        """Return the weights of the training rows as keyword arguments of `fit`, if any."""
        weights = self.weights_of(self.train)
        return {} if weights is None else {"sample_weight": weights}


def train(task: Task) -> Training:
    """Train and test a model on one thread. Return its metrics, with convergence and warnings."""
    started, converged = time.perf_counter(), True
    prediction: Prediction | NumberPrediction
    if task.response is None:
        scored = fit(task)
        prediction = scored.predict(task.test)
        converged, messages = scored.converged, scored.messages
    else:
        predicted, messages = predict_number(task, task.response)
        truth, weights = task.response[task.test], task.weights_of(task.test)
        prediction = NumberPrediction(truth, predicted, weights)
    return Training(
        task.configuration,
        task.model.name,
        task.split,
        measure(prediction),
        converged,
        messages,
        time.perf_counter() - started,
    )


def predict_number(task: Task, response: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Train the regressor; return its predictions for the test rows, shape (n,), and warnings."""
    design = task.design
    features_of = design.linear if task.model.features is Features.NUMBERS else design.ordinal
    model = task.model.make(task.seed)
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(features_of(task.train), response[task.train], **task.weighing())
        predicted = np.asarray(model.predict(features_of(task.test)), dtype=np.float64)
    messages = tuple(dict.fromkeys(str(w.message).strip().splitlines()[0] for w in caught))
    return predicted, messages


def measure(prediction: Prediction | NumberPrediction) -> dict[str, float | None]:
    """Compute all metrics that fit the prediction, by name; None for a metric that is not defined."""
    is_number = isinstance(prediction, NumberPrediction)
    kind = LabelKind.NUMBER if is_number else LabelKind.CLASSES
    values = {
        metric.name: cast(Callable[[Any], float], metric.compute)(prediction)
        for metric in METRICS
        if metric.label is kind
    }
    return {name: value if np.isfinite(value) else None for name, value in values.items()}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained classifier.

    Attributes
    ----------
    task
        The task of the training.
    classifier
        The trained model; None if the training rows have only one class, which is then predicted
        for every row.
    columns
        For one-hot features, the columns that occur in the training rows.
    converged, messages
        Whether the solver reported convergence, and the first lines of its warnings.
    """

    task: Task
    classifier: Any
    columns: Ints | None
    converged: bool = True
    messages: tuple[str, ...] = ()

    def predict(self, rows: Rows) -> Prediction:
        """Return the classifier's predictions for the rows with the indices `rows`."""
        task = self.task
        truth, weights = task.label[rows], task.weights_of(rows)
        counts = np.bincount(task.label[task.label >= 0], minlength=task.classes)
        positive = 0 if counts[0] < counts[-1] else task.classes - 1
        if self.classifier is None:
            scores = np.zeros((len(rows), task.classes))
            scores[:, task.label[task.train[0]]] = 1.0
            return Prediction(truth, scores, True, positive, weights)
        features = _features(task, rows, self.columns)
        probabilistic = hasattr(self.classifier, "predict_proba")
        if not len(rows):
            return Prediction(truth, np.zeros((0, task.classes)), probabilistic, positive, weights)
        with one_thread():
            class_scores = _scores(self.classifier, features, probabilistic)
        missing = 0.0 if probabilistic else -np.inf
        scores = np.full((len(rows), task.classes), missing)
        scores[:, self.classifier.classes_] = class_scores
        return Prediction(truth, scores, probabilistic, positive, weights)


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which the libraries BLAS and OpenMP use only one thread."""
    import threadpoolctl  # noqa: F401 - before the modules are counted

    release_control()
    limits: AbstractContextManager[Any] = _threaded(len(sys.modules)).limit(limits=1)
    return limits


@lru_cache(maxsize=1)
def _threaded(_modules: int) -> Any:
    """Return the BLAS and OpenMP libraries, searched again only if modules were loaded."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def fit(task: Task) -> Fitted:
    """Train a classifier on the training rows of a task."""
    label = task.label[task.train]
    if len(np.unique(label)) < 2:
        only = "the training rows hold one class only, which is predicted always"
        return Fitted(task, None, None, messages=(only,))
    columns = None
    if task.model.features is Features.ONE_HOT:
        column_sums = task.design.one_hot(task.train).sum(axis=0)
        columns = np.flatnonzero(np.asarray(column_sums).ravel())
    classifier = task.model.make(task.seed)
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier.fit(_features(task, task.train, columns), label, **task.weighing())
    messages = tuple(dict.fromkeys(str(w.message).strip().splitlines()[0] for w in caught))
    diverged = any(w.category.__name__ == "ConvergenceWarning" for w in caught)
    return Fitted(task, classifier, columns, not diverged, messages)


def _features(task: Task, rows: Rows, columns: Ints | None) -> Any:
    if columns is None:
        return task.design.ordinal(rows)
    features = task.design.one_hot(rows)[:, columns]
    if task.model.prefers_dense and len(task.label) * len(columns) <= DENSE_CELLS:
        return features.toarray()
    return features


def _scores(classifier: Any, features: Any, probabilistic: bool) -> Floats:
    """Return probabilities, or margins, of test rows for trained classes, shape (n, classes)."""
    if probabilistic:
        return np.asarray(classifier.predict_proba(features), dtype=np.float64)
    margin = np.asarray(classifier.decision_function(features), dtype=np.float64)
    return np.stack([-margin, margin], axis=1) if margin.ndim == 1 else margin


class Store:
    """A file of finished trainings, with one JSON object per line.

    A result is found by a hash of everything that determines it: the masked rows, the label, the
    split, the model with its settings and seed, and the version of scikit-learn. So you can use one
    file for many evaluations.

    Parameters
    ----------
    path
        The file, which is created when the first training is done; None keeps results in memory.

    Raises
    ------
    DataError
        The file cannot be read or written, or is not a file of trainings. An incomplete last line,
        as a killed process leaves it, is dropped without an error.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else Path(path)
        self._records: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] | None = None
        if self._path is not None and self._path.exists():
            self._read(self._path)

    def get(self, task: Task) -> Training | None:
        """Return the finished training of a task; None if it is not in the store."""
        training = self._records.get(task.key)
        if training is None:
            return None
        return Training(
            task.configuration,
            task.model.name,
            task.split,
            training["metrics"],
            training["converged"],
            tuple(training["messages"]),
            training["seconds"],
        )

    def add(self, key: str, training: Training) -> None:
        """Keep a finished training under its task's `key`, and write it immediately."""
        record = {"key": key, **json_fields(training)}
        self._records[key] = record
        if self._path is None:
            return
        try:
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            self._file.write(json.dumps(record).encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError as error:
            raise DataError(
                f"Cannot write {self._path}: {error.strerror or error}.",
                hint="Check its folder, space and permissions.",
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(
                f"Cannot read {path}: {error.strerror or error}.", hint="Check the path."
            ) from error
        complete_lines = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete_lines.splitlines(), start=1):
            record = _record(line)
            if record is None:
                raise DataError(
                    f"Line {number} of {path} is not a finished training.",
                    hint="Give the store of an earlier evaluation, or a new file name.",
                )
            self._records[record["key"]] = record
        if len(complete_lines) < len(content):
            if not self._records and not content.startswith(b'{"key"'):
                raise DataError(
                    f"{path} is not a store of finished trainings.",
                    hint="Give the store of an earlier evaluation, or a new file name.",
                )
            with path.open("rb+") as file:
                file.truncate(len(complete_lines))


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    fields = {"key", "metrics", "converged", "messages", "seconds"}
    return record if isinstance(record, dict) and fields <= set(record) else None
