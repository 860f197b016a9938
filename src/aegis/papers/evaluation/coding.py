"""Encode the rows of a table as integer codes, and mask the codes under a configuration.

The table is read once. The summary holds the groups of values under each mask, because Aegis
applied the mask to the distinct values. So to mask a column, this module only looks up the group of
each value. The result is the same as in a release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from aegis.advisor import Choice
from aegis.arrays import Floats
from aegis.masks import NoiseMask
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary import AttributeSummary, Summary
from aegis.summary.codes import code_values, encode, numbers_of

Codes = npt.NDArray[np.int32]
Labels = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]
MOST_NAMED = 64
"""Most values of an attribute without an order that a linear model treats as categories."""


@dataclass(frozen=True, eq=False)
class Design:
    """The masked features of all rows, from which a model is trained.

    Attributes
    ----------
    codes
        Code of the masked value for each of the n rows and m attributes, shape (n, m); larger
        values have larger codes. Attributes with the same masked value in every row are left out.
    sizes
        Number of distinct masked values of each attribute, shape (m,).
    numbers
        For each attribute and each masked value, the mean of the original numbers behind it; NaN
        for missing values. None for an attribute without an order. Empty if the model needs no
        numbers.
    """

    codes: Codes
    sizes: tuple[int, ...]
    numbers: tuple[Floats | None, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the masked features. Features with the same hash train the same model."""
        sha = hashlib.sha256(repr((self.codes.shape, self.sizes)).encode())
        sha.update(np.ascontiguousarray(self.codes).tobytes())
        return sha.hexdigest()

    def one_hot(self, rows: Rows) -> sparse.csr_matrix:
        """Return masked values of `rows` one-hot encoded, as 32-bit floats."""
        offsets = np.concatenate([[0], np.cumsum(self.sizes)])
        columns = (self.codes[rows] + offsets[:-1]).astype(np.int32)
        count, width = columns.shape
        starts = np.arange(count + 1, dtype=np.int32) * np.int32(width)
        ones = np.ones(count * width, dtype=np.float32)
        return sparse.csr_matrix((ones, columns.ravel(), starts), shape=(count, int(offsets[-1])))

    def ordinal(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Return integer codes of `rows` by attribute, as 32-bit floats."""
        return self.codes[rows].astype(np.float32)

    def linear(self, rows: Rows) -> Floats:
        """Return the features of `rows` for a linear model that predicts a number, as `held-out-r2` reads
        them: standardised numbers with flags for missing ones, and at most 64 one-hot values of others.
        """
        columns: list[Floats] = []
        for index, size in enumerate(self.sizes):
            codes = self.codes[:, index]
            numbers = self.numbers[index] if self.numbers else None
            if numbers is not None:
                row_numbers = numbers[codes]
                missing = np.isnan(row_numbers)
                away = np.where(missing, 0.0, row_numbers - row_numbers[~missing].mean())
                columns.append((away / max(float(away.std()), 1e-300))[rows])
                if missing.any():
                    columns.append(missing[rows].astype(np.float64))
                continue
            often = np.argsort(-np.bincount(codes, minlength=size), kind="stable")[:MOST_NAMED]
            columns += [(codes[rows] == code).astype(np.float64) for code in often]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class CodedTable:
    """All rows of a table as integer codes of their values.

    Attributes
    ----------
    codes
        For each attribute, the index of each of the n rows' values among the summary's values,
        shape (n,).
    label
        Class of each row, shape (n,); -1 for a row without a label.
    classes
        The text of each class.
    attributes
        The summaries of the attributes, for masks that draw at random.
    seed
        Seed of these draws.
    persons
        The person of each row, shape (n,); None if the policy does not count persons.
    response
        The numeric label of each row, shape (n,), or 0 if it is missing. If the label is a number,
        all rows have the same class. None for a label with classes.
    weights
        The weight of each row, shape (n,), scaled so that the sum is the effective number of rows
        (sum of weights)^2 / (sum of squared weights). None if each row counts once.
    """

    codes: Mapping[str, Codes]
    label: Labels
    classes: tuple[str, ...]
    attributes: Mapping[str, AttributeSummary] = field(default_factory=dict)
    seed: int = 0
    persons: Labels | None = None
    response: Floats | None = None
    weights: Floats | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.label)

    @cached_property
    def labelled(self) -> Rows:
        """The rows that have a label, ascending."""
        return np.flatnonzero(self.label >= 0)

    def design(self, choice: Choice) -> Design:
        """Return the features of all rows under a configuration; noise is drawn anew."""
        columns, sizes = [], []
        for name, codes in self.codes.items():
            candidate = choice[name]
            if candidate.noise is not None:
                drawn_codes, size = self._draw_codes(name, candidate.noise)
                columns.append(drawn_codes)
                sizes.append(size)
            elif candidate.size > 1:
                columns.append(candidate.groups[codes])
                sizes.append(candidate.size)
        if not columns:  # everything suppressed: one column that says nothing
            columns, sizes = [np.zeros(self.rows, dtype=np.int32)], [1]
        named = () if self.response is None else self.designed(choice)
        numbers = tuple(self._numbers(choice, name) for name in named)
        return Design(np.stack(columns, axis=1).astype(np.int32), tuple(sizes), numbers)

    def _numbers(self, choice: Choice, name: str) -> Floats | None:
        """Return the mean number behind each masked value, shape (groups,); None without order."""
        numbers, candidate = self.attributes[name].numbers, choice[name]
        if numbers is None:
            return None
        finite = ~np.isnan(numbers)
        count, total = (
            np.bincount(candidate.groups[finite], weights, candidate.size)
            for weights in (None, numbers[finite])
        )
        means = np.full(candidate.size, np.nan)
        np.divide(total, count, out=means, where=count > 0)
        return means

    def designed(self, choice: Choice) -> tuple[str, ...]:
        """Return the name of the attribute in each column of the features under these masks."""
        names = [n for n in self.codes if choice[n].noise is not None or choice[n].size > 1]
        return tuple(names or list(self.codes)[:1])

    def _draw_codes(self, name: str, noise: NoiseMask) -> tuple[Codes, int]:
        """Draw what a noise mask shows in each row; return codes, and how many there are."""
        attribute = self.attributes[name]
        key = hashlib.sha256(f"{self.seed}\n{name}\n{noise}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(key))
        column = attribute.values.take(pa.array(self.codes[name].tolist(), pa.int32()))
        codes, distinct = encode(noise.draw(column, random))
        return codes.astype(np.int32), len(distinct)


def code_table(source: Source, summary: Summary, policy: Policy, *, seed: int = 0) -> CodedTable:
    """Read the scored columns and the label as codes of the summary's values."""
    label = source.table[policy.label.column]
    mask = summary.label.mask
    is_number = policy.label.is_number
    label = label if mask is None else mask.expression(label)
    columns = {f"a{i}": source.table[name] for i, name in enumerate(summary.attributes)}
    if policy.person is not None:
        columns["p"] = source.table[policy.person]
    if policy.weight is not None:
        columns["w"] = source.table[policy.weight]
    collected = source.collect(source.table.select(**columns, y=label))
    weights = None
    if summary.weights is not None:
        raw_weights = numbers_of(collected["w"].combine_chunks())
        weights = raw_weights * (raw_weights.sum() / (raw_weights**2).sum())
    persons = None
    if policy.person is not None:
        persons = encode(collected["p"].combine_chunks())[0].astype(np.int64)
    classes, distinct = encode(collected["y"].combine_chunks())
    missing = classes >= len(distinct) - distinct.null_count  # null is the last value
    response = None
    if is_number:
        response = numbers_of(collected["y"].combine_chunks())
        missing, classes = np.isnan(response), np.zeros_like(classes)
        response = np.nan_to_num(response)
    codes = {
        name: code_values(collected[f"a{i}"].combine_chunks(), attribute.values).astype(np.int32)
        for i, (name, attribute) in enumerate(summary.attributes.items())
    }
    return CodedTable(
        codes,
        np.where(missing, -1, classes),
        summary.label.classes,
        summary.attributes,
        seed,
        persons,
        response,
        weights,
    )
