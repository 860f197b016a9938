"""The policy of the small table, and a summary of it that is protected by noise."""

from __future__ import annotations

import pytest
from protect_support import POLICY, make_table

from aegis.policy import load_policy
from aegis.safe.protect import protect


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    page = tmp_path_factory.mktemp("policy") / "policy.yaml"
    page.write_text(POLICY)
    return load_policy(page)


@pytest.fixture(scope="module")
def protected(policy):
    return protect(make_table(3000), policy, epsilon=4, delta=1e-6, public=["*"])
