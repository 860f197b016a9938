"""Train one model on one masked table and test it."""

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
import numpy.typing as npt

from aegis.measures import LabelKind
from aegis.papers.evaluation.coding import Design
from aegis.papers.evaluation.metrics import METRICS, NumberPrediction, Prediction
from aegis.papers.evaluation.models import Features, Model, require_extra
from aegis.papers.evaluation.splits import Rows

Floats = npt.NDArray[np.float64]
DENSE_CELLS = 1 << 26
"""Largest dense one-hot table, in cells of four bytes."""


@dataclass(frozen=True)
class Training:
    """The metrics of one model on one configuration and one split.

    Attributes
    ----------
    configuration, model, split
        What was trained on what; splits are counted from 0.
    metrics
        Figure of merit by name; None if it is not defined, such as the log loss of a model
        without probabilities.
    converged
        Whether the solver reported convergence. What did not converge is kept and counted.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "configuration": self.configuration,
            "model": self.model,
            "split": self.split,
            "metrics": dict(self.metrics),
            "converged": self.converged,
            "messages": list(self.messages),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, eq=False)
class Task:
    """One training, with everything that determines its result, so that it can run in any process.

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
        What to train.
    split
        Number of the split.
    train, test
        Row numbers.
    seed
        Seed of the model.
    response
        The number to predict of each row, shape (n,); None where classes are predicted.
    """

    configuration: str
    design: Design
    label: npt.NDArray[np.int64]
    classes: int
    model: Model
    split: int
    train: Rows
    test: Rows
    seed: int
    response: Floats | None = None
    _key: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """SHA-256 of everything that decides the result; equal keys, equal results."""
        if "key" not in self._key:
            sha = hashlib.sha256(self.design.digest.encode())
            for rows in (self.label, self.train, self.test):
                sha.update(np.ascontiguousarray(rows, dtype=np.int64).tobytes())
                sha.update(b"|")
            if self.response is not None:
                sha.update(np.ascontiguousarray(self.response).tobytes())
                sha.update(repr(self.design.numbers).encode())
            facts = [self.model.identity(), self.seed, self.classes, require_extra()]
            sha.update(json.dumps(facts, sort_keys=True).encode())
            self._key["key"] = sha.hexdigest()
        return self._key["key"]


def train(task: Task) -> Training:
    """Train and test one model, on one thread; a solver that does not converge is reported."""
    started = time.perf_counter()
    if task.response is not None:
        predicted, messages = predict_number(task, task.response)
        metrics = measure(NumberPrediction(task.response[task.test], predicted))
        seconds = time.perf_counter() - started
        return Training(
            task.configuration, task.model.name, task.split, metrics, True, messages, seconds
        )
    scored = fit(task)
    prediction = scored.predict(task.test)
    return Training(
        task.configuration,
        task.model.name,
        task.split,
        measure(prediction),
        scored.converged,
        scored.messages,
        time.perf_counter() - started,
    )


def predict_number(task: Task, response: Floats) -> tuple[Floats, tuple[str, ...]]:
    """Return the model's predictions for the test rows, shape (n,), and its warnings."""
    own = task.design.linear if task.model.features is Features.NUMBERS else task.design.ordinal
    model = task.model.make(task.seed)
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(own(task.train), response[task.train])
        predicted = np.asarray(model.predict(own(task.test)), dtype=np.float64)
    messages = tuple(dict.fromkeys(str(w.message).strip().splitlines()[0] for w in caught))
    return predicted, messages


def measure(prediction: Prediction | NumberPrediction) -> dict[str, float | None]:
    """Return every metric by name; None if it is not defined."""
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
    """A trained classifier with the columns that it was trained on.

    Attributes
    ----------
    task
        What it was trained on.
    classifier
        The trained model; None when the training rows hold one class only, which is then
        predicted always.
    columns
        Indicator columns that occur in the training rows, for one-hot features.
    converged, messages
        As in `Training`.
    """

    task: Task
    classifier: Any
    columns: npt.NDArray[np.int64] | None
    converged: bool = True
    messages: tuple[str, ...] = ()

    def predict(self, rows: Rows) -> Prediction:
        """Return the classifier's predictions for `rows`."""
        task = self.task
        truth = task.label[rows]
        counts = np.bincount(task.label[task.label >= 0], minlength=task.classes)
        positive = 0 if counts[0] < counts[-1] else task.classes - 1
        if self.classifier is None:
            scores = np.zeros((len(rows), task.classes))
            scores[:, task.label[task.train[0]]] = 1.0
            return Prediction(truth, scores, True, positive)
        features = _features(task, rows, self.columns)
        probabilistic = hasattr(self.classifier, "predict_proba")
        if not len(rows):
            return Prediction(truth, np.zeros((0, task.classes)), probabilistic, positive)
        with one_thread():
            given = _scores(self.classifier, features, probabilistic)
        missing = 0.0 if probabilistic else -np.inf
        scores = np.full((len(rows), task.classes), missing)
        scores[:, self.classifier.classes_] = given
        return Prediction(truth, scores, probabilistic, positive)


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread: waiting threads waste a busy machine."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


def fit(task: Task) -> Fitted:
    """Train one model; see `Fitted`."""
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
        classifier.fit(_features(task, task.train, columns), label)
    messages = tuple(dict.fromkeys(str(w.message).strip().splitlines()[0] for w in caught))
    diverged = any(w.category.__name__ == "ConvergenceWarning" for w in caught)
    return Fitted(task, classifier, columns, not diverged, messages)


def _features(task: Task, rows: Rows, columns: npt.NDArray[np.int64] | None) -> Any:
    if columns is None:
        return task.design.ordinal(rows)
    features = task.design.one_hot(rows)[:, columns]
    if task.model.prefers_dense and len(task.label) * len(columns) <= DENSE_CELLS:
        return features.toarray()
    return features


def _scores(classifier: Any, features: Any, probabilistic: bool) -> Floats:
    """Return one score per class, shape (n, classes that were trained on)."""
    if probabilistic:
        return np.asarray(classifier.predict_proba(features), dtype=np.float64)
    margin = np.asarray(classifier.decision_function(features), dtype=np.float64)
    return np.stack([-margin, margin], axis=1) if margin.ndim == 1 else margin
