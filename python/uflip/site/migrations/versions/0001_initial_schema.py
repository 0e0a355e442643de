"""The initial schema: accounts, devices, results with their files, uploads, audit log.

Searches use an index of the trigrams of each result's words (SQLite: FTS5, updated by triggers;
PostgreSQL: pg_trgm). The table `site` has one row, the id of the site: `uflip.site.identity`.
"""

import secrets

import sqlalchemy as sa
from alembic import op

from uflip.errors import UnavailableError

revision = "0001"
down_revision = None

LISTED_BY = (
    "created_utc", "submitted_utc", "firmware", "scale", "state", "durability", "status",
    "device_class", "warnings", "runs", "sr_ms", "rr_ms", "sw_ms", "rw_ms",
)  # fmt: skip
FULL_TEXT = (
    "CREATE VIRTUAL TABLE result_words USING fts5(id UNINDEXED, words, tokenize='trigram')",
    "CREATE TRIGGER result_words_in AFTER INSERT ON result BEGIN "
    "INSERT INTO result_words (id, words) VALUES (new.id, new.words); END",
    "CREATE TRIGGER result_words_out AFTER DELETE ON result BEGIN "
    "DELETE FROM result_words WHERE id = old.id; END",
    "CREATE TRIGGER result_words_new AFTER UPDATE OF words ON result BEGIN "
    "UPDATE result_words SET words = new.words WHERE id = new.id; END",
)


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
        sa.Column("expires_utc", sa.String(length=20), nullable=True),
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
        sa.Column("published", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("newest_id", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kind", "model", "capacity_bytes"),
        sa.UniqueConstraint("slug"),
    )
    op.create_index("ix_device_model", "device", ["model"], unique=False)
    op.create_index("ix_device_newest_id", "device", ["newest_id"])
    op.create_table(
        "result",
        sa.Column("id", sa.String(length=32), nullable=False),
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
        sa.Column("device_class", sa.String(length=20), nullable=True),
        sa.Column("words", sa.Text(), nullable=False, server_default=""),
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
    _published("ix_result_of_device", "device_id", "created_utc", "id")
    for name in LISTED_BY:
        _published(f"ix_result_by_{name}", name, "id")
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
        sa.Column("result_id", sa.String(length=32), nullable=False),
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
    site = op.create_table(
        "site",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.bulk_insert(site, [{"id": secrets.token_hex(16)}])
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for step in FULL_TEXT:
            connection.execute(sa.text(step))
    else:
        _trigrams(connection)


def _trigrams(connection: sa.Connection) -> None:
    available = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'")
    if not connection.scalar(available):
        raise UnavailableError(
            "PostgreSQL lacks an extension that searches need",
            where="pg_trgm",
            got="a server without it",
            allowed="a server with the extensions that come with PostgreSQL",
            action="install them: on Debian they are in postgresql, elsewhere postgresql-contrib",
        )
    connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
    connection.execute(
        sa.text("CREATE INDEX ix_result_words ON result USING gin (words gin_trgm_ops)")
    )
