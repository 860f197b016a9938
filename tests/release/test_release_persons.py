"""Releases whose rule counts persons, against sets of persons in plain Python."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import aegis
from aegis.cli.main import run
from aegis.errors import InternalError, NoAdmissibleConfiguration, PolicyError
from aegis.masks import parse_mask
from aegis.policy import Configuration, Policy, dump_policy, load_policy
from aegis.release import apply, applying, audit, release_sql
from aegis.report import render_certificate


def visits(seed: int = 0, rows: int = 240) -> pd.DataFrame:
    """Return visits of patients, some of whom moved or aged between two of them."""
    random = np.random.default_rng(seed)
    patient = random.integers(0, 70, rows)
    age = 20 + patient % 12 + random.integers(0, 2, rows)
    sick = random.random(rows) < 0.2 + 0.5 * (age > 26)
    return pd.DataFrame(
        {
            "patient": patient,
            "age": age,
            "zip": np.array(["a1", "a2", "b1"])[(patient + random.integers(0, 8, rows) // 7) % 3],
            "ward": np.array(["u", "v", "w", "x"])[random.integers(0, 4, rows)],
            "y": np.where(sick, "yes", "no"),
        }
    )


def policy_of(privacy: dict[str, Any] | None = None, **changes: Any) -> Policy:
    quasi = {"role": "quasi-identifier"}
    attributes = {
        "age": quasi
        | {"masks": ["identity", {"bucketize": {"width": 2}}, {"bucketize": {"width": 4}}]},
        "zip": quasi | {"masks": ["identity", {"blur": {"keep": 1}}, "suppress"]},
        "ward": {"role": "sensitive", "masks": ["identity"]},
    }
    rule = privacy or {"k": 5, "suppression": 0.4}
    data = {"version": 1, "label": "y", "person": "patient", "privacy": rule}
    return load_policy(data | {"attributes": attributes} | changes)


CHOSEN = Configuration(
    "chosen",
    {
        "age": parse_mask({"bucketize": {"width": 2}}),
        "zip": parse_mask("identity"),
        "ward": parse_mask("identity"),
    },
)


def left_out(frame: pd.DataFrame, age: int, zips: str, k: int) -> tuple[int, int]:
    """Return the rows and the persons that a release loses."""
    shown = frame.assign(
        age=frame["age"] // age,
        zip={"identity": frame["zip"], "blur": frame["zip"].str[:1], "suppress": "*"}[zips],
    )
    persons = shown.groupby(["age", "zip"])["patient"].transform("nunique")
    return int((persons < k).sum()), frame.loc[persons < k, "patient"].nunique()


def test_a_release_leaves_out_classes_of_few_persons_and_their_names(tmp_path):
    frame, out, page = visits(), tmp_path / "masked.parquet", tmp_path / "paper.json"
    release = apply(frame, policy_of(), CHOSEN, output=out, certificate=page)
    rows, persons = left_out(frame, 2, "identity", 5)
    assert rows > 0
    assert (release.suppressed_rows, release.suppressed_persons) == (rows, persons)
    assert release.persons == frame["patient"].nunique()
    written = pa.parquet.read_table(out)
    assert written.column_names == ["age", "zip", "ward", "y"]
    assert written.num_rows == len(frame) - rows
    # By rows the smallest class is larger: the figures are those of persons.
    assert release.audit.report.k >= 5
    assert release.audit.report.k < audit(out, quasi_identifiers=["age", "zip"]).report.k
    assert release.audit.person == "patient"
    document = json.loads(page.read_text())
    assert document["persons"] == release.persons
    assert document["suppressed_persons"] == persons
    assert document["policy"]["person"] == "patient"
    assert document["privacy"]["persons"] == release.audit.report.persons
    assert document["privacy"]["person"] == "patient"


def test_the_limit_is_a_share_of_persons():
    frame = visits()
    rows, persons = left_out(frame, 2, "identity", 5)
    total = frame["patient"].nunique()
    assert persons / total > rows / len(frame)  # so that the two limits differ
    enough = policy_of({"k": 5, "suppression": persons / total})
    assert apply(frame, enough, CHOSEN).suppressed_persons == persons
    between = policy_of({"k": 5, "suppression": (persons - 0.5) / total})
    with pytest.raises(NoAdmissibleConfiguration, match=f"{persons} persons in classes smaller"):
        apply(frame, between, CHOSEN)


def test_a_tokenised_key_is_released_and_audited_by(monkeypatch, tmp_path):
    monkeypatch.setenv("AEGIS_TEST_KEY", "k" * 32)
    token = {"role": "identifier", "masks": [{"tokenise": {"key_env": "AEGIS_TEST_KEY"}}]}
    policy = policy_of()
    attributes = json.loads(json.dumps(dict.fromkeys(policy.attributes)))
    assert attributes
    frame = visits().assign(patient=lambda f: "p" + f["patient"].astype(str))
    data = aegis.load_policy(dump_policy_with(policy_of(), token, tmp_path))
    release = apply(frame, data, CHOSEN, output=tmp_path / "out.parquet")
    own = audit(tmp_path / "out.parquet", quasi_identifiers=["age", "zip"], person="patient")
    assert own.report.k == release.audit.report.k
    assert own.report.persons == release.audit.report.persons


def test_tokens_single_out_nobody_and_let_a_certificate_be_checked_by_persons(
    monkeypatch: Any, tmp_path: Any
) -> None:
    """Nobody knows a token without the key, so a reader compares the other columns only."""
    monkeypatch.setenv("AEGIS_TEST_KEY", "k" * 32)
    token = {"role": "identifier", "masks": [{"tokenise": {"key_env": "AEGIS_TEST_KEY"}}]}
    policy = load_policy(dump_policy_with(policy_of(), token, tmp_path))
    output, stated = tmp_path / "out.csv", tmp_path / "c.json"
    release = apply(visits(), policy, CHOSEN, output=output, certificate=stated)
    rows = pd.read_csv(output)
    persons = rows.groupby(["age", "zip", "ward", "y"])["patient"].transform("nunique")
    for measured in (
        release.audit,
        audit(output, policy=policy),
        aegis.check_certificate(output, stated).audit,
        aegis.check_certificate(output, stated, policy=policy, original=visits()).audit,
    ):
        assert measured is not None
        assert measured.outside is not None
        assert measured.outside.unique_rows == (persons == 1).sum()
        assert not measured.outside.near_keys
        assert measured.report.k == rows.groupby(["age", "zip"])["patient"].nunique().min()
        assert not any("rows are counted" in note for note in measured.report.notes)
    assert aegis.check_certificate(output, stated).passed


def test_a_column_of_tokens_is_no_key_and_one_of_names_is(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("AEGIS_TEST_KEY", "k" * 32)
    token = {"role": "identifier", "masks": [{"tokenise": {"key_env": "AEGIS_TEST_KEY"}}]}
    data = {"version": 1, "label": "y", "privacy": {"k": 2, "suppression": 0.9}}
    quasi = {"role": "quasi-identifier", "masks": ["identity"]}
    policy = load_policy(data | {"attributes": {"name": token, "age": quasi}})
    frame = visits()[["age", "y"]].assign(name=[f"name {i}" for i in range(240)])
    advice = aegis.advise(frame, policy)
    output = tmp_path / "out.csv"
    release = apply(frame, policy, advice.best.configuration, output=output)
    sizes = pd.read_csv(output).groupby(["age", "y"])["name"].transform("size")
    for audited in (release.audit, audit(output, policy=policy)):
        assert audited.outside is not None
        assert not audited.outside.near_keys
        assert audited.outside.unique_rows == (sizes == 1).sum()
    names = audit(frame, policy=policy).outside
    assert names is not None
    assert names.near_keys == {"name": 240}


def dump_policy_with(policy: Policy, token: dict[str, Any], folder: Any) -> Any:
    import yaml

    data = yaml.safe_load(dump_policy(policy))
    data["attributes"]["patient"] = token
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def test_a_file_with_other_classes_is_not_released(monkeypatch, tmp_path):
    """The file names nobody, so it is held against the rows that were judged."""
    honest = applying.refuse_other_classes

    def other(output: Any, judged: Any, *rest: Any) -> None:
        honest(audit_of(output), judged, *rest)

    def audit_of(output: Any) -> Any:
        table = output.collect(output.table)
        return aegis.sources.open_table(table.slice(1))

    monkeypatch.setattr(applying, "refuse_other_classes", other)
    with pytest.raises(InternalError, match="other classes than were planned"):
        apply(visits(), policy_of(), CHOSEN, output=tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(("suppression", "k"), [(0.0, 3), (0.1, 6), (0.4, 6)])
def test_the_search_finds_what_trying_all_finds(suppression, k):
    frame = visits(1)
    policy = policy_of({"k": k, "suppression": suppression})
    total = frame["patient"].nunique()
    names = {1: "identity", 2: "bucketize(width=2)", 4: "bucketize(width=4)"}
    zips = {"identity": "identity", "blur": "blur(keep=1)", "suppress": "suppress"}
    admissible = {
        (names[age], zips[z])
        for age, z in product(names, zips)
        if left_out(frame, age, z, k)[1] <= np.floor(suppression * total + 1e-9)
    }
    assert 0 < len(admissible) < 9
    advice = aegis.search(frame, policy, measure="adjusted-pillai", top=9)
    found = {
        (str(r.configuration.masks["age"]), str(r.configuration.masks["zip"]))
        for r in advice.ranking
        if r.admissible
    }
    assert found == admissible
    release = apply(frame, policy, advice.require_best().configuration)
    assert release.suppressed_rows == advice.require_best().suppressed_rows


def test_the_command_counts_persons(tmp_path, capsys):
    frame = visits()
    frame.to_parquet(tmp_path / "t.parquet")
    words = ["audit", str(tmp_path / "t.parquet"), "--quasi-identifiers", "age,zip"]
    assert run([*words, "--person", "patient", "-f", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    persons = frame.groupby(["age", "zip"])["patient"].nunique()
    assert shown["k"] == persons.min()
    assert shown["persons"] == frame["patient"].nunique()
    assert shown["uniques"] == (persons == 1).sum()
    assert run([*words, "--person", "zip"]) == 2
    assert run([*words, "--person", "patiant"]) == 2
    assert "patient" in capsys.readouterr().err


def test_the_screen_states_the_persons_whom_the_limit_counts(tmp_path: Any, capsys: Any) -> None:
    frame, stated = visits(), tmp_path / "policy.yaml"
    frame.to_parquet(tmp_path / "t.parquet")
    stated.write_text(
        dump_policy(policy_of(configurations={"chosen": {"age": {"bucketize": {"width": 2}}}}))
    )
    words = [str(tmp_path / "t.parquet"), "-p", str(stated), "-o", str(tmp_path / "out.csv")]
    assert run(["apply", *words, "--certificate", str(tmp_path / "c.json")]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    rows, persons = left_out(frame, 2, "identity", 5)
    assert f"rows suppressed {rows} (" in screen
    share = 100 * persons / frame["patient"].nunique()
    assert f"persons suppressed {persons} ({share:.1f} %)" in screen


def test_a_key_that_would_be_released_is_refused():
    with pytest.raises(PolicyError, match="names persons and has the role feature"):
        policy_of(
            person="patient",
            attributes={"patient": {"role": "feature"}, "age": {"role": "feature"}},
        )
    with pytest.raises(PolicyError, match="is both the label and the column of persons"):
        policy_of(person="y")


RULES: tuple[dict[str, Any], ...] = (
    {"k": 5},
    {"k": 3, "l_diversity": {"attribute": "ward", "kind": "distinct", "l": 3}},
    {"alpha_k": {"attribute": "ward", "alpha": 0.55, "k": 4}},
    {"max_risk": {"kind": "prosecutor", "threshold": 0.25}},
)


@pytest.mark.parametrize(
    ("rule", "suppression"),
    [(RULES[0], 0.2), (RULES[1], 0.2), *((rule, 0.9) for rule in RULES)],
)
def test_the_query_releases_what_apply_releases(rule, suppression):
    frame = visits(2).astype({"patient": object})
    frame.loc[::40, "patient"] = None
    frame["patient"] = frame["patient"].astype("Int64")
    policy = policy_of(rule | {"suppression": suppression})
    query = release_sql(frame, policy, CHOSEN, dialect="duckdb", name="people")
    connection = duckdb.connect()
    connection.register("people", pa.Table.from_pandas(frame, preserve_index=False))
    found = connection.sql(query.sql).to_arrow_table()
    try:
        expected = apply(frame, policy, CHOSEN).to_arrow()
    except NoAdmissibleConfiguration:
        assert found.num_rows == 0
        return
    assert found.num_rows == expected.num_rows > 0
    assert found.column_names == expected.column_names
    order = [(name, "ascending") for name in found.column_names]
    assert found.sort_by(order).equals(expected.sort_by(order))


def test_an_entropy_of_persons_is_no_query():
    policy = policy_of({"l_diversity": {"attribute": "ward", "kind": "entropy", "l": 2}})
    with pytest.raises(PolicyError, match="one query that counts persons"):
        release_sql(visits(), policy, CHOSEN, dialect="duckdb", name="people")


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_show_who_belongs_together(seed: int, tmp_path: Any) -> None:
    """The rows of a person stand together in the table; the release is the same in any order."""
    rows = visits(seed).sort_values("patient", kind="stable")
    path = tmp_path / "r.parquet"
    in_order = apply(rows, policy_of(), CHOSEN).to_arrow()
    assert in_order.num_rows
    mixed = rows.sample(frac=1, random_state=seed)
    apply(mixed, policy_of(), CHOSEN, output=path)
    assert pyarrow.parquet.read_table(path).to_pylist() == in_order.to_pylist()
    keys = [tuple(row.values()) for row in in_order.to_pylist()]
    assert keys == sorted(keys)


def test_a_certificate_by_persons_is_audited_by_rows(tmp_path: Any) -> None:
    """A class has at least as many rows as persons, so that a larger k is false."""
    output, stated = tmp_path / "r.parquet", tmp_path / "c.json"
    release = apply(visits(), policy_of(), CHOSEN, output=output, certificate=stated)
    check = aegis.check_certificate(output, stated)
    assert check.passed
    assert check.audit is not None
    assert check.audit.report.k >= release.audit.report.k >= 5
    assert check.audit.passed is None
    note = "The table does not contain patient, so rows are counted instead of persons. "
    assert any(text.startswith(note) for text in check.audit.report.notes)
    document = json.loads(stated.read_text())
    document["privacy"]["k"] = check.audit.report.k + 1
    stated.write_text(json.dumps(document))
    assert "privacy.k" in [m.what for m in aegis.check_certificate(output, stated).mismatches]


def test_rows_of_one_person_only_are_not_called_unique(tmp_path: Any, capsys: Any) -> None:
    """Two rows of a person may be equal: neither is the only one, but both are of one person."""
    visited = visits()
    frame = pd.concat([visited, visited[:40]]).astype({"patient": str})
    frame.to_parquet(tmp_path / "t.parquet")
    stated, output, page = tmp_path / "p.yaml", tmp_path / "o.csv", tmp_path / "c.json"
    chosen = {"chosen": {"age": {"bucketize": {"width": 2}}}}
    stated.write_text(dump_policy(policy_of(configurations=chosen)))
    words = [str(tmp_path / "t.parquet"), "-p", str(stated), "-o", str(output)]
    assert run(["apply", *words, "--certificate", str(page)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    shown = frame.assign(age=frame["age"] // 2)
    kept = shown[shown.groupby(["age", "zip"])["patient"].transform("nunique") >= 5]
    cells = kept.groupby(["age", "zip", "ward", "y"])["patient"]
    of_one = int((cells.transform("nunique") == 1).sum())
    unique = int((cells.transform("size") == 1).sum())
    assert 0 < unique < of_one
    sentence = (
        f"{of_one} of {len(kept)} released rows have values of one person only in all columns "
        "together"
    )
    assert sentence in screen
    assert f"rows with values of one person only {of_one} (" in screen
    assert "only ones" not in screen
    html = render_certificate(json.loads(page.read_text()))
    assert sentence in html
    assert "Rows with values of one person only" in html
    assert "only ones" not in html
    assert run(["audit", str(output), "--certificate", str(page)]) == 0
    printed = capsys.readouterr()
    screen = " ".join((printed.out + printed.err).split())
    assert f"{unique} of {len(kept)} released rows are the only ones" in screen
    assert f"rows unique in all columns {unique} (" in screen
    assert "More rows may have values of one person only than are unique." in screen


def test_advice_and_certificate_hold_out_all_rows_of_a_person(tmp_path):
    random = np.random.default_rng(4)
    patient = np.repeat(np.arange(60), 8)
    frame = pd.DataFrame(
        {
            "patient": patient,
            "age": 30 + patient % 2,
            # It tells the patient, and so the patient's class, but says nothing of anybody else.
            "ward": random.permutation(60)[patient].astype(str),
            "y": random.choice(["no", "yes"], 60)[patient],
        }
    )
    attributes = {
        "age": {"role": "quasi-identifier", "masks": ["identity"]},
        "ward": {"role": "feature", "masks": ["identity"]},
    }
    data = {"version": 1, "label": "y", "privacy": {"k": 5}, "attributes": attributes}
    by_person = load_policy(data | {"person": "patient"})
    best = aegis.advise(frame, by_person, measure="held-out-auc").best
    assert best.score < 0.65
    assert best.utility.value == pytest.approx(best.score, abs=1e-12)
    output, certificate = tmp_path / "m.csv", tmp_path / "c.json"
    apply(frame, by_person, best.configuration, output=output, certificate=certificate)
    stated = json.loads(certificate.read_text())["utility"]
    assert stated["value"] == pytest.approx(best.score, abs=1e-12)
    assert any(
        "needs the column 'patient', which the release does not contain" in what
        for what in aegis.check_certificate(output, certificate).unchecked
    )
    by_row = aegis.advise(frame, load_policy(data), measure="held-out-auc").best
    assert by_row.utility.value > 0.95
