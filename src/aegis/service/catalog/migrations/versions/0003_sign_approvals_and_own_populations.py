"""Store signed approvals, renewals, an agent's former keys, and the owner of each population."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_OWNERS = """
INSERT INTO populations (name, owner_id, members, created)
SELECT d.population, d.provider_id, '[]', d.created FROM data_sets d
WHERE d.id = (
    SELECT f.id FROM data_sets f WHERE f.population = d.population
    ORDER BY f.created, f.id LIMIT 1
)
"""
"""The first account that named a population owns it; other providers join with its consent."""


def upgrade() -> None:
    """Add the tables and columns for signatures, renewals, former keys and owners."""
    op.create_table(
        "populations",
        sa.Column("name", sa.String(120), primary_key=True),
        sa.Column("owner_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("members", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    )
    op.execute(_OWNERS)
    op.add_column(
        "data_sets", sa.Column("former_keys", sa.JSON(), nullable=False, server_default="[]")
    )
    op.add_column("requests", sa.Column("asked", sa.JSON(), nullable=False, server_default="{}"))
    # The constraint of the old table has no name by which it could be changed in place.
    op.rename_table("approvals", "approvals_before")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER INDEX ix_approvals_request_id RENAME TO ix_approvals_before")
        op.execute("ALTER TABLE approvals_before RENAME CONSTRAINT approvals_pkey TO before_pkey")
    else:
        op.drop_index("ix_approvals_request_id", "approvals_before")
    op.create_table(
        "approvals",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column(
            "request_id", sa.String(32), sa.ForeignKey("requests.id"), nullable=False, index=True
        ),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("step", sa.String(10), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("signed", sa.JSON()),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("request_id", "account_id", "step", name="approvals_once"),
    )
    op.execute(
        "INSERT INTO approvals (id, request_id, account_id, step, digest, created) "
        "SELECT id, request_id, account_id, 'approve', digest, created FROM approvals_before"
    )
    op.drop_table("approvals_before")
