"""The id of the site, and complete results to represent devices.

The folder stores the same id, see `uflip.site.identity`. The result that represents a device is a
complete one from now on.
"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NEWEST = (
    "(SELECT r.id FROM result r WHERE r.device_id = device.id AND r.published_utc IS NOT NULL "
    "AND r.status = 'complete' {more}ORDER BY r.created_utc DESC, r.id DESC LIMIT 1)"
)
STANDARD = "AND r.scale = 'standard' "


def upgrade() -> None:
    """Create the table with its one row, and select the newest results again."""
    site = op.create_table(
        "site",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.bulk_insert(site, [{"id": secrets.token_hex(16)}])
    best, other = NEWEST.format(more=STANDARD), NEWEST.format(more="")
    op.execute(f"UPDATE device SET newest_id = coalesce({best}, {other})")
