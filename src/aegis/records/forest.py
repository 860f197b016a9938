"""Random forests of scikit-learn, which find pattern-friendly attributes and measure how well a
release predicts a column.

scikit-learn is an optional dependency, so it is imported only when a forest is first made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aegis.arrays import Array, Ints
from aegis.errors import PolicyError

SAMPLE = 10_000
"""Largest number of records, drawn at random, that a forest uses."""
HELD_OUT = 0.3


def _classifier(trees: int, seed: int) -> Any:
    try:
        from sklearn.ensemble import RandomForestClassifier
    except ImportError:
        raise PolicyError(
            "The hybrid scheme needs a random forest, but scikit-learn is not installed.",
            hint="Install aegis-advisor[ml], or name the pattern-friendly attributes yourself.",
        ) from None
    return RandomForestClassifier(n_estimators=trees, random_state=seed, min_samples_leaf=5)


class Forest:
    """A random forest that is trained on one part of the records and tested on the rest.

    Parameters
    ----------
    features
        Codes of A attributes in N records, shape (N, A).
    target
        For each of the N records, the code to predict, shape (N,).
    """

    def __init__(
        self, features: Ints, target: Ints, random: np.random.Generator, *, trees: int
    ) -> None:
        order = random.permutation(len(target))[:SAMPLE]
        held_out = max(1, int(HELD_OUT * len(order)))
        self._test, train = order[:held_out], order[held_out:]
        self._features, self._target = features, target
        self._model = _classifier(trees, int(random.integers(2**31)))
        training_rows = train if len(train) else self._test
        self._model.fit(features[training_rows], target[training_rows])

    def accuracy(self, features: Array | None = None) -> float:
        """Return the share of test records whose target the forest predicts correctly, from the
        codes `features` if given, else from the original ones.
        """
        codes = self._features[self._test] if features is None else features
        return float(np.mean(self._model.predict(codes) == self._target[self._test]))

    def drop_without(self, column: int, random: np.random.Generator, repeats: int = 5) -> float:
        """Return how much accuracy on the test records is lost if the values of the feature at
        `column` are shuffled, as a mean over `repeats` shuffles.
        """
        accuracy = self.accuracy()
        scores = []
        for _ in range(repeats):
            shuffled = self._features[self._test].copy()
            shuffled[:, column] = random.permutation(shuffled[:, column])
            scores.append(self.accuracy(shuffled))
        return accuracy - float(np.mean(scores))
