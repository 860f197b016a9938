"""Add noise to categories, and shuffle columns."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import DataError, PolicyError
from aegis.masks import base as parameters
from aegis.masks.base import (
    MOST_REPORTS,
    SUPPRESSED,
    Kind,
    Mask,
    NoiseMask,
    ValueCounts,
    described,
    is_null,
    take,
)
from aegis.masks.categories import among, mapped, text_of
from aegis.privacy import PrivacyLoss

CATEGORIES = frozenset({Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN})
_TYPES = {Kind.TEXT: str, Kind.INTEGER: int, Kind.BOOLEAN: bool}
Value = str | int | bool


class CategoryNoise(NoiseMask):
    """Replaces each value by one of a list of values; null stays null.

    A value that is not in the list is unknown: `known` is false for it. The mask shows it as "*",
    or as null if the column is not text.
    """

    fits: ClassVar[frozenset[Kind]] = CATEGORIES
    keeps_kind: ClassVar[bool] = True
    fitted_by: ClassVar[str | None] = "values"

    values: tuple[Value, ...] | None
    """The values, a parameter of each subclass."""

    def categories(self) -> tuple[Value, ...]:
        """Return the K possible masked values; raise `InternalError` if the mask is not fitted."""
        self.require_fitted()
        return self.values or ()

    @abstractmethod
    def transitions(self) -> Floats:
        """Return the probability that value i is shown as value j, for K categories in their order,
        shape (K, K).
        """

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError`, which names the attribute, if the mask does not accept columns of
        this kind, or its list of values has another type.
        """
        super().check(kind, attribute)
        if self.fitted and type(self.categories()[0]) is not _TYPES[kind]:
            raise PolicyError(
                f"Mask {self.name!r} of attribute {attribute!r} lists "
                f"{self.categories()[0]!r}, which is not a value of a column of {kind}.",
                hint="Write text in quotes, whole numbers and booleans without.",
            )

    def shows(self, text: str) -> bool | None:
        """Return whether a text is one of the categories, or "*"; None if the mask is not fitted."""
        if not self.fitted:
            return None
        return among(text, {*map(str, self.categories()), SUPPRESSED})

    def known(self, column: Any) -> Any:
        """Return the Ibis condition that a value is null or one that the mask can show."""
        import ibis

        covered = {str(text_of(value)): True for value in self.categories()}
        return column.isnull() | mapped(column, covered, ibis.literal(False))

    def reports(self, data: ValueCounts) -> pa.Array:
        """Return the values that the mask may show for `data`: the categories, then "*" for texts
        that are not in the list and null, if these can occur.
        """
        return self._reports(data.values)

    def channel(self, data: ValueCounts, rows: slice = slice(None)) -> Floats:
        """Return the probability that value i of `data` is shown as report j, for V values and R
        reports, shape (V, R), or only the lines `rows`. Values that are not in the list become "*"
        or null, and null stays null.
        """
        reports = self._reports(data.values)
        size = len(self.categories())
        codes, missing = self._codes(data.values)
        codes, missing = codes[rows], missing[rows]
        channel = np.zeros((len(codes), len(reports)))
        inside = codes >= 0
        channel[inside, :size] = self.transitions()[codes[inside]]
        if len(reports) > size:
            channel[~inside & ~missing, size] = 1.0
            channel[missing, -1] = 1.0
        return channel

    def draw(self, column: pa.Array, random: np.random.Generator) -> pa.Array:
        """Return a masked value for each row, drawn with the probabilities that `channel` states
        for the row's true value.
        """
        codes, missing = self._codes(column)
        inside = codes >= 0
        reports = self._reports(column)
        index = np.full(len(codes), len(self.categories()), dtype=np.int64)
        chosen = self.draw_codes(np.where(inside, codes, 0), random)
        index[inside] = chosen[inside]
        return take(reports, np.minimum(index, len(reports) - 1), missing)

    def draw_codes(self, codes: Ints, random: np.random.Generator) -> Ints:
        """Return the index of the category that is shown for each row, given the index of the true
        category (`codes`). Each row uses one uniform random number.
        """
        below = np.cumsum(self.transitions(), axis=1)
        uniform = random.random(len(codes))
        last = below.shape[1] - 1
        drawn_codes = np.empty(len(codes), dtype=np.int64)
        for code in np.unique(codes):
            rows = codes == code
            drawn_codes[rows] = np.searchsorted(below[code], uniform[rows], side="right")
        return np.asarray(np.minimum(drawn_codes, last), dtype=np.int64)

    def _reports(self, values: pa.Array) -> pa.Array:
        """Return the categories, then "*" if `values` has texts that are not in the list, and null
        if null may be shown.
        """
        dtype = _wide(values.type)
        codes, missing = self._codes(values)
        unknown = bool(((codes < 0) & ~missing).any())
        extra: list[Any] = [SUPPRESSED] if unknown and _is_text(dtype) else []
        if missing.any() or (unknown and not extra):
            extra.append(None)
        return pa.array([*self.categories(), *extra], dtype)

    def _codes(self, values: pa.Array) -> tuple[Ints, Flags]:
        """Return the index of each value's category (-1 for null and for values that are not in the
        list), and whether each value is null.
        """
        dtype = _wide(values.type)
        listed = pa.array(list(self.categories()), dtype)
        codes = pc.index_in(values.cast(dtype), value_set=listed).fill_null(-1)
        return codes.to_numpy(zero_copy_only=False).astype(np.int64), is_null(values)


