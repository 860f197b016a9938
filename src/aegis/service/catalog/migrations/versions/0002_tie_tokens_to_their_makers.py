"""Add columns for the token that created each token, and for the policy that an operator proposes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns for parent tokens and proposed policies."""
    with op.batch_alter_table("tokens") as tokens:
        tokens.add_column(sa.Column("parent_id", sa.String(length=32), nullable=True))
        tokens.create_foreign_key("tokens_by_maker", "tokens", ["parent_id"], ["id"])
    op.add_column("data_sets", sa.Column("proposed", sa.Text(), nullable=True))
    op.create_index("requests_by_time", "requests", ["created"])
