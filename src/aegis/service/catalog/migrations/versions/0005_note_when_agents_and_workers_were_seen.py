"""Record when each agent and worker was last seen, and delete recovery codes stored without a salt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of the last message from each program, and delete unsalted recovery codes."""
    op.create_table(
        "signs",
        sa.Column("place", sa.String(10), primary_key=True),
        sa.Column("name", sa.String(120), primary_key=True),
        sa.Column("account_id", sa.String(32), sa.ForeignKey("accounts.id"), index=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
    )
    # They had 80 bits. Who has a second factor makes other ones on the page of their account.
    op.execute(
        sa.table("second_factors", sa.column("recovery", sa.JSON())).update().values(recovery=[])
    )
