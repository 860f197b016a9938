"""Protection on the command line: what is refused costs nothing and writes nothing."""

from __future__ import annotations

import json
import re
import sqlite3

import pytest
import yaml
from cli_support import plain

from aegis.safe.ledger import Ledger

PROTECT = ("protect", "table.csv", "-p", "policy.yaml", "-o", "new.protected")
NOISE = ("--epsilon", "1", "--delta", "1e-5", "--public", "*")
PAID = (*NOISE, "--ledger", "house.ledger", "--population", "patients")
COUNTS = ("--level", "counts", "--key-file", "secret.key")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*PROTECT, "--epsilon", "0", "--delta", "1e-5"), "Epsilon is 0"),
        ((*PROTECT, "--epsilon", "-1", "--delta", "1e-5"), "Epsilon is -1"),
        ((*PROTECT, "--epsilon", "1000", "--delta", "1e-5"), "Epsilon is 1000"),
        ((*PROTECT, "--epsilon", "nan", "--delta", "1e-5"), "nan"),
        ((*PROTECT, "--epsilon", "1", "--delta", "0"), "Delta is 0"),
        ((*PROTECT, "--epsilon", "1", "--delta", "1"), "Delta is 1"),
        ((*PROTECT, "--epsilon", "1"), "needs an epsilon and a delta"),
        ((*PROTECT, *COUNTS, "--threshold", "241"), "the table has 240 rows"),
        ((*PROTECT, *COUNTS, "--threshold", "0"), "threshold is 0"),
        ((*PROTECT, "--level", "counts"), "needs a secret key"),
        ((*PROTECT, "--level", "counts", "--key-file", "no.key"), "Cannot read the key file"),
        ((*PROTECT, *NOISE, "--ledger", "house.ledger"), "go together"),
        ((*PROTECT, "--ledger", "house.ledger"), "Level noise also needs a budget"),
        ((*PROTECT, *NOISE, "--ledger", "none.ledger", "--population", "p"), "no ledger"),
        ((*PROTECT, *PAID[:-1], "strangers"), "strangers"),
        ((*PROTECT, *PAID, "--unit", "persons"), "protects rows"),
        (("leak", "table.aegis", "--threshold", "241"), "240 rows"),
        (("merge", "told.protected", "noisy.protected", "-o", "m.aegis"), "cannot be merged"),
        (
            ("protect", "told.protected", "-p", "policy.yaml", "-o", "new.protected", *NOISE),
            "protected summary, and this needs",
        ),
    ],
)
def test_bad_requests_cost_and_write_nothing(shell, folder, words, said):
    before = Ledger(folder / "house.ledger").balance("patients").spent
    refused = shell(*words)
    assert refused.code == 2
    assert said in plain(refused.err)
    assert "Traceback" not in refused.err
    assert not list(folder.glob("new.protected*"))
    assert not (folder / "m.aegis").exists()
    assert Ledger(folder / "house.ledger").balance("patients").spent == before


def test_a_spent_budget_refuses_and_keeps_what_was_written(shell, folder):
    Ledger(folder / "small.ledger", create=True).open_population(
        "patients", ceiling=0.031, delta=1e-5, unit="rows"
    )
    paid = (*NOISE, "--ledger", "small.ledger", "--population", "patients")
    assert shell(*PROTECT, *paid).code == 0
    written = (folder / "new.protected").read_bytes()
    refused = shell(*PROTECT, *paid, "--force")
    assert refused.code == 2
    assert "is too small" in refused.err
    assert (folder / "new.protected").read_bytes() == written
    [entry] = Ledger(folder / "small.ledger").entries("patients")
    assert str(entry.state) == "committed"
    assert "label tables" in entry.spend.sensitivity
    assert "label tables" in entry.spend.sigma


