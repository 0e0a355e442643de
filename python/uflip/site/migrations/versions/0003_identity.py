"""Which site it is: an id that the folder keeps as well, see `uflip.site.identity`."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table, with its one row."""
    site = op.create_table(
        "site",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.bulk_insert(site, [{"id": secrets.token_hex(16)}])
