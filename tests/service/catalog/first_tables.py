"""The tables of a catalog of the first version, from before the first migration."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from aegis.service.catalog.database import append_only


def create() -> None:
    """Create all tables of the first version."""
    _accounts()
    _data_sets()
    _rights()
    _requests()
    _work()
    append_only(op.get_bind())


def _accounts() -> None:
    """Create accounts, and the log of what they do."""
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(120), nullable=False, unique=True),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("password", sa.String(200)),
        sa.Column("subject", sa.String(255), unique=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True)),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "log",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(120), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("data_set_id", sa.String(80), index=True),
        sa.Column("request_id", sa.String(32), index=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
    )


def _data_sets() -> None:
    """Create the data sets."""
    op.create_table(
        "data_sets",
        sa.Column("id", sa.String(80), primary_key=True),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column(
            "provider_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False, index=True
        ),
        sa.Column("source", sa.String(200), nullable=False),
        sa.Column("label", sa.String(200)),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("population", sa.String(120), nullable=False, index=True),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("approvals", sa.Integer(), nullable=False),
        sa.Column("days", sa.Integer(), nullable=False),
        sa.Column("ceiling", sa.Float()),
        sa.Column("public_key", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    )


def _rights() -> None:
    """Create sign-ins, tokens, and who may do what with a data set."""
    op.create_table(
        "sign_ins",
        sa.Column("hash", sa.String(64), primary_key=True),
        sa.Column(
            "account_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False, index=True
        ),
        sa.Column("form_key", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column(
            "account_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False, index=True
        ),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "grants",
        sa.Column("data_set_id", sa.String(80), sa.ForeignKey("data_sets.id"), primary_key=True),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id"), primary_key=True),
        sa.Column("role", sa.String(20), primary_key=True),
    )


def _requests() -> None:
    """Create versions of data sets, requests for them, and approvals."""
    op.create_table(
        "versions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column(
            "data_set_id", sa.String(80), sa.ForeignKey("data_sets.id"), nullable=False, index=True
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("policy_digest", sa.String(64), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("summary_key", sa.String(200), nullable=False),
        sa.Column("summary_digest", sa.String(64), nullable=False),
        sa.Column("protection", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("data_set_id", "number"),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column(
            "data_set_id", sa.String(80), sa.ForeignKey("data_sets.id"), nullable=False, index=True
        ),
        sa.Column("version_id", sa.String(32), sa.ForeignKey("versions.id"), nullable=False),
        sa.Column(
            "consumer_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False, index=True
        ),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("label", sa.String(200)),
        sa.Column("measure", sa.String(80)),
        sa.Column("models", sa.JSON(), nullable=False),
        sa.Column("terms_accepted", sa.Boolean(), nullable=False),
        sa.Column("configuration", sa.Text()),
        sa.Column("answer", sa.JSON()),
        sa.Column("frozen", sa.JSON()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("requests_by_state", "requests", ["state", "created"])
    op.create_table(
        "approvals",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column(
            "request_id", sa.String(32), sa.ForeignKey("requests.id"), nullable=False, index=True
        ),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("request_id", "account_id"),
    )


def _work() -> None:
    """Create jobs, the releases they make, and what they spend."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("place", sa.String(10), nullable=False),
        sa.Column(
            "data_set_id", sa.String(80), sa.ForeignKey("data_sets.id"), nullable=False, index=True
        ),
        sa.Column("request_id", sa.String(32), sa.ForeignKey("requests.id"), index=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(120)),
        sa.Column("leased_until", sa.DateTime(timezone=True)),
        sa.Column("task", sa.JSON(), nullable=False),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON()),
        sa.Column("error", sa.Text()),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True)),
    )
    op.create_index("jobs_by_place", "jobs", ["place", "state", "created"])
    op.create_table(
        "releases",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column(
            "request_id", sa.String(32), sa.ForeignKey("requests.id"), nullable=False, unique=True
        ),
        sa.Column(
            "data_set_id", sa.String(80), sa.ForeignKey("data_sets.id"), nullable=False, index=True
        ),
        sa.Column("population", sa.String(120), nullable=False, index=True),
        sa.Column("object_key", sa.String(200), nullable=False),
        sa.Column("file_name", sa.String(120), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=False),
        sa.Column("signature", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "spends",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("population", sa.String(120), nullable=False, index=True),
        sa.Column("job_id", sa.String(32), sa.ForeignKey("jobs.id"), nullable=False, unique=True),
        sa.Column("epsilon", sa.Float(), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    )
