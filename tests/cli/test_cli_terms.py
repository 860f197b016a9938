"""The rule of a summary's owner, on the command line: kept to, overridden aloud, or locked."""

from __future__ import annotations

import json

import pytest
import yaml


@pytest.fixture
def weak(folder):
    """A policy like that of the summary, without a rule."""
    declared = yaml.safe_load(folder.joinpath("policy.yaml").read_text())
    folder.joinpath("weak.yaml").write_text(yaml.safe_dump(declared | {"privacy": {}}))
    return folder


def test_another_rule_is_refused_until_it_is_meant(shell, weak):
    words = ("advise", "table.aegis", "-p", "weak.yaml", "-f", "json")
    refused = shell(*words)
    assert refused.code == 2
    assert "made under the rule k-anonymity (k = 5); at most 5 % of the rows" in refused.err
    assert "--rule-override" in refused.err
    meant = shell(*words, "--rule-override", "-o", "weak-best.yaml", "--report", "weak.html")
    assert meant.code == 0
    said = json.loads(meant.out)["rule_override"]
    assert said["weaker"] is True
    assert said["owner"]["privacy"] == {"k": 5, "suppression": 0.05}
    assert "rule was overridden" in weak.joinpath("weak.html").read_text()


def test_a_configuration_from_a_summary_is_bound_to_its_rule(shell, weak):
    assert shell("advise", "table.aegis", "-p", "policy.yaml", "-o", "chosen.yaml").code == 0
    chosen = yaml.safe_load(weak.joinpath("chosen.yaml").read_text())
    assert chosen["made_under"]["privacy"] == {"k": 5, "suppression": 0.05}
    words = ("apply", "table.csv", "-c", "chosen.yaml", "--certificate", "c.json", "-o", "m.csv")
    assert shell(*words, "-p", "policy.yaml").code == 0
    assert "rule_override" not in json.loads(weak.joinpath("c.json").read_text())
    refused = shell(*words, "-p", "weak.yaml", "--force")
    assert refused.code == 2
    assert "was chosen from was made under the rule" in refused.err
    meant = shell(*words, "-p", "weak.yaml", "--force", "--rule-override")
    assert meant.code == 0
    assert "the owner's rule was overridden" in meant.out
    assert json.loads(weak.joinpath("c.json").read_text())["rule_override"]["weaker"] is True
    assert shell("report", "c.json", "-o", "c.html").code == 0
    assert "rule was overridden" in weak.joinpath("c.html").read_text()


def test_a_locked_summary_refuses_what_is_weaker(shell, weak):
    words = ("summarize", "table.csv", "-p", "policy.yaml", "-o", "locked.aegis", "--locked")
    assert json.loads(shell(*words, "-f", "json").out)["made_under"]["locked"] is True
    for command in (
        ("advise", "locked.aegis"),
        ("report", "locked.aegis", "-o", "locked.html"),
    ):
        refused = shell(*command, "-p", "weak.yaml", "--rule-override")
        assert refused.code == 2
        assert "is locked to the rule k-anonymity (k = 5)" in refused.err
    assert shell("advise", "locked.aegis", "-p", "policy.yaml", "-o", "chosen.yaml").code == 0
    words = ("apply", "table.csv", "-p", "weak.yaml", "-c", "chosen.yaml", "-o", "m.csv")
    refused = shell(*words, "--rule-override")
    assert refused.code == 2
    assert "is locked to the rule" in refused.err
    assert not weak.joinpath("m.csv").exists()


def test_what_a_file_says_of_the_rule_has_to_be_readable(shell, weak):
    best = yaml.safe_load(weak.joinpath("best.yaml").read_text())
    weak.joinpath("odd.yaml").write_text(yaml.safe_dump(best | {"made_under": {"privacy": 5}}))
    refused = shell("apply", "table.csv", "-p", "policy.yaml", "-c", "odd.yaml", "-o", "m.csv")
    assert refused.code == 2
    assert "The privacy rule is 5" in refused.err