def test_a_ledger_of_another_table_is_refused_and_the_head_is_printed(shell, folder):
    Ledger(folder / "other.ledger", create=True).open_population("people", ceiling=1, delta=1e-5)
    paid = ("--ledger", "other.ledger", "--population", "people")
    made = shell(*PROTECT, *COUNTS, *paid)
    head = Ledger(folder / "other.ledger").head
    assert made.code == 0
    assert f"Ledger head: {head}" in plain(made.out)
    assert shell("ledger", "other.ledger", "verify", "--head", head).code == 0
    assert shell("ledger", "other.ledger", "verify", "--head", "f" * 64).code == 2
    lines = (folder / "table.csv").read_text().splitlines()
    (folder / "next.csv").write_text("\n".join([*lines, lines[-1]]) + "\n")
    asked = ("protect", "next.csv", *PROTECT[2:5], "next.protected")
    for words, said in (
        ((*NOISE, *paid), "belongs to another table"),
        ((*COUNTS, *paid, "--new-version"), "the rows that changed"),
        ((*NOISE, "--new-version"), "Name --ledger"),
    ):
        refused = shell(*asked, *words)
        assert refused.code == 2
        assert said in plain(refused.err)
        assert not (folder / "next.protected").exists()
    assert Ledger(folder / "other.ledger").head == head
    assert shell(*asked, *NOISE, *paid, "--new-version").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("report", "told.protected", "-p", "policy.yaml", "-o", "r.html", "--evaluate", "lr"),
        ("compose", "best.yaml", "best.yaml", "told.protected", "-p", "policy.yaml"),
        ("apply", "told.protected", "-p", "policy.yaml", "-c", "best.yaml", "-o", "a.csv"),
        ("audit", "told.protected", "--quasi-identifiers", "age"),
        ("evaluate", "told.protected", "-p", "policy.yaml", "--generate", "2"),
        ("anonymize", "told.protected", "-p", "policy.yaml", "-m", "mondrian", "-o", "a.csv"),
        ("summarize", "told.protected", "-p", "policy.yaml", "-o", "a.aegis"),
        (
            "summarize",
            "table.csv",
            "-p",
            "policy.yaml",
            "-o",
            "a.aegis",
            "--like",
            "told.protected",
        ),
        ("leak", "policy.yaml", "--with", "told.protected"),
        ("leak", "table.aegis", "--with", "told.protected"),
        ("advise", "told.protected", "-p", "policy.yaml", "--measure", "mi"),
        ("advise", "told.protected", "-p", "policy.yaml", "--after", "best.yaml"),
        ("reconstruct", "told.protected", "-a", "age", "--method", "ipf"),
    ],
)
def test_what_needs_exact_counts_says_so_and_what_to_do(shell, folder, words):
    refused = shell(*words)
    assert refused.code == 2
    said = plain(refused.err)
    assert "protected" in said, said
    assert (
        "exact summary" in said
        or ".aegis" in said
        or "table" in said
        or "Compare two of one kind" in said
    )
    assert not any((folder / name).exists() for name in ("r.html", "a.csv", "a.aegis"))


def test_report_works_from_a_protected_summary_as_advise_does(shell, folder):
    asked = ("told.protected", "-p", "policy.yaml")
    assert shell("report", *asked, "-o", "told.html").code == 0
    assert shell("advise", *asked, "--search", "--report", "advised.html").code == 0
    pages = [(folder / name).read_text() for name in ("told.html", "advised.html")]
    told, advised = (re.sub(r"Time to advise.*", "", page) for page in pages)
    assert told == advised


def test_an_attribute_may_be_left_out_of_a_protected_summary(shell, folder):
    asked = ("advise", "told.protected", "-p", "policy.yaml", "-f", "json", "--generate", "3")
    whole = json.loads(shell(*asked).out)
    less = json.loads(shell(*asked, "--leave-out", "sex").out)
    assert "sex" in whole["ranking"][0]["masks"]
    assert "sex" not in less["ranking"][0]["masks"]


def test_what_was_tampered_with_is_refused_and_costs_nothing(shell, folder):
    connection = sqlite3.connect(folder / "house.ledger")
    connection.executescript(
        "drop trigger event_stays; update event set content = replace(content, 'rows', 'rowz');"
    )
    connection.close()
    refused = shell(*PROTECT, *PAID)
    assert refused.code == 2
    assert "tampered" in refused.err
    assert not (folder / "new.protected").exists()
    assert shell("ledger", "house.ledger", "verify").code == 2
    for name in ("told.protected", "table.aegis"):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(bytes(content))
        refused = shell("leak", name)
        assert refused.code == 2, name
        assert "Traceback" not in refused.err


