"""Apply a configuration as a step of a scikit-learn pipeline."""

from __future__ import annotations

import reprlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import ibis
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegis.advisor import Advice, Ranked
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError, member, require_known
from aegis.masking import (
    count_unseen,
    draw_columns,
    fit_masks,
    masked_table,
    noise_of,
    refuse_unseen,
    seeded_noise,
)
from aegis.masks import SHARED_ROWS, Identity, Mask, parse_mask
from aegis.masks.base import Kind
from aegis.options import check_arguments
from aegis.policy import Configuration, Policy, Unseen, as_policy
from aegis.release.auditing import audit
from aegis.release.released import SEEDED
from aegis.release.writing import configuration_to_apply
from aegis.sources import Source, open_table


class MaskingTransformer:
    """Masks columns by a configuration. `fit` learns cut points, and `transform` only applies them.

    It follows scikit-learn's estimator protocol (`fit`, `transform`, `get_params`,
    `get_feature_names_out`) without importing scikit-learn, so that it fits into a `Pipeline` or
    `ColumnTransformer`. The transformer only masks. It never suppresses rows, because it must keep
    them aligned with the target, and so its output often breaks the policy's privacy rule. With
    `breach`, `fit` checks the rule on the masked rows. To release rows, use `Study.apply`. The
    output is the same kind of frame as the input; a NumPy array gives an array with columns called
    `x0`, `x1`, ... `set_output` and scikit-learn's `set_config` select another kind. In a frame,
    columns without a mask keep their type, such as category or time zone.

    Parameters
    ----------
    configuration
        A `Configuration`, or `{column: mask}` with masks written as in a policy. You can also give an
        advice, whose best configuration is used, or an entry of its ranking.
    policy
        Provides hierarchies for `level` masks and the treatment of unseen values: a `Policy`, or the
        path of its YAML file.
    keep_others
        Whether to keep columns that the configuration does not name. Otherwise the transformer
        drops them.
    unseen
        `error` or `suppress`: the treatment of values that a mask does not know. The default is
        the policy's treatment, else `error`.
    seed
        Seed of noise masks, for tests. A reader who knows the seed can remove the noise, and `fit`
        warns about that. Without a seed, noise uses the system's randomness. Draws with a seed also
        depend on the values of the column, so two tables get different noise.
    breach
        `warn` or `error`: how `fit` responds if its masked rows break the policy's rule. The table of
        `fit` needs the columns that the rule names: those of persons and of sensitive values. By
        default, nothing checks the rule. Rows that `transform` masks later are never checked.

    Examples
    --------
    >>> import aegis
    >>> import polars
    >>> people = polars.DataFrame({"age": [23, 38, 61]})
    >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
    >>> masking.fit_transform(people)["age"].to_list()
    ['[20, 30[', '[30, 40[', '[60, 70[']
    """

    def __init__(
        self,
        configuration: Configuration | Ranked | Advice | Mapping[str, Any],
        policy: Policy | str | Path | Mapping[str, Any] | None = None,
        *,
        keep_others: bool = False,
        unseen: str | None = None,
        seed: int | None = None,
        breach: str | None = None,
    ) -> None:
        self.configuration = _plain(configuration)
        self.policy = policy
        self.keep_others = keep_others
        self.unseen = unseen
        self.seed = seed
        self.breach = breach

    _sklearn_output_config: Mapping[str, str] = {}
    """What `set_output` selected; scikit-learn's `clone` copies an attribute of this name."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - the protocol's signature
        """Fit the masks that depend on the data, and remember the columns.

        Raises
        ------
        DataError
            A column is missing, or the table has no rows.
        PolicyError
            A mask is unknown or does not fit its column, or a parameter is not valid.
        NoAdmissibleConfiguration
            The masked rows break the policy's rule, and `breach` is `error`.

        Examples
        --------
        >>> import aegis
        >>> import polars
        >>> people = polars.DataFrame({"age": [23, 38, 61]})
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> list(masking.fit(people).masks_)
        ['age']
        """
        masks = self._masks()
        self._unseen()
        source = open_table(_named(X))
        if source.rows == 0:
            raise DataError(f"{source.origin} has no rows.", hint="Give a table with rows.")
        policy = self._policy()
        shared = SHARED_ROWS if policy is None else policy.shared_rows
        fitted = fit_masks(source, masks, shared)
        self.masks_ = {name: mask for name, mask in fitted.items() if mask is not None}
        noised = seeded_noise(self.masks_, self.seed)
        if noised:
            warnings.warn(f"{', '.join(noised)}: noise has a seed; {SEEDED}.", stacklevel=2)
        self.feature_names_in_ = np.array(source.columns, dtype=object)
        self.n_features_in_ = len(source.columns)
        names = [c for c in source.columns if c in masks or self.keep_others]
        if not names:
            raise PolicyError(
                "The configuration names no column, so nothing is left.",
                hint="Name at least one column, or keep the other columns with keep_others=True.",
            )
        self._names_out = np.array(names, dtype=object)
        self._check_rule(X)
        return self

    def _check_rule(self, X: Any) -> None:
        """Warn or raise an error if the masked rows of `fit` break the policy's rule; see `breach`."""
        if self.breach is None:
            return
        require_known("response to a breach", self.breach, _BREACHES)
        policy = self._policy()
        if policy is None:
            raise PolicyError("`breach` needs a policy.", hint="Give the policy with the rule.")
        counted = (policy.person, *policy.privacy.sensitive)
        hidden = [name for name in counted if name is not None and name not in self._names_out]
        absent = [name for name in hidden if name not in open_table(_named(X)).columns]
        if absent:
            raise DataError(
                f"`breach` cannot check the rule: the table of fit lacks {', '.join(absent)}.",
                hint="Fit with every column that the rule names (the output need not show it).",
            )
        configuration = Configuration("fit", self.masks_)
        rows = self._masked(_named(X), [*self._names_out, *hidden])
        violations = audit(rows, policy=policy, configuration=configuration).violations
        if not violations:
            return
        message = f"The masked rows of fit break the privacy rule: {'; '.join(violations)}."
        if self.breach == "error":
            hint = "The transformer suppresses no rows: choose coarser masks, or use Study.apply."
            raise NoAdmissibleConfiguration(message, hint=hint)
        warnings.warn(message, stacklevel=3)

    def transform(self, X: Any) -> Any:
        """Return the masked columns, with one row for each input row.

        Raises
        ------
        DataError
            The transformer is not fitted, a column is missing, or a value is unseen and `unseen` is
            `error`.
        PolicyError
            A column has another type than `fit` saw, and its mask does not fit this type.

        Examples
        --------
        >>> import aegis
        >>> import polars
        >>> people = polars.DataFrame({"age": [23, 38, 61]})
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> masking.fit(people).transform(people)["age"].to_list()
        ['[20, 30[', '[30, 40[', '[60, 70[']
        """
        self._require_fitted("transform")
        table, names, output = _named(X), self._names_out.tolist(), self._output()
        library = _library(table) if output == "default" else _OUTPUTS[output]
        # The engine has fewer types than a frame has, so columns that do not change do not pass it.
        is_same = bool(library) and library == _library(table)
        unchanged = {n for n in names if isinstance(self.masks_.get(n), Identity | None)}
        read = [name for name in names if not (is_same and name in unchanged)]
        frame = _frame(table, self._masked(table, read), names, library)
        if output == "default" and isinstance(X, np.ndarray):
            return np.array([*zip(*(c.to_pylist() for c in frame.columns), strict=True)], object)
        return frame

    def _output(self) -> str:
        """Return the kind of output that `set_output` or scikit-learn's `set_config` selected."""
        if "transform" in self._sklearn_output_config:
            return self._sklearn_output_config["transform"]
        if "sklearn" not in sys.modules:
            return "default"
        from sklearn import get_config

        return str(get_config()["transform_output"])

    def _masked(self, X: Any, names: Sequence[str]) -> pa.Table:
        """Return columns as an Arrow table, masked unless they have no mask."""
        source = open_table(X)
        for name in self._names_out:
            column, mask = source.require(name, where="seen by fit"), self.masks_.get(name)
            kind = Kind.of(column.type())
            if mask is not None and kind is not None:
                mask.check(kind, name)
        if self._unseen() is Unseen.ERROR:
            refuse_unseen(count_unseen(source, self.masks_))
        if not names:
            return pa.table({})
        masks: dict[str, Mask | None] = {name: self.masks_.get(name) for name in names}
        row = _ROW.ljust(1 + max(map(len, source.columns)), "_")  # no column has this name
        numbered = Source(source.table.mutate(**{row: ibis.row_number()}), source.origin)
        noise = noise_of(masks)
        plain = {name: None if name in noise else mask for name, mask in masks.items()}
        masked = masked_table(numbered, plain | {row: None}).order_by(row).select(*names)
        return draw_columns(source.collect(masked), noise, seed=self.seed)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to a table and mask it.

        Examples
        --------
        >>> import aegis
        >>> import polars
        >>> people = polars.DataFrame({"age": [23, 38, 61]})
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> masking.fit_transform(people).height
        3
        """
        return self.fit(X, y).transform(X)

    def get_feature_names_out(
        self,
        input_features: Sequence[str] | None = None,  # noqa: ARG002 - the protocol's signature
    ) -> npt.NDArray[np.object_]:
        """Return the names of the columns that `transform` returns, shape (n_features_out,).

        Examples
        --------
        >>> import aegis
        >>> import polars
        >>> people = polars.DataFrame({"age": [23, 38, 61]})
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> list(masking.fit(people).get_feature_names_out())
        ['age']
        """
        self._require_fitted("get_feature_names_out")
        return self._names_out

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the kind of output of `transform`: `default` (same as input), `pandas`, `polars` or `arrow`.

        None changes nothing.

        Raises
        ------
        PolicyError
            Another name is given.

        Examples
        --------
        >>> import aegis
        >>> import polars
        >>> people = polars.DataFrame({"age": [23, 38, 61]})
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> type(masking.set_output(transform="arrow").fit_transform(people)).__name__
        'Table'
        """
        if transform is None:
            return self
        require_known("output of a transformer", transform, _OUTPUTS)
        self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "masks_")

    def _require_fitted(self, method: str) -> None:
        """Refuse `method` before `fit`, with scikit-learn's error if it is imported."""
        if self.__sklearn_is_fitted__():
            return
        message, hint = "The transformer is not fitted.", f"Call fit before {method}."
        if "sklearn" not in sys.modules:
            raise DataError(message, hint=hint)
        from sklearn.exceptions import NotFittedError

        class NotFitted(DataError, NotFittedError):  # type: ignore[misc]  # noqa: N818 - as its bases
            """The transformer is not fitted: an error of both Aegis and scikit-learn."""

        raise NotFitted(message, hint=hint)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - the protocol's signature
        """Return the constructor's parameters.

        Examples
        --------
        >>> import aegis
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> masking.get_params()["keep_others"]
        False
        """
        names = ("configuration", "policy", "keep_others", "unseen", "seed", "breach")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **parameters: Any) -> Self:
        """Set constructor parameters; raise `PolicyError` for unknown ones.

        Examples
        --------
        >>> import aegis
        >>> masking = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}})
        >>> masking.set_params(keep_others=True).keep_others
        True
        """
        allowed = self.get_params()
        for name, value in parameters.items():
            require_known("parameter", name, allowed)
            setattr(self, name, _plain(value) if name == "configuration" else value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: the transformer accepts any type and keeps missing values."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True, string=True, categorical=True),
        )

    def __repr__(self) -> str:
        try:
            masks = self._masks()
        except PolicyError:  # `fit` says what is wrong
            return f"MaskingTransformer({reprlib.repr(self.configuration)})"
        return f"MaskingTransformer({', '.join(f'{n}={m}' for n, m in masks.items())})"

    def _masks(self) -> dict[str, Mask | None]:
        check_arguments(type(self).__init__, self.get_params())
        if isinstance(self.configuration, Configuration):
            return dict(self.configuration.masks)
        for name in self.configuration:
            if not isinstance(name, str):
                raise PolicyError(
                    f"A column of the configuration is {name!r}, of type {type(name).__name__}.",
                    hint=f"Write the name of the column as text: '{name}'.",
                )
        policy = self._policy()
        attributes = {} if policy is None else policy.attributes
        return {
            name: spec
            if isinstance(spec, Mask)
            else parse_mask(
                spec,
                hierarchy=attributes[name].hierarchy if name in attributes else None,
                where=f"attribute {name!r}",
            )
            for name, spec in self.configuration.items()
        }

    def _unseen(self) -> Unseen:
        if self.unseen is not None:
            return member(Unseen, self.unseen, "treatment of unseen values")
        policy = self._policy()
        return Unseen.ERROR if policy is None else policy.unseen

    def _policy(self) -> Policy | None:
        return None if self.policy is None else as_policy(self.policy)


