"""Audit figures against pycanon where its definitions are those of the papers, and where not."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from privacy_brute import LABELS, Rows, groups, recursive, rows, table_of
from pycanon import anonymity

from aegis.privacy import report


def canon(measure: Callable[..., object], frame: pd.DataFrame) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(frame, ["q"], ["s"])


@settings(max_examples=8)
@given(rows)
def test_figures_equal_pycanon(given: Rows) -> None:
    frame = pd.DataFrame({"q": [f"c{c}" for c, _ in given], "s": [LABELS[v] for _, v in given]})
    numbers = pd.DataFrame({"q": frame["q"], "s": [v for _, v in given]})
    ours = report(table_of(given))
    one = ours.attributes["s"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        k = anonymity.k_anonymity(frame, ["q"])
    assert (ours.k, one.diversity.distinct) == (k, canon(anonymity.l_diversity, frame))
    alpha, same = canon(anonymity.alpha_k_anonymity, frame)  # type: ignore[misc]
    assert (one.alpha, ours.k) == (pytest.approx(alpha), same)
    entropy = canon(anonymity.entropy_l_diversity, frame)
    # pycanon truncates exp(entropy), also where rounding leaves it just below a whole number.
    assert entropy in (math.floor(one.diversity.entropy), math.floor(one.diversity.entropy - 1e-9))  # type: ignore[arg-type,operator]
    assert one.closeness.equal == pytest.approx(canon(anonymity.t_closeness, frame), abs=1e-12)
    if len(set(numbers["s"])) > 1:
        assert one.closeness.ordered == pytest.approx(
            canon(anonymity.t_closeness, numbers), abs=1e-12
        )
    assert one.likeness.basic == pytest.approx(
        canon(anonymity.basic_beta_likeness, frame), abs=1e-12
    )
    enhanced = canon(anonymity.enhanced_beta_likeness, frame)
    assert one.likeness.enhanced_limit == pytest.approx(enhanced, abs=1e-12)
    assert one.disclosure.present == pytest.approx(
        canon(anonymity.delta_disclosure, frame), abs=1e-12
    )


def test_a_null_quasi_identifier_is_a_value() -> None:
    frame = pd.DataFrame({"q": ["a", "a", None], "s": ["x", "y", "z"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert anonymity.k_anonymity(frame, ["q"]) == 2
    codes = pd.factorize(frame["q"], use_na_sentinel=False)[0]
    assert np.unique(codes).tolist() == [0, 1]
    assert report(table_of([(int(code), 0) for code in codes])).k == 1


def test_recursive_c_counts_from_the_most_frequent_value() -> None:
    """pycanon sorts ascending; the definition's r_1 is the most frequent value."""
    given = [(0, 0)] * 6 + [(0, 1)] * 2 + [(0, 2)]
    frame = pd.DataFrame({"q": ["c"] * 9, "s": [LABELS[v] for _, v in given]})
    c, l = canon(anonymity.recursive_c_l_diversity, frame)  # type: ignore[misc]  # noqa: E741
    assert (c, l) == (1, 3)
    ours = report(table_of(given)).attributes["s"].diversity.recursive_c
    assert ours["3"] == recursive(groups(given)[0], 3) == 6
    assert ours["2"] == 2
    assert ours["4"] is None


def test_enhanced_beta_has_no_value_where_a_gain_passes_minus_ln_p() -> None:
    """pycanon caps the largest gain; the definition bounds each value's own gain by -ln p."""
    given = [(0, 0), (0, 0), (1, 1), (1, 0), (1, 1), (1, 1)]
    one = report(table_of(given)).attributes["s"]
    assert one.likeness.basic == pytest.approx(1)
    assert one.likeness.enhanced is None
    assert one.likeness.enhanced_limit == pytest.approx(math.log(2))