def test_documents_are_read_by_leak(shell, folder):
    """A certificate, a report and a policy: what they tell of single persons is found."""
    report = (
        "advise",
        "table.aegis",
        "-p",
        "policy.yaml",
        "--report",
        "advice.html",
        "--no-values",
    )
    assert shell(*report).code == 0
    for name, kind in (
        ("released.json", "certificate"),
        ("advice.html", "report"),
        ("policy.yaml", "policy"),
    ):
        found = json.loads(shell("leak", name, "--with", "table.aegis", "-f", "json").out)
        assert found["kind"] == kind
    assert shell("leak", "policy.yaml", "--with", "table.aegis").code == 0
    proposed = shell("init", "table.csv", "--label", "income", "-o", "proposed.yaml")
    assert proposed.code == 0
    found = shell("leak", "proposed.yaml", "-f", "json")
    comments = "values, " in (folder / "proposed.yaml").read_text()
    assert found.code == (1 if json.loads(found.out)["extremes"] else 0)
    assert bool(json.loads(found.out)["extremes"]) == (
        comments and " to " in (folder / "proposed.yaml").read_text()
    )


def test_the_configurations_of_a_policy_are_ranked(shell, folder):
    listed = (
        "configurations:\n"
        "  fine: {age: identity, sex: identity, zip: {blur: {keep: 3}}}\n"
        "  coarse: {age: {quantiles: {count: 2}}, sex: identity, zip: suppress}\n"
    )
    policy = folder.joinpath("policy.yaml").read_text() + listed
    folder.joinpath("listing.yaml").write_text(policy)
    asked = ("advise", "told.protected", "-p", "listing.yaml", "-f", "json")
    ranking = json.loads(shell(*asked).out)["ranking"]
    assert sorted(ranked["name"] for ranked in ranking) == ["coarse", "fine"]
    drawn = json.loads(shell(*asked, "--generate", "3").out)["ranking"]
    assert not {"coarse", "fine"} & {ranked["name"] for ranked in drawn}


def test_the_owner_gets_all_listed_configurations_to_check(shell, folder):
    """Whether one meets the rule is an estimate, so the file has several, best first."""
    made = shell(*PROTECT[:-1], "rows.protected", *NOISE)
    assert made.code == 0
    advice = shell("advise", "rows.protected", "-p", "policy.yaml", "-o", "several.yaml")
    assert advice.code == 0
    listed = yaml.safe_load((folder / "several.yaml").read_text())["configurations"]
    assert len(listed) > 1
    assert next(iter(listed)) == "best-1"
    said = plain(advice.out + advice.err)
    assert "mask the table, and check the rule: the owner of the table does this" in said
    assert "--configuration several.yaml --name best-1" in said.replace("\\ ", "")
    assert "- by estimate, " in said


def test_a_configuration_that_fails_names_a_listed_one_that_meets_the_rule(shell, folder):
    (folder / "strict.yaml").write_text(
        (folder / "policy.yaml").read_text().replace("k: 5", "k: 40")
    )
    asked = ("apply", "table.csv", "-p", "strict.yaml", "-c", "all.yaml", "-o", "m.csv")
    refused = shell(*asked, "--name", "fine")
    assert refused.code == 1
    assert "'fine' does not meet the privacy rule" in plain(refused.err)
    assert "coarse in all.yaml meets the rule: choose it with --name coarse." in plain(refused.err)
    assert not (folder / "m.csv").exists()
    assert shell(*asked, "--name", "coarse").code == 0


def test_if_no_listed_configuration_meets_the_rule_the_error_says_so(shell, folder):
    listed = yaml.safe_load((folder / "all.yaml").read_text())["configurations"]
    both = {"configurations": {"fine": listed["fine"], "too": listed["fine"]}}
    (folder / "both.yaml").write_text(yaml.safe_dump(both))
    (folder / "strict.yaml").write_text(
        (folder / "policy.yaml").read_text().replace("k: 5", "k: 40")
    )
    refused = shell(
        *("apply", "table.csv", "-p", "strict.yaml", "-c", "both.yaml"),
        *("--name", "too", "-o", "m.csv"),
    )
    assert refused.code == 1
    assert "None of the other configurations in both.yaml meets the rule either" in plain(
        refused.err
    )
