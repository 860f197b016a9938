"""A certificate is compared with the table that it was made from, and names earlier releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import certificates
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from certificates import changed

import aegis
from aegis.advisor.composition import read_release
from aegis.errors import DataError
from aegis.policy import load_policy
from aegis.policy.lines import read_yaml
from aegis.release import check_certificate
from aegis.report import render_certificate
from aegis.signing import seal


@pytest.fixture(scope="module", params=["parquet", "csv"])
def release(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, dict[str, Any]]:
    """Return the original file, the released one and the certificate; some rows are suppressed."""
    folder = tmp_path_factory.mktemp("release")
    original = folder / f"original.{request.param}"
    if request.param == "csv":
        csv.write_csv(certificates.TABLE, original)
    else:
        pq.write_table(certificates.TABLE, original)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "TABLE", original)
        made = certificates.suppressed(folder)
    return original, made.file, made.document


def test_the_original_confirms_what_only_it_shows(
    release: tuple[Path, Path, dict[str, Any]],
) -> None:
    original, file, document = release
    check = check_certificate(file, document, original=original)
    assert check.passed, list(map(str, check.mismatches))
    named = [text.partition(":")[0] for text in check.unchecked]
    assert "input" not in named
    assert "input.digest" in named
    assert not [name for name in named if name.startswith("utility")]
    assert "input.origin" in named


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("input.rows", 125),
        ("input.sha256", "0" * 64),
        ("utility.reference", 0.31),
        ("utility.stderr", 0.001),
        ("utility.lost_classes", {"maybe": 3}),
    ],
)
def test_a_lie_about_the_original_is_named(
    release: tuple[Path, Path, dict[str, Any]], place: str, value: Any
) -> None:
    original, file, document = release
    lie = changed(document, tuple(place.split(".")), value)
    if place == "input.rows":
        lie["suppressed_rows"] = 20
    if place == "utility.reference":
        lie["utility"]["kept"] = 100 * lie["utility"]["value"] / value
    lie = seal(lie)
    assert check_certificate(file, lie).passed
    named = [
        mismatch.what for mismatch in check_certificate(file, lie, original=original).mismatches
    ]
    assert place in {name if not name.startswith(place) else place for name in named}


def test_another_table_than_the_original_is_asked_about(
    release: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    _, masked, document = release
    other = tmp_path / "other.csv"
    other.write_text("region,earnings\n1,2\n3,4\n")
    with pytest.raises(DataError, match="policy of another table") as refused:
        check_certificate(masked, document, original=other)
    assert "other.csv) has: region, earnings." in refused.value.message
    columns = [name for name in document["policy"]["attributes"] if name != "bought"]
    other.write_text(f"{','.join(columns)}\n{','.join('1' for _ in columns)}\n")
    with pytest.raises(DataError, match="No column 'bought' in the table") as refused:
        check_certificate(masked, document, original=other)
    assert set(refused.value.hint.split("Allowed: ")[-1].rstrip(".").split(", ")) <= set(columns)


def test_another_dialect_is_named(release: tuple[Path, Path, dict[str, Any]]) -> None:
    original, file, document = release
    if original.suffix != ".csv":
        pytest.skip("no text")
    lie = seal(changed(document, ("input", "dialect", "delimiter"), ";"))
    check = check_certificate(file, lie, original=original)
    assert [mismatch.what for mismatch in check.mismatches] == ["input.dialect.delimiter"]


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the certificates of a release and of one that was made after it."""
    folder = tmp_path_factory.mktemp("second")
    coarser = {"bucketize": {"width": 40}}
    policy = load_policy(
        {
            **certificates.POLICY,
            "privacy": {"k": 4, "suppression": 0.3},
            "attributes": {
                **certificates.ATTRIBUTES,
                "age": {"role": "quasi-identifier", "masks": [coarser]},
            },
        }
    )
    study = aegis.Study(certificates.TABLE, policy)
    best = study.advise()
    first, later = folder / "first.json", folder / "later.json"
    study.apply(best, folder / "first.csv", certificate=first)
    earlier = read_release(first, policy)
    aegis.apply(
        certificates.TABLE,
        policy,
        earlier,
        output=folder / "later.csv",
        certificate=later,
        after=[earlier],
    )
    return first, later


