"""The initial schema: accounts, devices, results with their files, uploads, audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _published(name: str, *columns: str) -> None:
    where = sa.text("published_utc IS NOT NULL")
    op.create_index(name, "result", [*columns], sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("token_digest", sa.String(length=64), nullable=False),
        sa.Column("created_utc", sa.String(length=20), nullable=False),
        sa.Column("revoked_utc", sa.String(length=20), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("token_digest"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at_utc", sa.String(length=20), nullable=False),
        sa.Column("account", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("what", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "device",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.String(length=120), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("model", sa.String(length=500), nullable=False),
        sa.Column("capacity_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kind", "model", "capacity_bytes"),
        sa.UniqueConstraint("slug"),
    )
    op.create_index("ix_device_model", "device", ["model"], unique=False)
    op.create_table(
        "result",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("device_id", sa.Integer(), nullable=False),
        sa.Column("folder_id", sa.String(length=32), nullable=False),
        sa.Column("submitted_utc", sa.String(length=20), nullable=False),
        sa.Column("published_utc", sa.String(length=20), nullable=True),
        sa.Column("created_utc", sa.String(length=20), nullable=False),
        sa.Column("uflip_version", sa.String(length=50), nullable=False),
        sa.Column("firmware", sa.String(length=200), nullable=False),
        sa.Column("scale", sa.String(length=50), nullable=False),
        sa.Column("state", sa.String(length=50), nullable=False),
        sa.Column("durability", sa.String(length=20), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("experiments", sa.Integer(), nullable=False),
        sa.Column("known", sa.Integer(), nullable=False),
        sa.Column("warnings", sa.Integer(), nullable=False),
        sa.Column("sr_ms", sa.Double(), nullable=True),
        sa.Column("rr_ms", sa.Double(), nullable=True),
        sa.Column("sw_ms", sa.Double(), nullable=True),
        sa.Column("rw_ms", sa.Double(), nullable=True),
        sa.Column("cells", sa.JSON(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
        ),
        sa.ForeignKeyConstraint(
            ["device_id"],
            ["device.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_result_account_id", "result", ["account_id"], unique=False)
    op.create_index("ix_result_folder_id", "result", ["folder_id"], unique=False)
    _published("ix_result_listed", "created_utc", "id")
    _published("ix_result_of_device", "device_id", "created_utc")
    _published("ix_result_of_scale", "device_id", "scale", "created_utc")
    _published("ix_result_of_state", "state", "created_utc")
    op.create_table(
        "submission",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("account_id", sa.Integer(), nullable=False),
        sa.Column("begun_utc", sa.String(length=20), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["account_id"],
            ["account.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_submission_account_id", "submission", ["account_id"], unique=False)
    op.create_table(
        "file",
        sa.Column("result_id", sa.String(length=16), nullable=False),
        sa.Column("path", sa.String(length=260), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["result_id"],
            ["result.id"],
        ),
        sa.PrimaryKeyConstraint("result_id", "path"),
    )
    op.create_index("ix_file_digest", "file", ["digest"], unique=False)