@dataclass(frozen=True)
class RandomisedResponse(CategoryNoise):
    """Shows the true value with some probability, otherwise another value (randomised response).

    With `epsilon`, the mask shows the true one of K values with probability e^epsilon / (e^epsilon
    + K - 1). OpenDP draws the values. The mask is then epsilon-locally differentially private, if
    the list of values was not taken from the data (write `values`).

    With `keep`, the mask keeps a value with that probability. Otherwise it draws a value uniformly
    from all values, and may draw the same value. The draw uses a seed. Of K values, the true one is
    shown with probability keep + (1 - keep) / K, and each other one with probability (1 - keep) /
    K. For example, `keep: 0.7` shows the true one of two values with probability 0.85. This
    guarantees no differential privacy.

    References: Warner, Journal of the American Statistical Association 60, 1965; Kairouz, Bonawitz
    and Ramage, ICML 2016, equation 2.
    """

    name: ClassVar[str] = "randomised_response"
    summary: ClassVar[str] = (
        "Shows the true value with some probability, and otherwise a random value."
    )
    example: ClassVar[str] = "{randomised_response: {epsilon: 2, values: [low, medium, high]}}"

    epsilon: int | float | None = described(
        "privacy loss per row, above 0 (or give keep); extra: dp", None
    )
    keep: int | float | None = described(
        "probability that Aegis keeps a value without a draw, 0 to 1 (or give epsilon). "
        "With K values, the mask shows the true value with probability keep + (1 - keep) "
        "/ K",
        None,
    )
    values: tuple[Value, ...] | None = described(
        "all values that can occur. By default, the values in the data", None
    )
    learnt: bool = described(
        "whether the list of values comes from the data. Epsilon does not cover this. "
        "Aegis sets the parameter",
        False,
    )

    def __post_init__(self) -> None:
        example = "{randomised_response: {epsilon: 2}}"
        parameters.either(self.name, example, epsilon=self.epsilon, keep=self.keep)
        if self.epsilon is not None:
            parameters.number(self.name, "epsilon", self.epsilon, positive=True)
        if self.keep is not None:
            _probability(self.name, "keep", self.keep)
        if self.values is not None:
            object.__setattr__(self, "values", _listed(self.name, self.values))
        if not isinstance(self.learnt, bool):
            raise parameters.wrong(self.name, "learnt", self.learnt, "true or false")

    @property
    def exact_randomness(self) -> bool:  # type: ignore[override]
        """Whether OpenDP draws the values, so that no seed is used."""
        return self.epsilon is not None

    def _learn(self, data: ValueCounts) -> Mask:
        """Return the mask with the values of the data as its list; if `epsilon` is given, the list
        is marked as learnt from the data.
        """
        values, _ = _distinct(self.name, data)
        return replace(self, values=values, learnt=self.epsilon is not None)

    def unfitted(self) -> Mask:
        """Return the mask without its list of values."""
        return replace(self, values=None, learnt=False)

    def unlisted(self) -> Mask:
        """Return the mask without a list of values that it learnt. A mask with `epsilon` knows
        whether it did.
        """
        return self if self.epsilon is not None and not self.learnt else self.unfitted()

    def transitions(self) -> Floats:
        """Return the probability that randomised response shows value i as value j, for K
        categories, shape (K, K).
        """
        from aegis.masks.channels import randomised_response_channel

        return randomised_response_channel(
            len(self.categories()), epsilon=self.epsilon, keep=self.keep
        )

    def draw_codes(self, codes: Ints, random: np.random.Generator) -> Ints:
        """Return the index of the category that is shown for each row, given the index of the true
        category (`codes`).
        """
        if self.epsilon is None:
            return super().draw_codes(codes, random)
        size = len(self.categories())
        if size == 1:
            return codes
        from aegis.masks.noise.numbers import randomised_response

        return randomised_response(codes, size, 1 / (1 + (size - 1) * math.exp(-self.epsilon)))

    def loss(self, attribute: str) -> PrivacyLoss | None:
        """Return the privacy loss of a row in the column `attribute`, which is epsilon, with a note
        if the list of values was learnt from the data; None if the policy states no epsilon.
        """
        if self.epsilon is None:
            return None
        instead = f"{{randomised_response: {{epsilon: {self.epsilon}, values: [...]}}}}"
        learnt = "values" if self.learnt or not self.fitted else None
        return PrivacyLoss(
            attribute, float(self.epsilon), mechanism=self.name, learnt=learnt, instead=instead
        )


