"""Propose a first policy for a table (`aegis init`)."""

from aegis.policy.suggest.propose import ProposedPolicy, init_policy

__all__ = ["ProposedPolicy", "init_policy"]
