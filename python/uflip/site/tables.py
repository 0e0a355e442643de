"""The database schema of a site. Traces are files beside it, see `blobs`.

The columns of a result are those that lists show and filter by; the rest is in its summary, which
the server computed from the traces. The schema changes by migrations only (`migrations/`).
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
    column,
    table,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from uflip.data.document import Table
from uflip.errors import ResultsError

ROLES = ("reader", "submitter", "admin")
"""Each has the rights of those before it: see its own results; submit; everything."""


class AbsentError(ResultsError):
    """Not found, or not visible to the caller: the answers are the same."""


class Base(DeclarativeBase):
    """All tables."""


def _published(name: str, *columns: str) -> Index:
    """Return an index of published results."""
    where = text("published_utc IS NOT NULL")
    return Index(f"ix_result_{name}", *columns, sqlite_where=where, postgresql_where=where)


LISTED_BY = (
    "created_utc", "submitted_utc", "firmware", "scale", "state", "durability", "status",
    "device_class", "warnings", "runs", "sr_ms", "rr_ms", "sw_ms", "rw_ms",
)  # fmt: skip
"""Columns by which lists of results are sorted and filtered."""
WORDS = table("result_words", column("id"), column("words"))
"""Full-text table of `ResultRecord.words` in SQLite, updated by triggers; PostgreSQL: an index."""


class Account(Base):
    """The owner of a token; the token itself is not stored."""

    __tablename__ = "account"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    token_digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_utc: Mapped[str] = mapped_column(String(20))
    expires_utc: Mapped[str | None] = mapped_column(String(20))
    revoked_utc: Mapped[str | None] = mapped_column(String(20))


class DeviceRecord(Base):
    """A device model: its results have this name, capacity and kind.

    `published` counts the published results, `newest_id` is the complete one that represents the
    device, see `publishing.REPRESENTATIVE_ORDER`. The table of devices reads both from here, and no
    results.
    """

    __tablename__ = "device"
    __table_args__ = (UniqueConstraint("kind", "model", "capacity_bytes"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(String(120), unique=True)
    kind: Mapped[str] = mapped_column(String(20))
    model: Mapped[str] = mapped_column(String(500), index=True)
    capacity_bytes: Mapped[int] = mapped_column(BigInteger)
    published: Mapped[int] = mapped_column(default=0)
    newest_id: Mapped[str | None] = mapped_column(String(32), index=True)
    results: Mapped[list["ResultRecord"]] = relationship(back_populates="device")


class ResultRecord(Base):
    """A submitted benchmark that agrees with its own traces.

    `id` follows from the content, so that the same result twice is one; `words` is the text that
    is searched; `device_class` is None if it was never determined.
    """

    __tablename__ = "result"
    __table_args__ = (
        # A list is read in its order from one of these; a selective filter uses its own index.
        *(_published(f"by_{name}", name, "id") for name in LISTED_BY),
        _published("of_device", "device_id", "created_utc", "id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    device_id: Mapped[int] = mapped_column(ForeignKey("device.id"))
    folder_id: Mapped[str] = mapped_column(String(32), index=True)
    submitted_utc: Mapped[str] = mapped_column(String(20))
    published_utc: Mapped[str | None] = mapped_column(String(20))
    created_utc: Mapped[str] = mapped_column(String(20))
    uflip_version: Mapped[str] = mapped_column(String(50))
    firmware: Mapped[str] = mapped_column(String(200))
    scale: Mapped[str] = mapped_column(String(50))
    state: Mapped[str] = mapped_column(String(50))
    durability: Mapped[str] = mapped_column(String(20))
    status: Mapped[str] = mapped_column(String(20))
    runs: Mapped[int]
    experiments: Mapped[int]
    known: Mapped[int]
    warnings: Mapped[int]
    sr_ms: Mapped[float | None]
    rr_ms: Mapped[float | None]
    sw_ms: Mapped[float | None]
    rw_ms: Mapped[float | None]
    cells: Mapped[list[str] | None] = mapped_column(JSON)
    bytes: Mapped[int] = mapped_column(BigInteger)
    device_class: Mapped[str | None] = mapped_column(String(20))
    words: Mapped[str] = mapped_column(Text)
    device: Mapped[DeviceRecord] = relationship(back_populates="results", lazy="joined")
    account: Mapped[Account] = relationship(lazy="joined")
    files: Mapped[list["FileRecord"]] = relationship(
        back_populates="result", cascade="all, delete-orphan", order_by="FileRecord.path"
    )


class FileRecord(Base):
    """A file of a result: its name in the folder, and the digest of its content."""

    __tablename__ = "file"

    result_id: Mapped[str] = mapped_column(ForeignKey("result.id"), primary_key=True)
    path: Mapped[str] = mapped_column(String(260), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), index=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    result: Mapped[ResultRecord] = relationship(back_populates="files")


class Submission(Base):
    """An unfinished upload. The commit removes its row.

    `files` has the fields of `uflip.site.upload_files.UploadFile`, in the order of the paths.
    """

    __tablename__ = "submission"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    begun_utc: Mapped[str] = mapped_column(String(20))
    files: Mapped[list[Table]] = mapped_column(JSON)
    account: Mapped[Account] = relationship(lazy="joined")


class Identity(Base):
    """The id of the site, see `uflip.site.site`: one row, made with the schema."""

    __tablename__ = "site"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)


class Audit(Base):
    """The log of changes; its names outlive accounts and results."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(primary_key=True)
    at_utc: Mapped[str] = mapped_column(String(20))
    account: Mapped[str] = mapped_column(String(100))
    action: Mapped[str] = mapped_column(String(40))
    what: Mapped[str] = mapped_column(String(200))


def words_of(model: str, firmware: str, result: str) -> str:
    """Return the text in which a search finds a result."""
    return f"{model}\n{firmware}\n{result}".casefold()
