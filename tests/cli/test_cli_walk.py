"""What a reader compares on the way from `init` to a release: one figure, one name, the warnings in time."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_support import plain

from aegis.cli.audit import in_words
from aegis.cli.main import run

FEW = 4
"""Rows of one class that have all the same value of the sensitive column."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 402 rows with a column that is the label in disguise, and its policy."""
    folder = tmp_path_factory.mktemp("walk")
    random = np.random.default_rng(3)
    age = [*random.integers(20, 60, 398), *[70] * FEW]
    paid = [*random.integers(0, 2, 398), *[1] * FEW]
    rows = [
        {
            "age": int(a),
            "health": "poor" if a == 70 else random.choice(["good", "poor", "fair"]),
            "weeks": int(random.integers(40, 52) if p else random.integers(1, 20)),
            "paid": "yes" if p else "no",
            "wins": int(random.integers(0, 30)),
            "losses": int(random.integers(0, 30)),
            "score": "NA" if random.random() < 0.1 else str(random.integers(1, 300)),
        }
        for a, p in zip(age, paid, strict=True)
    ]
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    policy = {
        "version": 1,
        "label": "paid",
        "privacy": {"k": 3, "suppression": 0.02},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": [{"bucketize": {"width": 10}}, {"bucketize": {"width": 20}}, "suppress"],
            },
            "health": {"role": "sensitive"},
            "weeks": {"role": "feature"},
        },
    }
    (folder / "policy.yaml").write_text(json.dumps(policy))
    return folder


