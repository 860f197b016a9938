"""Draw the values of noise masks in this process; the engine applies all other masks.

By default, draws use the system's randomness. With a seed, the same table always gets the same
noise, and a reader who knows the seed can remove it. Draws with a seed also depend on the values of
the column. This does not stop a reader who knows most rows: that reader can try out values for the
other rows. For masks with a stated epsilon, OpenDP draws the noise; these draws use no seed, so
nobody can repeat them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.errors import InternalError
from aegis.masking.masked import masked_table
from aegis.masks import Mask, NoiseMask
from aegis.sources import Source, open_table
from aegis.sources.source import ROW_NUMBER
from aegis.summary.classes import PERSON, WEIGHT

TRUE = "aegis_true_"
"""Prefix of columns with true values of noised quasi-identifiers; they stay until classes are
checked.
"""


@dataclass(frozen=True, eq=False)
class DrawnTable:
    """A masked table in memory, in which the noise of noise masks has been drawn.

    Attributes
    ----------
    source
        The table, with row numbers and the true values of noised quasi-identifiers.
    names
        The released columns, in order.
    quasi
        The columns that form the classes. A noised quasi-identifier is replaced by the column with
        its true values.
    """

    source: Source
    names: tuple[str, ...]
    quasi: tuple[str, ...]

    @property
    def noised_quasi_identifiers(self) -> tuple[str, ...]:
        """The quasi-identifiers that are masked with noise."""
        return tuple(name.removeprefix(TRUE) for name in self.quasi if name.startswith(TRUE))

    def released(self, table: ir.Table) -> ir.Table:
        """Return the table with only the released columns, so without the true values of noised
        columns.
        """
        return table.select(*self.names)


def noise_of(masks: Mapping[str, Mask | None]) -> dict[str, NoiseMask]:
    """Return the noise masks among all masks."""
    return {name: mask for name, mask in masks.items() if isinstance(mask, NoiseMask)}


def draw(
    source: Source,
    masks: Mapping[str, Mask | None],
    quasi: tuple[str, ...],
    *,
    seed: int | None,
    person: str | None = None,
    weight: str | None = None,
) -> DrawnTable:
    """Mask a table and draw its noise, with all released columns in memory.

    Parameters
    ----------
    source
        The table.
    masks
        The fitted mask of each released column; None shows the column as it is.
    quasi
        The quasi-identifiers. Classes are formed by their true values: a reader who removes the
        noise sees the true class, so noise never helps to meet a rule.
    seed
        Seed of the draws; None takes the randomness of the system.
    person, weight
        Column that identifies persons, for a rule that counts them; column of weights, for scores.
    """
    noise = noise_of(masks)
    hidden = {TRUE + name: name for name in quasi if name in noise}
    for name in hidden:
        if name in source.columns:
            raise InternalError(f"The table has a column with the reserved name {name!r}.")
    plain = {name: None if name in noise else mask for name, mask in masks.items()}
    table = masked_table(source, plain, numbered=True, person=person, weight=weight)
    names = tuple(name for name in table.columns if name not in (ROW_NUMBER, PERSON, WEIGHT))
    table = table.mutate(**{true: table[name] for true, name in hidden.items()})
    rows = source.collect(table.order_by(ROW_NUMBER))
    noisy_rows = draw_columns(rows, noise, seed=seed)
    return DrawnTable(
        open_table(noisy_rows),
        names,
        tuple(TRUE + name if TRUE + name in hidden else name for name in quasi),
    )


def seeded_noise(masks: Mapping[str, Mask | None], seed: int | None) -> tuple[str, ...]:
    """Return the columns whose noise a reader who knows the seed can remove. Without a seed, there
    are none.
    """
    if seed is None:
        return ()
    return tuple(name for name, mask in noise_of(masks).items() if not mask.exact_randomness)


def draw_columns(table: pa.Table, noise: Mapping[str, NoiseMask], *, seed: int | None) -> pa.Table:
    """Return a table in which each column with a noise mask is replaced by values drawn from the mask.

    Without a `seed`, the draws use the system's randomness.
    """
    for name, mask in noise.items():
        position = table.column_names.index(name)
        column = pa.concat_arrays(
            table.column(position).chunks or [table.column(position).combine_chunks()]
        )
        noisy = mask.draw(column, _random(seed, name, column))
        table = table.set_column(position, name, noisy)
    return table


def _random(seed: int | None, name: str, column: pa.Array) -> np.random.Generator:
    """Return the random number generator for the noise of one column. With a seed, it depends on
    the seed, the column's name and the column's values.
    """
    if seed is None:
        return np.random.default_rng()  # seeded by the system
    sha = hashlib.sha256(f"{seed}\n{name}\n".encode())
    # What lies beneath a null is not defined, nor are the unused bits of a column of booleans.
    sha.update(pc.is_null(column).cast(pa.int8()).to_numpy(zero_copy_only=False).tobytes())
    values = column.drop_null()
    values = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
    sha.update(pa.record_batch([values], names=["c"]).serialize())
    return np.random.default_rng(int.from_bytes(sha.digest()))
