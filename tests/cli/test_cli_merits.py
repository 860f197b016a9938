"""Figures of merit, models and proxies on the command line, through to the certificate."""

from __future__ import annotations

import json

import pytest
import yaml


def test_a_merit_ranks_and_goes_with_the_configuration_to_the_certificate(shell, folder):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--generate", "6", "-o", "chosen.yaml")
    done = shell(*words, "--merit", "accuracy", "--models", "nb,lr", "--proxy", "-f", "json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["measure"] == "held-out-accuracy(lr+nb)"
    assert found["headline"].startswith("Models are expected to reach an accuracy of")
    proxy = found["proxy"]
    assert (proxy["models"], proxy["metric"], proxy["splits"]) == (["nb"], "accuracy", 3)
    admissible = [one["name"] for one in found["ranking"] if one["admissible"]]
    assert list(proxy["reached"]) == admissible[:5]
    assert proxy["reached"][proxy["best"]] == max(proxy["reached"].values())
    assert all(0 <= value <= 1 for value in proxy["reached"].values())
    chosen = yaml.safe_load(folder.joinpath("chosen.yaml").read_text())
    assert chosen["measure"] == "held-out-accuracy(lr+nb)"
    applied = ("apply", "table.csv", "-p", "policy.yaml", "-c", "chosen.yaml", "-o", "m.csv")
    stated = ("--certificate", "c.json", "--measure", chosen["measure"])  # the policy names another
    assert shell(*applied, *stated).code == 0
    certificate = json.loads(folder.joinpath("c.json").read_text())
    assert certificate["utility"]["measure"] == "held-out-accuracy(lr+nb)"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--merit", "f1"), "Unknown metric 'f1'"),
        (("--models", "svm"), "Allowed: lr, nb, gbdt"),
        (("--models", "gbtd"), "Did you mean 'gbdt'?"),
        (("--merit", "auc", "--measure", "mi"), "--measure together with --metric"),
    ],
)
def test_what_no_merit_is_is_refused(shell, folder, words, said):
    refused = shell("advise", "table.csv", "-p", "policy.yaml", "-o", "no.yaml", *words)
    assert refused.code == 2
    assert said in " ".join(refused.err.split())
    assert not folder.joinpath("no.yaml").exists()


def test_a_proxy_takes_the_table(shell):
    refused = shell("advise", "table.aegis", "-p", "policy.yaml", "--generate", "3", "--proxy")
    assert refused.code == 2
    assert "--proxy trains models on rows" in " ".join(refused.err.split())


def test_boosting_is_trained_for_its_interactions(shell):
    words = ("advise", "table.csv", "-p", "policy.yaml", "--generate", "3")
    done = shell(*words, "--models", "pairs", "--proxy", "-f", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["proxy"]["models"] == ["gbdt"]