@pytest.fixture
def said(walk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Run a command in the folder of the table; return what it printed, and what on standard error."""
    monkeypatch.chdir(walk)

    def start(*words: str, code: int = 0) -> tuple[str, str]:
        assert run(words) == code
        out, err = capsys.readouterr()
        return out, err

    return start


def test_warnings_stand_with_the_result_before_the_next_step(said) -> None:
    words = ("advise", "table.csv", "-p", "policy.yaml", "-o", "best.yaml", "--force")
    out, err = said(*words)
    warned, then = out.index("Before you rely on this"), out.index("Next: ")
    leak = "The column weeks alone explains"
    assert warned < out.index(leak) < then
    assert leak not in err
    assert "Before you rely" not in said(*words, "--quiet")[0]
    assert leak in said(*words, "--format", "csv")[1]


def test_values_that_a_class_gives_away_are_said_everywhere(said, walk: Path) -> None:
    told = f"single value of health ({FEW} rows)"
    assert told in plain(
        said("advise", "table.csv", "-p", "policy.yaml", "-o", "best.yaml", "--force")[0]
    )
    applied = ("-o", "masked.csv", "--certificate", "certificate.json", "--force")
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", *applied)
    out, _ = said(*words)
    assert told in plain(out)
    assert out.index("single value of health") < out.index("Next: ")
    said("report", "certificate.json", "-o", "release.html", "--force")
    assert told in plain((walk / "release.html").read_text())


def test_an_audit_says_in_words_what_it_did_not_check(said, walk: Path) -> None:
    said("advise", "table.csv", "-p", "policy.yaml", "-o", "best.yaml", "--force")
    applied = ("-o", "masked.csv", "--certificate", "certificate.json", "--force")
    said("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", *applied)
    audit = ("audit", "masked.csv", "--certificate", "certificate.json")
    part = said(*audit)[0].partition("Not checked")[2].partition("Certificate\n")[0]
    assert re.search("sampling error of the utility.*original table .--original TABLE", plain(part))
    assert "released columns that give away masked ones: " in plain(part)
    assert not re.search(r"[a-z]\.[a-z]|_", part)
    document = json.loads((walk / "certificate.json").read_text())
    document["privacy"]["k"] += 1
    (walk / "forged.json").write_text(json.dumps(document))
    differing = said("audit", "masked.csv", "--certificate", "forged.json", code=1)[0]
    assert re.search("size of the smallest class: the certificate says", plain(differing))
    assert not re.search(r"[a-z]\.k|_", differing.partition("Failed")[2].partition("\n")[2])
    with_table = said(*audit, "--original", "table.csv")[0].partition("Not checked")[2]
    assert "sampling error" not in with_table


@pytest.mark.parametrize(
    ("unchecked", "words"),
    [
        ("stderr of each label: X", "sampling error of the utility for each label: X"),
        ("reference of each label: X", "utility of the original table for each label: X"),
        (
            "utility.columns.*.weight, .unmasked and .kept: X",
            "weight of each column, its utility unmasked and the percentage kept: X",
        ),
        ("weight: X", "sums of the weights: X"),
    ],
)
def test_figures_of_labels_columns_and_weights_have_words(unchecked: str, words: str) -> None:
    """An audit measures each column's masked figure: it only lacks those of the original table."""
    assert in_words(unchecked) == words


def test_apply_and_the_page_of_its_certificate_list_the_same_in_one_order(said, walk: Path) -> None:
    said("advise", "table.csv", "-p", "policy.yaml", "-o", "best.yaml", "--force")
    applied = ("-o", "masked.csv", "--certificate", "certificate.json", "--force")
    out, _ = said("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", *applied)
    part = out[out.index("Before you rely on this") : out.index("Written:")]
    listed = [line.removeprefix("- ").rstrip(".") for line in part.splitlines() if line[:2] == "- "]
    said("report", "certificate.json", "-o", "release.html", "--force")
    page = html.unescape((walk / "release.html").read_text())
    shown = re.search(r'role="note">.*?<ul>(.*?)</ul>', page, flags=re.DOTALL)
    assert shown is not None
    assert [
        re.sub("</?code>", "`", text).rstrip(".") for text in re.findall("<li>(.*?)</li>", shown[1])
    ] == listed
    assert any(text.startswith("Some classes have a single value of health") for text in listed)
    assert any("the attacker knows that the person is in the table" in text for text in listed)


def test_one_figure_of_utility_in_apply_and_on_the_page_of_its_certificate(said, walk) -> None:
    said("advise", "table.csv", "-p", "policy.yaml", "-o", "best.yaml", "--force")
    applied = ("-o", "masked.csv", "--certificate", "certificate.json", "--force")
    out, _ = said("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", *applied)
    stated = re.search(r"utility kept +([0-9.]+ %) \((.*?)\)", plain(out))
    assert stated is not None
    said("report", "certificate.json", "-o", "release.html", "--force")
    page = (walk / "release.html").read_text().replace("\u00a0", " ")
    assert f'<dd class="value">{stated[1]}</dd><dd class="note">{stated[2]}</dd>' in page


def test_init_names_what_it_read_as_null_and_singles_out_without_the_quasi_identifiers(said):
    _, err = said("init", "table.csv", "--label", "paid", "-o", "proposed.yaml", "--force")
    assert "table.csv is read with 'NA' as null." in err
    assert "of the rows even without the quasi-identifiers" in plain(err)


def test_a_higher_score_below_the_first_is_explained_where_it_is_seen(said, walk: Path) -> None:
    policy = json.loads((walk / "policy.yaml").read_text())
    masks = {"role": "quasi-identifier", "masks": ["identity", "suppress"]}
    attributes = policy["attributes"] | {"wins": masks, "losses": masks}
    tied = policy | {"attributes": attributes, "privacy": {"k": 1}}
    (walk / "tied.yaml").write_text(json.dumps(tied))
    out, _ = said("advise", "table.csv", "-p", "tied.yaml", "--leave-out", "weeks", "--explain")
    rows = [line.split() for line in out.splitlines() if re.match(r" *[0-9]+ +best-[0-9]", line)]
    scores = [float(row[2]) for row in rows]
    assert max(scores) > scores[0]
    highest = rows[scores.index(max(scores))]
    assert highest[3] != "~"
    assert rows[0][3] == "~"
    assert (
        "scores measurably better. Of those found that are as good, it is "
        "the one that masks least." in plain(out)
    )
    assert "proven best" not in out
    assert "~: not significantly different from the highest score" in plain(out)


def test_one_figure_of_utility_where_the_rule_counts_persons(said, tmp_path: Path) -> None:
    stays = str(Path(__file__).parents[2] / "examples" / "hospital" / "stays.csv")
    policy, best, release = (str(tmp_path / name) for name in ("p.yaml", "b.yaml", "r.csv"))
    certificate = tmp_path / "c.json"
    said("init", stays, "--label", "readmitted", "-o", policy)
    advised, _ = said("advise", stays, "-p", policy, "-o", best, "--format", "json")
    said("apply", stays, "-p", policy, "-c", best, "-o", release, "--certificate", str(certificate))
    stated = json.loads(certificate.read_text())["utility"]
    figure = json.loads(advised)["utility"]
    assert figure.pop("lost_classes") == stated.pop("lost_classes") == {}
    assert figure == pytest.approx(stated)
    checked, _ = said(
        "audit", release, "--certificate", str(certificate), "--original", stays, "-p", policy
    )
    assert "matches this file" in plain(checked)


def test_shares_are_shares_of_persons_where_the_rule_counts_persons(said, tmp_path: Path) -> None:
    """Six persons with four rows each: two are unique, the others hide in pairs."""
    who = [person for person in range(6) for _ in range(4)]
    ages = {0: 20, 1: 30, 2: 40, 3: 40, 4: 50, 5: 50}
    lines = [f"p{p},{ages[p]},{'yes' if row % 2 else 'no'}" for row, p in enumerate(who)]
    (tmp_path / "t.csv").write_text("\n".join(["who,age,ill", *lines]))
    policy = {
        "version": 1,
        "label": "ill",
        "person": "who",
        "privacy": {"k": 2, "suppression": 0.5},
        "attributes": {
            "who": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "masks": ["identity"]},
        },
    }
    (tmp_path / "p.yaml").write_text(json.dumps(policy))
    table, given, best, page = (str(tmp_path / n) for n in ("t.csv", "p.yaml", "b.yaml", "r.html"))
    audited = plain(said("audit", table, "-p", given, code=1)[0])
    assert re.search(r"unique persons +2 \(33.3 %\)", audited)
    assert re.search(r"above 0.2 +6 \(100.0 %\)", audited)
    advised, _ = said("advise", table, "-p", given, "-o", best, "--report", page)
    assert "16 of 24 rows, each in a class of at least 2 persons" in plain(advised)
    report = Path(page).read_text().partition("Persons at risk above 20")[2]
    assert re.search(r">6</span> <span[^>]*>\(100\.0.%\)", report[:400])
    applied, _ = said("apply", table, "-p", given, "-c", best, "-o", str(tmp_path / "o.csv"))
    assert "k, persons of the smallest class 2 " in plain(applied)
    assert "persons at risk above 0.2 4 " in plain(applied)


