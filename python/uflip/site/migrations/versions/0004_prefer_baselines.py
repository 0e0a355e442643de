"""Prefer results with baselines to represent devices."""

from alembic import op

revision = "0004"
down_revision = "0003"

ALL = " AND ".join(f"r.{each}_ms IS NOT NULL" for each in ("sr", "rr", "sw", "rw"))
SOME = "coalesce(r.sr_ms, r.rr_ms, r.sw_ms, r.rw_ms) IS NOT NULL"
RANK = (
    f"CASE WHEN {ALL} AND r.scale = 'standard' THEN 0 WHEN {ALL} THEN 1 WHEN {SOME} THEN 2 "
    "ELSE 3 END"
)


def upgrade() -> None:
    """Select the results again."""
    op.execute(
        "UPDATE device SET newest_id = (SELECT r.id FROM result r WHERE r.device_id = device.id "
        "AND r.published_utc IS NOT NULL AND r.status = 'complete' "
        f"ORDER BY {RANK}, r.created_utc DESC, r.id DESC LIMIT 1)"
    )
