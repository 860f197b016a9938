"""A configuration as a step of a scikit-learn pipeline."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import aegis
from aegis.errors import DataError, NoAdmissibleConfiguration, PolicyError
from aegis.masks import Bucketize

MASKS = {"age": {"bucketize": {"width": 10}}, "job": {"keep_frequent": {"count": 1}}}
TRAIN = pd.DataFrame(
    {
        "age": [39, 41, 20, 65, 23, 58, 31, 47],
        "job": ["a", "a", "b", "a", "c", "b", "a", None],
        "other": range(8),
    },
    index=[3, 1, 4, 15, 9, 2, 6, 5],
)
TARGET = [1, 1, 0, 1, 0, 1, 0, 1]


def test_rows_keep_their_order_and_index() -> None:
    masked = aegis.MaskingTransformer(MASKS).fit_transform(TRAIN)
    assert list(masked.index) == list(TRAIN.index)
    assert list(masked.columns) == ["age", "job"]
    assert masked["age"].tolist() == [
        f"[{a // 10 * 10}, {a // 10 * 10 + 10}[" for a in TRAIN["age"]
    ]
    assert [None if pd.isna(v) else v for v in masked["job"]] == [
        "a",
        "a",
        "other",
        "a",
        "other",
        "other",
        "a",
        None,
    ]


def test_fit_checks_the_rule_if_asked() -> None:
    policy = {
        "version": 1,
        "privacy": {"k": 2},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": ["identity", {"bucketize": {"width": 50}}],
            },
            "job": {"role": "quasi-identifier", "masks": ["suppress"]},
        },
    }
    fine = {"age": {"bucketize": {"width": 10}}, "job": "suppress"}
    coarse = {"age": {"bucketize": {"width": 50}}, "job": "suppress"}
    masked = aegis.MaskingTransformer(fine, policy).fit_transform(TRAIN)  # it only masks
    assert masked["age"].value_counts().min() == 1
    with pytest.warns(UserWarning, match="break the privacy rule: k-anonymity"):
        aegis.MaskingTransformer(fine, policy, breach="warn").fit(TRAIN)
    refusing = aegis.MaskingTransformer(fine, policy, breach="error")
    with pytest.raises(NoAdmissibleConfiguration, match="suppresses no rows: choose coarser"):
        refusing.fit(TRAIN)
    meets = aegis.MaskingTransformer(coarse, policy, breach="error").fit(TRAIN)
    assert len(meets.transform(TRAIN.head(1))) == 1  # a later row is never checked
    with pytest.raises(PolicyError, match="response to a breach 'shout'"):
        refusing.set_params(breach="shout").fit(TRAIN)
    with pytest.raises(PolicyError, match="needs a policy"):
        aegis.MaskingTransformer(fine, breach="warn").fit(TRAIN)


def test_fit_checks_the_rule_by_persons_and_sensitive_values_that_the_output_hides() -> None:
    """Rows were counted instead of persons: two rows of one person met k = 2."""
    rows = pd.DataFrame({"age": [31, 31, 52, 52], "who": list("aabc"), "ill": list("xyzz")})
    mapping: dict[str, Any] = {
        "version": 1,
        "privacy": {"k": 2},
        "person": "who",
        "attributes": {"age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }

    def fitted(table: pd.DataFrame, age: str = "identity") -> aegis.MaskingTransformer:
        return aegis.MaskingTransformer({"age": age}, mapping, breach="error").fit(table)

    with pytest.raises(NoAdmissibleConfiguration, match="k-anonymity: 1 person"):
        fitted(rows)
    assert list(fitted(rows, "suppress").transform(rows).columns) == ["age"]
    with pytest.raises(DataError, match="the table of fit lacks who"):
        fitted(rows[["age"]])
    del mapping["person"]
    mapping["attributes"]["ill"] = {"role": "sensitive"}
    mapping["privacy"] = {"l_diversity": {"attribute": "ill", "l": 2}}
    with pytest.raises(NoAdmissibleConfiguration, match="l-diversity of ill: 2 rows"):
        fitted(rows)


def test_what_is_no_configuration_or_policy_is_refused() -> None:
    for given_, policy, words in (
        ("best.yaml", None, "configuration is 'best.yaml', of type str"),
        (["age"], None, "configuration is"),
        (MASKS, "policy.yaml", "Cannot read policy file policy.yaml"),
    ):
        transformer = aegis.MaskingTransformer(given_, policy)  # type: ignore[arg-type]
        with pytest.raises(PolicyError, match=words) as refused:
            transformer.fit(TRAIN)
        assert refused.value.hint
        assert repr(transformer).startswith("MaskingTransformer(")


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60), st.integers(1, 50))
def test_masks_as_the_definition_says(ages: list[int], width: int) -> None:
    table = pa.table({"age": pa.array(ages, pa.int64())})
    shown = aegis.MaskingTransformer({"age": Bucketize(width=width, show="lower")}).fit_transform(
        table
    )
    assert shown["age"].to_pylist() == [math.floor(a / width) * width for a in ages]


def test_test_rows_are_masked_by_what_training_rows_taught() -> None:
    masking = aegis.MaskingTransformer({"age": {"quantiles": {"count": 2}}}).fit(TRAIN)
    edge = masking.masks_["age"].parameters()["edges"][0]
    test = pd.DataFrame({"age": [edge - 1, edge, edge + 1000]})
    low, high, far = masking.transform(test)["age"]
    assert low != high
    assert high == far


def test_works_in_a_pipeline_and_can_be_cloned() -> None:
    masking = ColumnTransformer([("mask", aegis.MaskingTransformer(MASKS), ["age", "job"])])
    model = make_pipeline(masking, OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    fitted = clone(model).fit(TRAIN, TARGET)
    assert fitted.predict(TRAIN).shape == (8,)
    names = aegis.MaskingTransformer(MASKS).fit(TRAIN).get_feature_names_out()
    assert names.tolist() == ["age", "job"]


@pytest.mark.parametrize("kind", [pl.DataFrame, pa.Table.from_pandas])
def test_a_frame_comes_back_as_the_same_kind(kind: object) -> None:
    plain = TRAIN.reset_index(drop=True)
    given_frame = kind(plain)  # type: ignore[operator]
    masked = aegis.MaskingTransformer(MASKS, keep_others=True).fit_transform(given_frame)
    assert isinstance(masked, type(given_frame))
    expected = aegis.MaskingTransformer(MASKS, keep_others=True).fit_transform(plain)
    assert list(masked.to_pandas()["age"]) == list(expected["age"])
    assert list(masked.to_pandas()["other"]) == list(range(8))


PLAIN = pd.DataFrame(
    {
        "age": [39, 41, 20],
        "kind": pd.Categorical(["b", None, "a"], ["b", "a", "unused"], ordered=True),
        "count": pd.array([1, None, 3], dtype="Int64"),
        "flag": pd.array([True, None, False], dtype="boolean"),
        "seen": pd.to_datetime(["2026-06-01"] * 3).tz_localize("Europe/Berlin"),
        "month": pd.period_range("2026-01", periods=3, freq="M"),
        7: [[1], [2], None],
    },
    index=[4, 4, 2],
)


def test_columns_without_a_mask_keep_their_type() -> None:
    """Categories became texts, whole numbers with nulls floats, and times of Berlin times of UTC."""
    masks = {"age": {"bucketize": {"width": 10}}, "kind": "identity"}
    masked = aegis.MaskingTransformer(masks, keep_others=True).fit_transform(PLAIN)
    assert list(masked.columns) == list(map(str, PLAIN.columns))
    named = PLAIN.set_axis(masked.columns, axis=1)
    pd.testing.assert_frame_equal(masked.drop(columns="age"), named.drop(columns="age"))
    assert masked["age"].tolist() == ["[30, 40[", "[40, 50[", "[20, 30["]
    alone = aegis.MaskingTransformer({"kind": "identity"}).fit_transform(PLAIN)
    pd.testing.assert_series_equal(alone["kind"], PLAIN["kind"])


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_of_polars_and_arrow_keep_their_type(lazy: bool) -> None:
    frame = pl.DataFrame(
        {
            "kind": pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
            "age": [39, 41],
            "at": pl.Series(["10:00:00", None]).str.to_time(),
        }
    )
    step = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}}, keep_others=True)
    masked = step.fit_transform(frame.lazy() if lazy else frame)
    assert masked.columns == frame.columns
    assert masked.drop("age").equals(frame.drop("age"))
    assert masked.drop("age").schema == frame.drop("age").schema
    table = frame.to_arrow()
    assert step.fit_transform(table).drop(["age"]).equals(table.drop(["age"]))


class Frame(pd.DataFrame):
    """A frame of another library that builds on pandas."""


def test_a_frame_that_builds_on_pandas_comes_back_as_pandas() -> None:
    masked = aegis.MaskingTransformer(MASKS).fit_transform(Frame(TRAIN))
    pd.testing.assert_frame_equal(masked, aegis.MaskingTransformer(MASKS).fit_transform(TRAIN))


def test_a_column_may_have_the_name_of_a_row_number() -> None:
    frame = TRAIN.rename(columns={"other": "__aegis_row__"})
    masked = aegis.MaskingTransformer(MASKS, keep_others=True).fit_transform(frame)
    assert masked["__aegis_row__"].tolist() == list(range(8))


def test_the_kind_of_output_survives_clone_and_is_scikit_learns() -> None:
    """A grid search clones its steps, and so lost what `set_output` had chosen."""
    import sklearn

    step = aegis.MaskingTransformer(MASKS).set_output(transform="polars")
    assert isinstance(clone(step).fit_transform(TRAIN), pl.DataFrame)
    plain = aegis.MaskingTransformer(MASKS)
    with sklearn.config_context(transform_output="polars"):
        assert isinstance(plain.fit_transform(TRAIN), pl.DataFrame)
        chosen = clone(plain).set_output(transform="default")
        assert isinstance(chosen.fit_transform(TRAIN), pd.DataFrame)
    assert isinstance(plain.fit_transform(TRAIN), pd.DataFrame)


def test_names_of_columns_are_texts() -> None:
    with pytest.raises(PolicyError, match="A column of the configuration is 0, of type int"):
        aegis.MaskingTransformer({0: "suppress"}).fit(pd.DataFrame({0: [1]}))  # type: ignore[dict-item]


def test_unseen_values_are_refused_or_shown_as_a_star() -> None:
    masks = {"job": {"group": {"groups": {"x": ["a"], "y": ["b", "c"]}}}}
    seen, unseen = TRAIN[["job"]], pd.DataFrame({"job": ["a", "zzz"]})
    strict = aegis.MaskingTransformer(masks).fit(seen)
    with pytest.raises(DataError, match="job \\(1 row\\)"):
        strict.transform(unseen)
    lenient = aegis.MaskingTransformer(masks, unseen="suppress").fit(seen)
    assert lenient.transform(unseen)["job"].tolist() == ["x", "*"]


def test_mistakes_get_one_clear_error() -> None:
    with pytest.raises(DataError, match="not fitted"):
        aegis.MaskingTransformer(MASKS).transform(TRAIN)
    with pytest.raises(DataError, match="not fitted"):
        aegis.MaskingTransformer(MASKS).get_feature_names_out()
    with pytest.raises(DataError, match="No column 'agee'"):
        aegis.MaskingTransformer({"agee": "suppress"}).fit(TRAIN)
    with pytest.raises(PolicyError, match="Unknown mask"):
        aegis.MaskingTransformer({"age": "bucketise"}).fit(TRAIN)
    with pytest.raises(PolicyError, match="does not fit"):
        aegis.MaskingTransformer({"job": {"bucketize": {"width": 2}}}).fit(TRAIN)
    with pytest.raises(PolicyError, match="unseen"):
        aegis.MaskingTransformer(MASKS, unseen="drop").fit(TRAIN)
    with pytest.raises(PolicyError, match="policy is 5, of type int"):
        aegis.MaskingTransformer(aegis.Configuration("none", {}), 5).fit(TRAIN)  # type: ignore[arg-type]
    for wrong in ({"keep_others": "yes"}, {"seed": "yes"}):
        with pytest.raises(PolicyError, match="is 'yes', of type str"):
            aegis.MaskingTransformer(MASKS, **wrong).fit(TRAIN)  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="names no column"):
        aegis.MaskingTransformer({}).fit(TRAIN)
    with pytest.raises(DataError, match="has no rows"):
        aegis.MaskingTransformer(MASKS).fit(TRAIN.iloc[:0])
    texts = TRAIN.assign(age="old")
    with pytest.raises(PolicyError, match="'age' does not fit a column of text"):
        aegis.MaskingTransformer(MASKS).fit(TRAIN).transform(texts)
    with pytest.raises(PolicyError, match="parameter"):
        aegis.MaskingTransformer(MASKS).set_params(nope=1)


def test_agrees_with_the_release_of_the_same_configuration() -> None:
    rows = pd.concat([TRAIN] * 5, ignore_index=True)
    rows["label"] = np.arange(len(rows)) % 2
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "label",
            "privacy": {"k": 2},
            "attributes": {
                "age": {"role": "quasi-identifier", "masks": [MASKS["age"]]},
                "job": {"role": "feature", "masks": [MASKS["job"]]},
            },
        }
    )
    best = aegis.advise(rows, policy, generate_count=1).require_best().configuration
    released = aegis.apply(rows, policy, best).data
    masked = aegis.MaskingTransformer(best, policy).fit_transform(pa.Table.from_pandas(rows))
    key = ["age", "job"]
    assert sorted(map(str, released.select(key).to_pylist())) == sorted(
        map(str, masked.select(key).to_pylist())
    )


def test_an_array_comes_out_as_an_array() -> None:
    given = np.array([[31, "a"], [48, "b"]], dtype=object)
    step = aegis.MaskingTransformer({"x0": {"bucketize": {"width": 10}}, "x1": "suppress"}).fit(
        given
    )
    assert step.get_feature_names_out().tolist() == ["x0", "x1"]
    masked = step.transform(given)
    assert isinstance(masked, np.ndarray)
    assert masked[:, 1].tolist() == ["*", "*"]
    assert masked[0, 0] != masked[1, 0]
    with pytest.raises(DataError, match="1 dimensions"):
        step.fit(np.array([1, 2]))


def test_the_output_is_what_was_asked_for() -> None:
    given = pa.table({"age": [31, 48]})
    step = aegis.MaskingTransformer({"age": {"bucketize": {"width": 10}}}).fit(given)
    assert type(step.transform(given)).__name__ == "Table"
    for name, module in (("pandas", "pandas"), ("polars", "polars"), ("default", "pyarrow")):
        frame = step.set_output(transform=name).transform(given)
        assert type(frame).__module__.split(".")[0] == module
    assert step.set_output(transform=None) is step
    with pytest.raises(PolicyError, match="Did you mean 'pandas'"):
        step.set_output(transform="panda")


def test_not_fitted_is_an_error_of_both() -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    step = aegis.MaskingTransformer({"age": "suppress"})
    with pytest.raises(NotFittedError):
        step.transform(pa.table({"age": [1]}))
    with pytest.raises(DataError, match="Call fit before transform"):
        step.transform(pa.table({"age": [1]}))
    with pytest.raises(NotFittedError):
        check_is_fitted(step)


@pytest.mark.parametrize(
    "name",
    ["check_get_params_invariance", "check_set_params", "check_no_attributes_set_in_init"],
)
def test_scikit_learns_own_checks_hold(name: str) -> None:
    """Those that apply: the others give masks numbers without names, or ask for no parameters."""
    from sklearn.utils import estimator_checks

    getattr(estimator_checks, name)(
        "MaskingTransformer", aegis.MaskingTransformer({"x0": "identity"})
    )


def test_an_advice_and_the_path_of_a_policy_are_taken(tmp_path: Path) -> None:
    """`Study` takes both; the transformer refused them. It is copied and pickled without the advice."""
    path = tmp_path / "policy.yaml"
    masks = {"role": "quasi-identifier", "masks": [{"bucketize": {"width": 20}}, "suppress"]}
    content = {"version": 1, "label": "y", "privacy": {"k": 2}, "attributes": {"age": masks}}
    path.write_text(json.dumps({**content, "unseen": "suppress"}))
    advice = aegis.advise(TRAIN.assign(y=TARGET), path, generate_count=2)
    best = advice.require_best()
    plain = aegis.MaskingTransformer(best.configuration, aegis.load_policy(path))
    expected = plain.fit_transform(TRAIN)
    for given_ in (advice, best):
        transformer = aegis.MaskingTransformer(given_, path)
        copied = pickle.loads(pickle.dumps(clone(transformer)))
        pd.testing.assert_frame_equal(copied.fit_transform(TRAIN), expected)
        changed = aegis.MaskingTransformer(MASKS, path).set_params(configuration=given_)
        assert changed.get_params()["configuration"] is best.configuration
