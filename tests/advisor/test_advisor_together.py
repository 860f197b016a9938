"""Releases put together, counted anew with pandas."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor.composition import compose, read_release, summary_after
from aegis.errors import DataError, PolicyError
from aegis.policy import Configuration, load_policy
from aegis.study import Study

MASKS = {
    "a": ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 4}}, "suppress"],
    "b": ["identity", {"keep_frequent": {"count": 1}}, "suppress"],
}


def policy(k: int, suppression: float = 0.3):
    attributes = {n: {"role": "quasi-identifier", "masks": m} for n, m in MASKS.items()}
    rule = {"k": k, "suppression": suppression}
    return load_policy({"version": 1, "label": "y", "privacy": rule, "attributes": attributes})


def composed(study: Study, *picks):
    """Return what releases that have left show together."""
    releases = [Configuration(str(i), masks) for i, masks in enumerate(picks)]
    return compose(study.summary, releases, study.policy.privacy, released_only=True)


def groups_of(study: Study, name: str, mask):
    return study.summary.attributes[name].candidate(mask).groups.tolist()


def classes_of(masked: pd.DataFrame, k: int) -> pd.Series:
    """Return which rows a release shows: those in classes of at least k."""
    sizes = masked.groupby(list(masked.columns), dropna=False)[masked.columns[0]].transform("size")
    return sizes >= k


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_joint_classes_are_those_that_pandas_counts(data):
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, 7), st.sampled_from("uvw"), st.sampled_from("xy")),
            min_size=12,
            max_size=40,
        ).filter(lambda r: len({y for *_, y in r}) == 2)
    )
    table = pd.DataFrame(rows, columns=["a", "b", "y"])
    k = data.draw(st.integers(2, 4))
    study = Study(table, policy(k))
    picks = [
        {n: data.draw(st.sampled_from(study.summary.attributes[n].candidates)).mask for n in MASKS}
        for _ in range(2)
    ]
    joint = composed(study, *picks)
    shown = []
    for masks in picks:
        columns = {}
        for n in MASKS:
            values = study.summary.attributes[n].values.to_pylist()
            group = dict(zip(values, groups_of(study, n, masks[n]), strict=True))
            columns[n] = table[n].map(group)
        shown.append(pd.DataFrame(columns))
    # A row that one release lacks shows its absence there.
    kept = [classes_of(one, k) for one in shown]
    parts = [
        one.where(there, -1).add_suffix(str(i))
        for i, (one, there) in enumerate(zip(shown, kept, strict=True))
    ]
    both = pd.concat(parts, axis=1)[kept[0] | kept[1]]
    sizes = both.groupby(list(both.columns), dropna=False).size()
    assert joint.rows == len(both)
    assert joint.verdict.suppressed_rows == int(sizes[sizes < k].sum())
    assert joint.alone == int((sizes == 1).sum())
    assert joint.holds is bool((sizes >= k).all())
    assert joint.verdict.smallest_before == (0 if sizes.empty else int(sizes.min()))


def test_a_coarser_release_after_a_finer_one_shows_nothing_new():
    table = pd.DataFrame(
        {"a": [i % 8 for i in range(64)], "b": list("uv") * 32, "y": list("xxyy") * 16}
    )
    study = Study(table, policy(2))
    fine, coarse = ({n: c[place].mask for n, c in _candidates(study).items()} for place in (0, -1))
    joint = composed(study, fine, coarse)
    assert joint.holds
    assert joint.breaking == ()


def test_one_release_is_none_together():
    table = pd.DataFrame({"a": [1, 2] * 8, "b": list("uv") * 8, "y": list("xxyy") * 4})
    study = Study(table, policy(2))
    with pytest.raises(PolicyError, match="you named 1"):
        composed(study, {n: c[0].mask for n, c in _candidates(study).items()})


def test_what_breaks_it_is_named():
    table = pd.DataFrame({"a": list(range(8)) * 4, "b": ["u"] * 32, "y": ["x", "y"] * 16})
    study = Study(table, policy(6, 0))
    masks = {"b": study.summary.attributes["b"].candidates[0].mask}
    a = study.summary.attributes["a"].candidates
    joint = composed(study, {"a": a[1].mask, **masks}, {"a": a[0].mask, **masks})
    assert joint.rows == 32, "the finer one shows nothing under k = 6, and the coarser one all rows"
    assert joint.holds


def _candidates(study: Study):
    return {n: study.summary.attributes[n].candidates for n in MASKS}


def test_protected_values_count_as_finely_as_the_releases_show_them():
    """Two values of one illness each are one value where both releases show the group."""
    table = pd.DataFrame(
        {
            "a": [0, 1] * 8,
            "s": [0, 1, 2, 3] * 4,
            "y": ["x", "y"] * 8,
        }
    )
    rule = {"k": 2, "suppression": 0, "l_diversity": {"attribute": "s", "l": 2}}
    attributes = {
        "a": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        "s": {"role": "sensitive", "masks": ["identity", {"bucketize": {"width": 4}}]},
    }
    study = Study(
        table,
        load_policy({"version": 1, "label": "y", "privacy": rule, "attributes": attributes}),
    )
    a, s = (study.summary.attributes[n].candidates for n in "as")
    exact = {"a": a[1].mask, "s": s[0].mask}
    grouped = {"a": a[1].mask, "s": s[1].mask}

    def verdict(*picks):
        releases = [Configuration(str(i), masks) for i, masks in enumerate(picks)]
        return compose(study.summary, releases, study.policy.privacy).verdict

    assert verdict(exact, exact).suppressed_rows == 0
    assert verdict(exact, grouped).suppressed_rows == 0
    assert verdict(grouped, grouped).suppressed_rows == 16


@pytest.mark.parametrize("given", [None, ["rows"], "rows", {"rows": "10"}])
def test_a_certificate_with_a_broken_input_is_no_certificate(tmp_path, given):
    rows = pd.DataFrame({"a": [1, 2] * 10, "b": ["u", "v"] * 10, "y": [0, 1, 1, 0] * 5})
    study, certificate = Study(rows, policy(2)), tmp_path / "c.json"
    study.apply(study.search(), tmp_path / "out.csv", certificate=certificate)
    document = json.loads(certificate.read_text())
    del document["digest"]
    certificate.write_text(json.dumps(document | {"input": given}))
    with pytest.raises(DataError, match="is not a certificate of a masking configuration"):
        read_release(certificate, study.policy)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "is a folder, not the certificate or the configuration of a release"),
        ("release.csv", "is a table, not the certificate or the configuration of a release"),
        ("none.json", "Cannot read certificate file"),
        ("none.yaml", "Cannot read configuration file"),
    ],
)
def test_an_earlier_release_is_named_by_its_certificate_or_configuration(tmp_path, name, told):
    (tmp_path / "release.csv").write_text("a,b\n1,u\n")
    with pytest.raises(PolicyError, match=told):
        read_release(tmp_path / name, policy(2))


def test_releases_may_have_different_labels(tmp_path):
    """The label of the first release is a quasi-identifier of the second, and the other way round."""
    rows = pd.DataFrame({"a": [1, 2, 3, 4] * 10, "b": ["u", "v"] * 20, "y": [0, 1, 1, 0, 1] * 8})
    quasi = {"role": "quasi-identifier", "masks": ["suppress"]}
    feature, rule = {"role": "feature", "masks": ["identity"]}, {"k": 2, "suppression": 0.3}
    shared = {"version": 1, "privacy": rule}
    first = load_policy(shared | {"label": "y", "attributes": {"a": quasi, "b": feature}})
    second = load_policy(shared | {"label": "b", "attributes": {"a": quasi, "y": quasi}})
    certificate = tmp_path / "first.json"
    study = Study(rows, first)
    study.apply(study.search(), tmp_path / "first.csv", certificate=certificate)
    earlier = read_release(certificate, second)
    # The first release showed its label.
    assert {name: str(mask) for name, mask in earlier.masks.items()} == {
        "a": "suppress",
        "y": "identity",
    }
    summary = summary_after(rows, second, [earlier])
    made = Study(summary, second).search()
    together = compose(summary, [earlier, made.best.configuration], second.privacy)
    assert together.classes == rows["y"].nunique()


def test_a_release_of_another_table_is_refused(tmp_path):
    """Joint classes of two tables say nothing of persons, so no command may say that they hold."""
    rows = pd.DataFrame({"a": [1, 2, 3, 4] * 10, "b": ["u", "v"] * 20, "y": [0, 1, 1, 0, 1] * 8})
    study = Study(rows, policy(2))
    advice = study.search()
    other = Study(rows.head(20), policy(2))
    certificate = tmp_path / "other.json"
    other.apply(other.search(), tmp_path / "other.csv", certificate=certificate)
    earlier = read_release(certificate, study.policy)
    told = "made from a table of 20 rows, but this table has 40"
    with pytest.raises(PolicyError, match=told):
        compose(study.summary, [earlier, advice.best.configuration], study.policy.privacy)
    with pytest.raises(PolicyError, match=told):
        summary_after(rows, study.policy, [earlier])
    with pytest.raises(PolicyError, match=told):
        study.apply(advice, after=[earlier])