def test_one_figure_of_utility_where_a_mask_cuts_a_column_of_many_values(said, tmp_path) -> None:
    """The unmasked table pools its rarest values; rows fall into folds by what is not pooled."""
    random = np.random.default_rng(9)
    rows = [f"{a},{a / 9 + random.normal():.6f}" for a in random.integers(20, 60, 900)]
    lines = [f"{row},{'yes' if random.random() < float(row[:2]) / 80 else 'no'}" for row in rows]
    (tmp_path / "t.csv").write_text("\n".join(["age,score,ill", *lines]))
    policy = {
        "version": 1,
        "label": "ill",
        "privacy": {"k": 30, "suppression": 0.1},
        "attributes": {
            "age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 5}}]},
            "score": {"role": "feature", "masks": [{"round": {"digits": 1}}]},
        },
    }
    (tmp_path / "p.yaml").write_text(json.dumps(policy))
    table, given, best, release, certificate = (
        str(tmp_path / name) for name in ("t.csv", "p.yaml", "b.yaml", "r.csv", "c.json")
    )
    advised, _ = said("advise", table, "-p", given, "-o", best, "--format", "json")
    said("apply", table, "-p", given, "-c", best, "-o", release, "--certificate", certificate)
    stated = json.loads(Path(certificate).read_text())["utility"]
    assert json.loads(advised)["utility"]["reference"] == pytest.approx(stated["reference"])


def test_init_says_in_words_that_no_row_stands_out(said, walk: Path) -> None:
    rows = "\n".join(f"{i % 40 + 20},{'ab'[i % 2]},{'yn'[i // 2 % 2]}" for i in range(400))
    (walk / "plain.csv").write_text(f"age,arm,paid\n{rows}\n")
    out, _ = said("init", "plain.csv", "--label", "paid", "-o", "plain.yaml")
    told = "1 feature keeps all values in the release; no row stands out by it alone."
    assert told in plain(out)
    assert "0 of 400" not in out


def test_every_step_says_in_one_sentence_that_a_rule_protects_nothing(shell, tmp_path) -> None:
    table, policy = tmp_path / "games.csv", tmp_path / "policy.yaml"
    best, certificate = tmp_path / "best.yaml", tmp_path / "c.json"
    table.write_text(
        "wins,losses,won\n" + "".join(f"{i % 9},{i % 7},{i % 2}\n" for i in range(200))
    )
    read = (str(table), "-p", str(policy))
    steps = [
        shell("init", str(table), "-l", "won", "-o", str(policy)),
        shell("advise", *read, "-o", str(best)),
        shell(
            *("apply", *read, "-c", str(best), "-o", str(tmp_path / "m.csv")),
            *("--certificate", str(certificate)),
        ),
        shell("report", str(certificate), "-o", str(tmp_path / "r.html")),
    ]
    assert [step.code for step in steps] == [0] * 4
    told = "The rule protects nothing, because no column is a quasi-identifier"
    said = [*(step.out + step.err for step in steps[:3]), (tmp_path / "r.html").read_text()]
    assert all(told in plain(text) for text in said)
    assert "met, but protects nothing" in steps[2].out
