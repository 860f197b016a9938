"""Name the first version of the tables, from which the other migrations start.

`Database` creates the tables of a new catalog from the records, without any migration.
"""

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing."""
