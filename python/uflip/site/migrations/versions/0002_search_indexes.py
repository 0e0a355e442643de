"""Indexes and columns for fast lists, searches and the table of devices.

Adds an index for the order of each list; the searched text, with an index of its trigrams (SQLite:
FTS5, updated by triggers; PostgreSQL: pg_trgm); for each device the number of published results and
the newest one; for each new result the class of its device.
"""

import sqlalchemy as sa
from alembic import op

from uflip.errors import UnavailableError

revision = "0002"
down_revision = "0001"

FORMER = ("ix_result_listed", "ix_result_of_device", "ix_result_of_scale", "ix_result_of_state")
LISTED_BY = (
    "created_utc", "submitted_utc", "firmware", "scale", "state", "durability", "status",
    "device_class", "warnings", "runs", "sr_ms", "rr_ms", "sw_ms", "rw_ms",
)  # fmt: skip
FULL_TEXT = (
    "CREATE VIRTUAL TABLE result_words USING fts5(id UNINDEXED, words, tokenize='trigram')",
    "INSERT INTO result_words (id, words) SELECT id, words FROM result",
    "CREATE TRIGGER result_words_in AFTER INSERT ON result BEGIN "
    "INSERT INTO result_words (id, words) VALUES (new.id, new.words); END",
    "CREATE TRIGGER result_words_out AFTER DELETE ON result BEGIN "
    "DELETE FROM result_words WHERE id = old.id; END",
    "CREATE TRIGGER result_words_new AFTER UPDATE OF words ON result BEGIN "
    "UPDATE result_words SET words = new.words WHERE id = new.id; END",
)
NEWEST = (
    "(SELECT r.id FROM result r WHERE r.device_id = device.id AND r.published_utc IS NOT NULL "
    "{more}ORDER BY r.created_utc DESC, r.id DESC LIMIT 1)"
)
STANDARD = "AND r.scale = 'standard' "
COUNTED = (
    "UPDATE device SET published = (SELECT count(*) FROM result r "
    "WHERE r.device_id = device.id AND r.published_utc IS NOT NULL), "
    f"newest_id = coalesce({NEWEST.format(more=STANDARD)}, {NEWEST.format(more='')})"
)


def _published(name: str, *columns: str) -> None:
    where = sa.text("published_utc IS NOT NULL")
    op.create_index(name, "result", [*columns], sqlite_where=where, postgresql_where=where)


def upgrade() -> None:
    """Add columns, fill them, and make the indexes."""
    for name in FORMER:
        op.drop_index(name, "result")
    op.add_column(
        "device", sa.Column("published", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("device", sa.Column("newest_id", sa.String(length=16), nullable=True))
    op.create_index("ix_device_newest_id", "device", ["newest_id"])
    op.add_column("result", sa.Column("device_class", sa.String(length=20), nullable=True))
    op.add_column("result", sa.Column("words", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    _fill_words(connection)
    _published("ix_result_of_device", "device_id", "created_utc", "id")
    connection.execute(sa.text(COUNTED))
    for name in LISTED_BY:
        _published(f"ix_result_by_{name}", name, "id")
    if connection.dialect.name == "sqlite":
        for step in FULL_TEXT:
            connection.execute(sa.text(step))
    else:
        _trigrams(connection)


def _fill_words(connection: sa.Connection) -> None:
    """Write the searched text, as `uflip.site.tables.words_of` makes it."""
    rows = connection.execute(
        sa.text(
            "SELECT result.id, firmware, model FROM result JOIN device ON device.id = device_id"
        )
    )
    filled = [
        {"name": name, "words": f"{model}\n{firmware}\n{name}".casefold()}
        for name, firmware, model in rows.all()
    ]
    if filled:
        connection.execute(sa.text("UPDATE result SET words = :words WHERE id = :name"), filled)


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