def _plain(choice: Any) -> Any:
    """Return the configuration of an advice or of an entry of its ranking; anything else as given.

    scikit-learn copies and pickles the parameters of an estimator, and an advice is large.
    """
    return configuration_to_apply(choice)[0] if isinstance(choice, Ranked | Advice) else choice


_ROW = "__aegis_row__"
_BREACHES = ("warn", "error")
_OUTPUTS = {"default": "", "pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
"""The library of each kind of output."""


def _named(table: Any) -> Any:
    """Return a NumPy array as a table with columns `x0`, `x1`, ...; other types stay as they are.

    Raises
    ------
    DataError
        The array has not two dimensions.
    """
    if not isinstance(table, np.ndarray):
        return table
    if table.ndim != 2:
        raise DataError(
            f"An array of {table.ndim} dimensions was given.", hint="Give rows and columns: 2."
        )
    return pa.table({f"x{i}": pa.array(table[:, i].tolist()) for i in range(table.shape[1])})


def _library(table: Any) -> str:
    """Return the library of a data frame or Arrow table, or of the class that it builds on; empty
    for other tables.
    """
    for kind in type(table).__mro__:
        library = kind.__module__.split(".")[0]
        if library in _OUTPUTS.values() and kind.__name__ in ("DataFrame", "LazyFrame", "Table"):
            return library
    return ""


def _frame(table: Any, masked: pa.Table, names: Sequence[str], library: str) -> Any:
    """Return columns as a frame of a library: those of `masked`, and others as `table` has them.

    `names` are the columns in their order. If `library` is empty, the result is an Arrow table.
    """
    read = set(masked.column_names)
    if library == "pandas":
        import pandas

        frame, position = masked.to_pandas(), {}
        if read < set(names):
            position = {str(name): i for i, name in enumerate(table.columns)}
        columns = {n: (frame[n] if n in read else table.iloc[:, position[n]]).array for n in names}
        index = table.index if _library(table) == "pandas" else None
        return pandas.DataFrame(columns, index=index)
    if library == "polars":
        import polars

        frame = polars.DataFrame(masked)
        others = table.lazy().collect() if read < set(names) else frame
        return polars.DataFrame([(frame if n in read else others)[n] for n in names])
    return pa.table({n: (masked if n in read else table)[n] for n in names})
