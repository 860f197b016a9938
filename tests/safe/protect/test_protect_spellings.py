"""One row of a text file does not turn how the whole column is spelt in what level noise publishes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aegis.errors import PolicyError
from aegis.policy import Label, load_policy
from aegis.safe.protect import protect
from aegis.safe.protect.columns import plain_text
from aegis.sources import open_table
from aegis.summary import load_bundle, merge, save_bundle, summarize

SPELLINGS = {
    "decimals": ["1.50", "2.50", "3.50"],
    "point zero": ["1.0", "2.0", "3.0"],
    "exponents": ["1e3", "2e3", "3e3"],
    "Booleans": ["True", "False", "True"],
    "months": ["13-Jul-1984", "14-Jul-1984", "15-Aug-1984"],
    "years first": ["2020/01/13", "2020/01/14", "2020/02/15"],
    "points": ["03.01.2020", "04.01.2020", "05.02.2020"],
    "times": ["2020-01-13 10:00:00", "2020-01-14 10:00:00", "2020-02-15 10:00:00"],
    "codes": ["007", "008", "009"],
}
BY_CONTEXT = {
    "days first": ["13/01/2020", "14/01/2020", "15/02/2020"],
    "months first": ["01-13-2020", "01-14-2020", "02-15-2020"],
}


def policy_for(column, **keys):
    other = "y" if column == "label" else "x"
    entries = {
        "city": {"role": "quasi-identifier", "masks": ["identity", "suppress"]},
        other: {"role": "feature", "masks": ["identity", "suppress"]} | keys,
    }
    label = "x" if column == "label" else "y"
    return load_policy({"version": 1, "label": label, "attributes": entries})


def written(folder, values, *more):
    rows = [f"{values[i % 3]},{'ab'[i % 2]},{('no', 'yes')[i % 5 > 1]}" for i in range(300)]
    page = folder / f"{len(more)}.csv"
    page.write_text("\n".join(["x,city,y", *rows, *(f"{value},a,yes" for value in more)]) + "\n")
    return page


def shown(page, policy):
    made = protect(page, policy, epsilon=20, delta=1e-3)
    return made.classes, [
        (a.kind, [c.labels for c in a.candidates]) for a in made.attributes.values()
    ]


@pytest.mark.parametrize("column", ["label", "feature"])
@pytest.mark.parametrize("values", SPELLINGS.values(), ids=SPELLINGS)
def test_a_text_in_one_row_changes_no_name(tmp_path, values, column):
    policy = policy_for(column)
    with_text = shown(written(tmp_path, values, "n.a. here"), policy)
    assert shown(written(tmp_path, values), policy) == with_text


@pytest.mark.parametrize("values", SPELLINGS.values(), ids=SPELLINGS)
def test_a_text_by_itself_is_what_its_column_makes_of_it(tmp_path, values):
    source = open_table(written(tmp_path, values))
    read = [str(v) for v in source.collect(source.table.select("x").distinct())["x"].to_pylist()]
    assert {plain_text(v) for v in read} == {plain_text(v) for v in values}


@pytest.mark.parametrize("column", ["label", "feature"])
@pytest.mark.parametrize("values", BY_CONTEXT.values(), ids=BY_CONTEXT)
def test_dates_whose_order_other_values_decide_are_refused(tmp_path, values, column):
    page = written(tmp_path, values)
    with pytest.raises(PolicyError, match="Other values decide how each value of 'x' is read"):
        protect(page, policy_for(column), epsilon=20, delta=1e-3)


@pytest.mark.parametrize("column", ["label", "feature"])
def test_a_summary_says_which_columns_other_values_decide(tmp_path, column):
    policy = policy_for(column)
    summary = summarize(written(tmp_path, BY_CONTEXT["days first"]), policy)
    save_bundle(summary, tmp_path / "t.aegis")
    for known in (summary, load_bundle(tmp_path / "t.aegis"), merge(summary, summary)):
        with pytest.raises(PolicyError, match="Other values decide how each value of 'x' is read"):
            protect(known, policy, epsilon=20, delta=1e-3)


def test_a_summary_that_does_not_say_it_is_refused(tmp_path):
    policy = policy_for("feature")
    summary = summarize(written(tmp_path, BY_CONTEXT["days first"]), policy)
    unknown = replace(summary, read_by_context=None)
    save_bundle(unknown, tmp_path / "t.aegis")
    for given in (unknown, load_bundle(tmp_path / "t.aegis"), merge(unknown, summary)):
        with pytest.raises(PolicyError, match="does not say how the text of 'y', 'city', 'x' was"):
            protect(given, policy, epsilon=20, delta=1e-3)
    declared = replace(policy, label=Label("y", classes=("no", "yes")))
    known = summarize(written(tmp_path, BY_CONTEXT["days first"]), declared)
    known = replace(known, read_by_context=None)
    assert protect(known, declared, epsilon=20, delta=1e-3, public=["*"]).classes


def test_dates_of_a_declared_or_public_column_are_taken_as_they_are_read(tmp_path):
    page = written(tmp_path, BY_CONTEXT["days first"])
    assert protect(page, policy_for("feature", type="date"), epsilon=20, delta=1e-3).classes
    assert protect(page, policy_for("feature"), epsilon=20, delta=1e-3, public=["x"]).classes


def test_numbers_with_marks_that_the_file_decides_are_refused(tmp_path):
    page = written(tmp_path, ['"1,5"', '"2,5"', '"3,5"'])
    from aegis.sources import Reading

    source = open_table(page, reading=Reading(delimiter=",", decimal=","))
    assert source.by_context == ("x",)
    with pytest.raises(PolicyError, match="marks or units"):
        protect(source, policy_for("feature"), epsilon=20, delta=1e-3)
