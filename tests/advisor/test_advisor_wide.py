"""Standard errors are left out where they would take long, and that is said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import aegis
from aegis.advisor import confidence


def advice(columns: int = 4) -> aegis.Advice:
    draw = np.random.default_rng(1)
    table = {f"c{j}": draw.integers(0, 6, 400) for j in range(columns)}
    table["y"] = np.where(draw.random(400) < 0.4 + 0.03 * table["c0"], "yes", "no")
    policy = {
        "version": 1,
        "label": "y",
        "privacy": {"k": 1},
        "attributes": {
            f"c{j}": {"role": "feature", "masks": ["identity", {"quantiles": {"count": 2}}]}
            for j in range(columns)
        },
    }
    return aegis.advise(pa.table(table), aegis.load_policy(policy), generate_count=8)


def test_the_best_have_standard_errors_where_there_is_time() -> None:
    found = advice()
    assert all(ranked.stderr is not None for ranked in found.ranking[:8])
    assert not any("standard errors were computed" in warning for warning in found.warnings)


@pytest.mark.parametrize(("effort", "few"), [(0.0, 0), (4e5, None)])
def test_on_wide_tables_fewer_have_them(
    effort: float, few: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = advice()
    monkeypatch.setattr(confidence, "EFFORT", effort)
    found = advice()
    with_errors = [ranked.stderr is not None for ranked in found.ranking]
    count = sum(with_errors)
    assert count == few if few is not None else 2 <= count < 8
    assert with_errors == sorted(with_errors, reverse=True)
    [warning] = [one for one in found.warnings if "standard errors were computed" in one]
    assert ("of none" if not count else f"of the best {count} only") in warning
    # Scores and order are as ever, and so are the errors that there are.
    pairs = list(zip(found.ranking, whole.ranking, strict=True))
    assert [(one.name, one.score) for one, _ in pairs] == [(o.name, o.score) for _, o in pairs]
    for one, other in pairs[:count]:
        assert one.stderr == pytest.approx(other.stderr)


def test_a_label_of_a_thousand_classes_is_ranked_and_searched() -> None:
    """The expected AUC is of each three classes: of a thousand it took 112 GiB, and was no bonus."""
    table = pa.table(
        {"a": [i % 5 for i in range(4000)], "y": [f"c{i % 1000}" for i in range(4000)]}
    )
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2},
            "attributes": {"a": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
        }
    )
    ranked, searched = aegis.advise(table, policy), aegis.search(table, policy)
    assert ranked.ranking[0].admissible
    assert searched.ranking[0].admissible
    assert ranked.expected is searched.expected is None