def test_a_certificate_is_checked_against_its_file(shell, folder):
    words = ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "m.csv")
    assert shell(*words, "--certificate", "c.json").code == 0
    true = shell("audit", "m.csv", "--certificate", "c.json")
    assert true.code == 0
    assert "c.json matches this file, except for the fields listed above as not checked." in (
        " ".join(true.out.split())
    )
    assert "utility of the original table" in true.out
    assert "What can be learned of a person?" in true.out
    fuller = shell("audit", "m.csv", "--certificate", "c.json", "--original", "table.csv")
    assert fuller.code == 0
    assert "utility of the original table" not in fuller.out
    refused = shell("audit", "m.csv", "--original", "table.csv", "--k", "2")
    assert refused.code == 2
    assert "--original needs a certificate" in refused.err
    folder.joinpath("m.csv").write_text(folder.joinpath("m.csv").read_text().replace(",f,", ",m,"))
    false = shell("audit", "m.csv", "--certificate", "c.json")
    assert false.code == 1
    assert "digest of the released file: the certificate says" in false.out
    assert "size of the smallest class: the certificate says 60, the file shows 120" in false.out
    refused = shell("audit", "m.csv", "--certificate", "c.json", "--k", "2")
    assert refused.code == 2
    assert "--k cannot be used with a certificate" in refused.err


def test_what_is_protected_or_put_together_keeps_the_rule_of_its_summary(shell, weak):
    words = ("summarize", "table.csv", "-p", "policy.yaml", "-o", "mine.aegis", "--locked")
    assert shell(*words, "--exact").code == 0
    noise = ("-o", "p.protected", "--epsilon", "5", "--delta", "1e-5", "--public", "*")
    for command in (
        ("protect", "mine.aegis", *noise),
        ("compose", "best.yaml", "best.yaml", "mine.aegis"),
    ):
        for more in ((), ("--rule-override",)):
            refused = shell(*command, "-p", "weak.yaml", *more)
            assert refused.code == 2
            assert "is locked to the rule k-anonymity (k = 5)" in refused.err or not more
    assert not weak.joinpath("p.protected").exists()
    assert shell("summarize", "table.csv", "-p", "policy.yaml", "-o", "free.aegis").code == 0
    both = ("compose", "best.yaml", "best.yaml", "free.aegis", "-p", "weak.yaml", "-f", "json")
    assert shell(*both).code == 2
    said = json.loads(shell(*both, "--rule-override").out)["rule_override"]
    assert said["weaker"] is True


def test_a_protected_summary_carries_the_rule_on(shell, weak):
    made = (
        "summarize",
        "table.csv",
        "-p",
        "policy.yaml",
        "-o",
        "mine.aegis",
        "--exact",
        "--locked",
    )
    assert shell(*made).code == 0
    noise = ("-o", "p.protected", "--epsilon", "5", "--delta", "1e-5", "--public", "*")
    assert shell("protect", "mine.aegis", *noise, "-p", "policy.yaml").code == 0
    refused = shell("advise", "p.protected", "-p", "weak.yaml", "--rule-override")
    assert refused.code == 2
    assert "The protected summary is locked to the rule" in refused.err
    kept = shell("advise", "p.protected", "-p", "policy.yaml", "-f", "json", "-o", "kept.yaml")
    assert kept.code == 0
    assert json.loads(kept.out)["owner_rule"]["locked"] is True
    assert yaml.safe_load(weak.joinpath("kept.yaml").read_text())["made_under"]["locked"] is True


def test_verdicts_on_another_rule_are_left_out(shell, weak):
    secret = weak.joinpath("secret.key")
    secret.write_bytes(b"0123456789abcdef")
    words = ("protect", "table.csv", "-p", "policy.yaml", "-o", "t.protected", "--level", "counts")
    told = (*words, "--key-file", "secret.key", "--configurations", "best.yaml")
    assert shell(*told).code == 0
    asked = (
        "advise",
        "t.protected",
        "-p",
        "weak.yaml",
        "--configurations",
        "best.yaml",
        "-f",
        "json",
    )
    assert shell(*asked).code == 2
    meant = json.loads(shell(*asked, "--rule-override").out)
    assert meant["ranking"][0]["admissible"] is None
    assert any("verdicts are on another rule" in text for text in meant["warnings"])
    own = (
        "advise",
        "t.protected",
        "-p",
        "policy.yaml",
        "--configurations",
        "best.yaml",
        "-f",
        "json",
    )
    assert json.loads(shell(*own).out)["ranking"][0]["admissible"] is not None
