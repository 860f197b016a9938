"""Train a model on a masked table, and test it."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.measures import LabelKind
from aegis.papers.evaluation.coding import Design
from aegis.papers.evaluation.metrics import METRICS, NumberPrediction, Prediction
from aegis.papers.evaluation.models import Features, Model, require_extra
from aegis.papers.evaluation.splits import Rows

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
        The weight of each row in effective rows, shape (n,); None if each row counts once.
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
        """Return the keyword arguments that pass the weights of the training rows to a model; empty
        without weights.
        """
        own = self.weights_of(self.train)
        return {} if own is None else {"sample_weight": own}


def train(task: Task) -> Training:
    """Train and test a model on one thread; return metrics, convergence and warnings."""
    started, converged = time.perf_counter(), True
    prediction: Prediction | NumberPrediction
    if task.response is None:
        scored = fit(task)
        prediction, converged, messages = (
            scored.predict(task.test),
            scored.converged,
            scored.messages,
        )
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
    """Train a regression model on the numeric label `response`; return the predictions for the n
    test rows, shape (n,), and the warnings.
    """
    own = task.design.linear if task.model.features is Features.NUMBERS else task.design.ordinal
    model = task.model.make(task.seed)
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(own(task.train), response[task.train], **task.weighing())
        predicted = np.asarray(model.predict(own(task.test)), dtype=np.float64)
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
    """A trained classifier, with the columns on which it was trained.

    Attributes
    ----------
    task
        The task of the training.
    classifier
        The trained model; None if the training rows have only one class. Then this class is the
        prediction for every row.
    columns
        Indicator columns that occur in the training rows, for one-hot features.
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
            given = _scores(self.classifier, features, probabilistic)
        missing = 0.0 if probabilistic else -np.inf
        scores = np.full((len(rows), task.classes), missing)
        scores[:, self.classifier.classes_] = given
        return Prediction(truth, scores, probabilistic, positive, weights)


def one_thread() -> AbstractContextManager[Any]:
    """Return a context that limits BLAS and OpenMP to one thread.

    On a busy machine, threads that wait for each other waste time.
    """
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def fit(task: Task) -> Fitted:
    """Train a classifier on the training rows of a task."""
    label = task.label[task.train]
    if len(np.unique(label)) < 2:
        only = "the training rows hold one class only, which is predicted always"
        return Fitted(task, None, None, messages=(only,))
    columns = None
    if task.model.features is Features.ONE_HOT:
        seen = task.design.one_hot(task.train).sum(axis=0)
        columns = np.flatnonzero(np.asarray(seen).ravel())
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
    """Return a score of each of n rows for each class of the training rows, shape (n, classes): the
    probability if `probabilistic`, else the margin.
    """
    if probabilistic:
        return np.asarray(classifier.predict_proba(features), dtype=np.float64)
    margin = np.asarray(classifier.decision_function(features), dtype=np.float64)
    return np.stack([-margin, margin], axis=1) if margin.ndim == 1 else margin
