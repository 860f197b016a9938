"""The risk of records of any table, and the command that states it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import aegis
from aegis.cli.main import app
from aegis.errors import DataError, PolicyError

SURVEY = pa.table(
    {
        "a": [2, 3, 2, 2, 3, 3, 1, None],
        "b": ["x", "x", "x", "x", "x", "x", "y", "x"],
        "c": [1, 3, None, 2, 1, 1, None, 1],
        "weight": [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0],
        "income": [10, 20, 30, 40, 50, 60, 70, 80],
    }
)
KEY = ("a", "b", "c")


def test_missing_values_agree_with_any_where_they_are_wildcards() -> None:
    """The table with missing values of sdcMicro's tests (test_indivRisk.R, approximation)."""
    risk = aegis.record_risk(
        SURVEY, quasi_identifiers=KEY, weight="weight", missing="wildcard", approximate=True
    )
    expected = [0.013698630, 0.085791288, 0.010554090, 0.032466112]
    expected += [0.009836066, 0.009836066, 0.039316254, 0.005973716]
    assert risk.risks == pytest.approx(expected, rel=1e-6)
    assert risk.expected == pytest.approx(sum(expected))
    # A record that agrees with any stands for its own weight, and not for a share of each class.
    assert (risk.people_in_all, risk.unknown) == (394, 3)


def test_key_variables_that_r_wrote(tmp_path: Path) -> None:
    """As write.csv of sdcMicro's key variables gives them; counts as in its test_freqCalc.R."""
    rows = ["1,2,3,1,18", "2,3,3,3,45.5", "3,2,3,NA,39", "4,2,3,2,17", "5,3,3,1,92"]
    rows += ["6,3,3,1,8", "7,1,4,NA,123.5", "8,2,3,1,51"]
    path = tmp_path / "keys.csv"
    path.write_text("\n".join(['"","Key1","Key2","Key3","w"', *rows, ""]))
    asked = ["risk", str(path), "--quasi-identifiers", "Key1,Key2,Key3", "--weight", "w"]
    asked += ["--missing", "wildcard", "--format", "json"]
    run = CliRunner().invoke(app, [*asked, "--null", "NA"])
    figures = json.loads(run.stdout)
    assert (figures["unique"], figures["in_pairs"], figures["people"]) == (2, 3, 394)
    assert "--null NA" not in run.stderr
    said = " ".join(CliRunner().invoke(app, asked).stderr.split())
    assert "If one is written NA: --null NA" in said


def test_missing_values_are_values_by_default() -> None:
    risk = aegis.record_risk(SURVEY, quasi_identifiers=KEY)
    assert risk.counts.tolist() == [1, 1, 1, 1, 2, 2, 1, 1]
    assert risk.risks.tolist() == [1, 1, 1, 1, 0.5, 0.5, 1, 1]
    figures = risk.to_dict()
    assert (figures["unique"], figures["in_pairs"], figures["people"]) == (6, 2, 8)
    assert figures["risk"]["at_risk"] == {"0.01": 8, "0.05": 8, "0.1": 8, "0.2": 8, "0.5": 6}


def test_special_uniques_by_column() -> None:
    figures = aegis.record_risk(SURVEY, quasi_identifiers=KEY, special=True).to_dict()
    special = figures["special_uniques"]
    assert special["records"] == 6
    assert set(special["contributions"]) == set(KEY)
    assert aegis.record_risk(SURVEY, quasi_identifiers=KEY, special=True).records().num_columns == 5


def test_numbers_beside_the_original_ones() -> None:
    masked = SURVEY.set_column(4, "income", pa.array([10, 20, 30, 40, 50, 60, 70, 90]))
    risk = aegis.record_risk(
        masked, quasi_identifiers=["b"], original=SURVEY, numbers=["income", "weight"]
    )
    assert risk.numbers is not None
    assert risk.numbers.interval_share == 7 / 8
    spread = pa.compute.stddev(SURVEY["income"], ddof=1).as_py()
    assert risk.numbers.il1s == pytest.approx(10 / (spread * 2**0.5))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"quasi_identifiers": []}, PolicyError, "needs quasi-identifiers"),
        ({"quasi_identifiers": ["z"]}, DataError, "No column 'z'"),
        ({"weight": "b"}, DataError, "holds string, not numbers"),
        ({"weight": "a"}, DataError, "is not above 0 in every row"),
        ({"missing": "wild"}, PolicyError, "Did you mean 'wildcard'|Unknown meaning"),
        ({"numbers": ["income"]}, PolicyError, "with those of the original"),
        ({"original": SURVEY}, PolicyError, "with those of the original"),
        (
            {"original": SURVEY.slice(1), "numbers": ["income"]},
            DataError,
            "has 7 rows, and .* 8",
        ),
        ({"fraction": 0}, PolicyError, "share of the population"),
        ({"largest": 0}, PolicyError, "at most 0 columns"),
        ({"interval": 0}, PolicyError, "interval is 0"),
    ],
)
def test_bad_input(options: dict[str, object], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        aegis.record_risk(SURVEY, **({"quasi_identifiers": KEY} | options))  # type: ignore[arg-type]


def test_persons_with_several_records_are_not_counted_as_records() -> None:
    """Two equal records of one person hid each other: the risk was stated as 0.5, and it is 1."""
    visits = pa.table({"patient": [1, 1, 2, 2], "age": [30, 30, 40, 40], "y": ["a", "b", "a", "b"]})
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "person": "patient",
            "attributes": {"age": {"role": "quasi-identifier"}},
        }
    )
    with pytest.raises(PolicyError, match="counts persons") as refused:
        aegis.record_risk(visits, policy=policy)
    assert "aegis audit" in str(refused.value.hint)
    assert aegis.audit(visits, policy=policy).report.k == 1


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(DataError, match="has no rows"):
        aegis.record_risk(SURVEY.slice(0, 0), quasi_identifiers=KEY)