def test_a_certificate_names_the_earlier_release_by_its_digest(second: tuple[Path, Path]) -> None:
    first, later = (json.loads(path.read_text()) for path in second)
    assert later["after"] == [
        {"certificate": first["digest"], "masks": first["configuration"]["masks"]}
    ]
    page = render_certificate(later)
    assert (
        f"<dt>Made after the release with the certificate, SHA-256</dt><dd><code>{first['digest']}"
        in page
    )
    assert "Made after" not in render_certificate(first)
    check = check_certificate(second[1].with_suffix(".csv"), later)
    assert check.passed
    assert [text for text in check.unchecked if text.startswith("after:")]


@pytest.mark.parametrize("digest", ["first.json", 7])
def test_an_earlier_release_without_a_digest_cannot_be(
    second: tuple[Path, Path], digest: Any
) -> None:
    later = json.loads(second[1].read_text())
    later["after"][0]["certificate"] = digest
    (mismatch,) = check_certificate(second[1].with_suffix(".csv"), seal(later)).mismatches
    assert str(mismatch) == (
        f"after.0.certificate: the certificate says {digest}; possible: 64 digits from 0 to f, or null"
    )


def test_an_earlier_certificate_that_was_edited_is_refused(
    second: tuple[Path, Path], tmp_path: Path
) -> None:
    """Its masks would be others than those of the release."""
    document = json.loads(second[0].read_text())
    document["configuration"]["masks"]["age"] = "suppress"
    edited = tmp_path / "first.json"
    edited.write_text(json.dumps(document))
    policy = load_policy(certificates.POLICY)
    with pytest.raises(DataError, match="was changed after it was written"):
        read_release(edited, policy)


_GUESSED = """version: 1
label: y
privacy: {k: 2, suppression: 0.1}
attributes:
  age: {role: quasi-identifier, masks: [identity]}
  sex: {role: quasi-identifier, masks: [identity]}
"""


def test_the_score_of_the_unmasked_table_does_not_tell_the_suppressed_row(tmp_path: Path) -> None:
    """A reader who computed the score of each guess of this row knew the row, as by a digest: all
    digits tell the four guesses apart.
    """
    labels = ["yes" if (i % 3 == 2) != (i % 7 == 0) else "no" for i in range(300)]
    rows = [f"{20 + 10 * (i % 3)},{'mf'[i // 3 % 2]},{y}" for i, y in enumerate(labels)]
    policy = load_policy(read_yaml(_GUESSED, "policy").data)
    stated = []
    for guess in ("71,m,no", "71,f,no", "71,m,yes", "71,f,yes"):
        table = tmp_path / "table.csv"
        table.write_text("\n".join(["age,sex,y", *rows, guess]))
        study = aegis.Study(table, policy)
        output, paper = tmp_path / "out.csv", tmp_path / "paper.json"
        study.apply(study.rank(), output=output, certificate=paper, force=True)
        document = json.loads(paper.read_text())
        assert document["suppressed_rows"] == 1
        stated.append(document["utility"])
        checked = check_certificate(output, document, original=table)
        assert not checked.mismatches
    assert len({json.dumps(each) for each in stated}) <= 2, stated
    exact = 0.5 + (document["utility"]["reference"] - 0.5) * 1.0001
    utility = {**document["utility"], "reference": exact}
    utility["kept"] = min(100 * (utility["value"] - 0.5) / (exact - 0.5), 100.0)
    before = seal({**document, "utility": utility})  # a certificate of an earlier version
    assert not check_certificate(output, before, original=table).mismatches


def test_exact_scores_of_columns_in_an_earlier_certificate_are_still_true(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    rows = [f"{i % 7},{(i % 7 + i % 3) // 2},{i % 5 + i % 7}" for i in range(210)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join([",".join(names), *rows]))
    masks = {"a": "identity", "b": "identity", "c": {"bucketize": {"width": 4}}}
    attributes = {name: {"role": "feature", "masks": [masks[name]]} for name in names}
    study = aegis.Study(table, {"version": 1, "attributes": attributes})
    output, paper = tmp_path / "out.csv", tmp_path / "paper.json"
    study.apply(study.rank(), output=output, certificate=paper)
    document = json.loads(paper.read_text())
    assert document["suppressed_rows"] == 0
    assert not check_certificate(output, document, original=table).mismatches
    columns = document["utility"]["columns"]
    exact = {
        name: {**own, "unmasked": own["unmasked"] * 1.0001, "kept": own["kept"] / 1.0001}
        for name, own in columns.items()
        if own["unmasked"] != own["score"]
    }
    assert exact
    utility = {**document["utility"], "columns": columns | exact}
    before = seal({**document, "utility": utility})
    assert not check_certificate(output, before, original=table).mismatches