@dataclass(frozen=True)
class Pram(CategoryNoise):
    """Changes values at random, by a transition matrix (post-randomisation, PRAM).

    The matrix has one row of probabilities for each true value. With `keep`, the mask keeps a value
    with that probability. Otherwise it draws a value from all values, with their shares in the data
    as probabilities. So a value with share p stays unchanged with probability keep + (1 - keep) *
    p, and the expected distribution of the column does not change (invariant PRAM). PRAM guarantees
    no differential privacy.

    Reference: Gouweleeuw, Kooiman, Willenborg and de Wolf, Post randomisation for statistical
    disclosure control, Journal of Official Statistics 14, 1998.
    """

    name: ClassVar[str] = "pram"
    summary: ClassVar[str] = "Changes categories at random, by a matrix of probabilities."
    example: ClassVar[str] = "{pram: {values: [single, married], matrix: [[0.9, 0.1], [0.2, 0.8]]}}"

    keep: int | float | None = described(
        "probability that Aegis keeps a value without a draw, 0 to 1 (or give matrix). "
        "The mask shows a value with share p unchanged with probability keep + (1 - keep) "
        "p",
        None,
    )
    values: tuple[Value, ...] | None = described("the values in the order of the matrix", None)
    matrix: tuple[tuple[float, ...], ...] | None = described(
        "probabilities of the shown values, one row per true value (or give keep)", None
    )
    shares: tuple[float, ...] | None = described(
        "with keep: share of each value. By default, Aegis learns the shares from the data", None
    )

    def __post_init__(self) -> None:
        example = f"{{pram: {{keep: 0.8}}}} or {self.example}"
        parameters.either(self.name, example, keep=self.keep, matrix=self.matrix)
        if self.values is not None:
            object.__setattr__(self, "values", _listed(self.name, self.values))
        if self.keep is not None:
            _probability(self.name, "keep", self.keep)
            self._check_shares()
        else:
            self._check_matrix()

    def _check_shares(self) -> None:
        hint = "Leave both out: they are then taken from the data."
        what = f"Mask {self.name!r} with 'keep'"
        parameters.together(what, hint, values=self.values, shares=self.shares)
        if self.shares is not None:
            rows = _matrix(self.name, "shares", [self.shares], len(self.values or ()))
            object.__setattr__(self, "shares", rows[0])

    def _check_matrix(self) -> None:
        if self.values is None:
            raise PolicyError(
                f"Mask {self.name!r} with 'matrix' lacks 'values', the values of its rows.",
                hint=f"For example {self.example}.",
            )
        if self.shares is not None:
            raise PolicyError(
                f"Mask {self.name!r}: 'shares' belongs to 'keep', not to 'matrix'.",
                hint="Leave it out.",
            )
        size = len(self.values)
        rows = _matrix(self.name, "matrix", self.matrix, size)
        if len(rows) != size:
            raise parameters.wrong(self.name, "matrix", self.matrix, f"{size} rows, one per value")
        object.__setattr__(self, "matrix", rows)

    def _learn(self, data: ValueCounts) -> Mask:
        """Return the mask with the distinct values of the data and their shares."""
        values, counts = _distinct(self.name, data)
        shares = counts / counts.sum()
        return replace(self, values=values, shares=tuple(shares.tolist()))

    def unfitted(self) -> Mask:
        """Return the mask without values and shares, which it learns if it has no matrix."""
        return self if self.matrix is not None else replace(self, values=None, shares=None)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as a policy writes them; the matrix becomes nested lists."""
        entries = super().parameters()
        if self.matrix is not None:
            entries["matrix"] = [list(row) for row in self.matrix]
        return entries

    def transitions(self) -> Floats:
        """Return the transition matrix: the probability that value i is shown as value j, for K
        categories, shape (K, K).
        """
        from aegis.measures.checks import check_channel

        if self.matrix is not None:
            return check_channel(self.matrix, "of PRAM")
        shares, keep = np.array(self.shares or ()), float(self.keep or 0.0)
        mixture = keep * np.eye(len(shares)) + (1 - keep) * shares[None, :]
        return check_channel(mixture, "of PRAM")


@dataclass(frozen=True)
class Shuffle(NoiseMask):
    """Shuffles the column, including null: all values are released, in random order.

    The distribution of the column does not change; its association with the label and other columns
    is lost. One shuffle covers all rows of a release.
    """

    name: ClassVar[str] = "shuffle"
    summary: ClassVar[str] = "Shuffles the values of the column among the rows."
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "shuffle"
    keeps_kind: ClassVar[bool] = True

    def reports(self, data: ValueCounts) -> pa.Array:
        """Return the distinct values of the column, because each row may show any of them."""
        return data.values

    def channel(self, data: ValueCounts, rows: slice = slice(None)) -> Floats:
        """Return the probability that value i is shown as value j, for V values, shape (V, V), or
        only the lines `rows`. It is the share of value j in the data, the same for every true value
        i.
        """
        shares = data.counts / max(int(data.counts.sum()), 1)
        return np.tile(shares, (len(range(*rows.indices(len(data.values)))), 1))

    def draw(self, column: pa.Array, random: np.random.Generator) -> pa.Array:
        """Return the values of the column in random order; all orders are equally likely."""
        return take(column, random.permutation(len(column)))


def _wide(dtype: pa.DataType) -> pa.DataType:
    """Return a type that can represent every value that a policy may list."""
    return pa.int64() if pa.types.is_integer(dtype) else dtype


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _probability(mask: str, parameter: str, value: object) -> None:
    if not 0 <= parameters.number(mask, parameter, value) <= 1:
        raise parameters.wrong(mask, parameter, value, "a number from 0 to 1")


def _listed(mask: str, value: object) -> tuple[Value, ...]:
    """Return `value` if it is a list of different values of one type; otherwise raise
    `PolicyError`, which names `mask`.
    """
    allowed = (
        f"a list of 1 to {MOST_REPORTS:,} different values, all text, all whole or all boolean"
    )
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise parameters.wrong(mask, "values", value, allowed)
    values = tuple(value)
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        raise parameters.wrong(mask, "values", value, allowed)
    if len(set(values)) < len(values) or len(values) > MOST_REPORTS:
        raise parameters.wrong(mask, "values", value, allowed)
    return values


def _matrix(mask: str, parameter: str, value: Any, columns: int) -> tuple[tuple[float, ...], ...]:
    """Return `value` if it is a matrix of probabilities with `columns` columns; otherwise raise
    `PolicyError`, which names the first invalid row.
    """
    rows: list[tuple[float, ...]] = []
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise parameters.wrong(mask, parameter, value, "a list of rows")
    for number, row in enumerate(value, 1):
        allowed = f"row {number}: {columns} probabilities that sum to one"
        if isinstance(row, str) or not isinstance(row, list | tuple) or len(row) != columns:
            raise parameters.wrong(mask, parameter, row, allowed)
        checked = [float(parameters.number(mask, parameter, p)) for p in row]
        if min(checked) < 0 or abs(math.fsum(checked) - 1) > 1e-9:
            raise parameters.wrong(mask, parameter, list(row), allowed)
        rows.append(tuple(checked))
    return tuple(rows)


def _distinct(mask: str, data: ValueCounts) -> tuple[tuple[Value, ...], Ints]:
    """Return the distinct values that are not null, and the number of rows of each; errors name
    `mask`.
    """
    present = ~is_null(data.values)
    values = tuple(data.values.drop_null().to_pylist())
    if not values:
        raise DataError(
            f"Mask {mask!r} has no values to choose from: the column is null in every row.",
            hint="Give `values`, or suppress the column.",
        )
    if len(values) > MOST_REPORTS:
        raise DataError(
            f"Mask {mask!r} would choose among {len(values):,} values; at most {MOST_REPORTS:,} "
            "are allowed.",
            hint="Group or blur the column before, or use `shuffle`.",
        )
    return values, data.counts[present]
