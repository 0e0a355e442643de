"""Ids of results have 32 digits from now on; existing ids stay."""

from alembic import op
from sqlalchemy import String

revision = "0005"
down_revision = "0004"

COLUMNS = (("result", "id"), ("file", "result_id"), ("device", "newest_id"))


def upgrade() -> None:
    """Widen the columns."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        for table, column in COLUMNS:
            op.alter_column(table, column, type_=String(length=32))
        return
    # SQLite stores texts of any length: only the declared type is wrong. A new table, as
    # `batch_alter_table` makes one, would lose its triggers. See https://sqlite.org/lang_altertable.html,
    # section 7: changes that do not affect the content on the disk.
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    for table, column in COLUMNS:
        connection.exec_driver_sql(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table' AND name = ?",
            (f"{column} VARCHAR(16)", f"{column} VARCHAR(32)", table),
        )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
