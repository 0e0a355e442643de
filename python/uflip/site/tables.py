"""What the database of a site holds. Traces are files beside it, see `blobs`.

A row is what a list shows and is filtered by; everything else of a result is in its summary, which
the server computed from the traces. The schema changes by migrations only (`migrations/`).
"""

from typing import TypedDict

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

from uflip.errors import ResultsError

ROLES = ("reader", "submitter", "admin")
"""Each may do what those before it may: look at what is its own; submit; everything."""


class AbsentError(ResultsError):
    """What is not there, or not to be seen by whoever asks, which is the same."""


class Base(DeclarativeBase):
    """All tables."""


def _published(name: str, *columns: str) -> Index:
    """Make an index of what everybody sees."""
    where = text("published_utc IS NOT NULL")
    return Index(f"ix_result_{name}", *columns, sqlite_where=where, postgresql_where=where)


LISTED_BY = (
    "created_utc", "submitted_utc", "firmware", "scale", "state", "durability", "status",
    "device_class", "warnings", "runs", "sr_ms", "rr_ms", "sw_ms", "rw_ms",
)  # fmt: skip
"""What lists of results are ordered by and filtered by."""
WORDS = table("result_words", column("id"), column("words"))
"""Full text of `ResultRecord.words` in SQLite, kept by triggers; PostgreSQL has an index."""


class Account(Base):
    """Whoever has a token; the token itself is kept nowhere."""

    __tablename__ = "account"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    token_digest: Mapped[str] = mapped_column(String(64), unique=True)
    created_utc: Mapped[str] = mapped_column(String(20))
    revoked_utc: Mapped[str | None] = mapped_column(String(20))


class DeviceRecord(Base):
    """A model of a device: all results of one that has this name, capacity and kind.

    `published` counts those that everybody sees, `newest_id` is the complete one of them that
    stands for it, see `publishing.STANDS_FOR_DEVICE`: both are kept there, so that the table of
    devices reads no results.
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
    """A benchmark that was submitted and holds against its own traces.

    `id` follows from its content, so that the same result twice is one; `words` is what is
    searched; `device_class` is None where it was never worked out.
    """

    __tablename__ = "result"
    __table_args__ = (
        # A list is read in its order from one of these; where a filter leaves few, from its own.
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
    """A file of a result: its name in the folder, and the digest that its content is found by."""

    __tablename__ = "file"

    result_id: Mapped[str] = mapped_column(ForeignKey("result.id"), primary_key=True)
    path: Mapped[str] = mapped_column(String(260), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), index=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    result: Mapped[ResultRecord] = relationship(back_populates="files")


class UploadedFile(TypedDict):
    """A file of an upload, see `uflip.site.upload_manifest.UploadFile`."""

    path: str
    digest: str
    bytes: int


class Submission(Base):
    """An upload that has begun: which files it will have. It is gone when it is a result."""

    __tablename__ = "submission"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    begun_utc: Mapped[str] = mapped_column(String(20))
    files: Mapped[list["UploadedFile"]] = mapped_column(JSON)
    account: Mapped[Account] = relationship(lazy="joined")


class Identity(Base):
    """Which site it is, see `uflip.site.identity`: one row, made with the schema."""

    __tablename__ = "site"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)


class Audit(Base):
    """Who did what; names outlive accounts and results."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(primary_key=True)
    at_utc: Mapped[str] = mapped_column(String(20))
    account: Mapped[str] = mapped_column(String(100))
    action: Mapped[str] = mapped_column(String(40))
    what: Mapped[str] = mapped_column(String(200))


def words_of(model: str, firmware: str, result: str) -> str:
    """Make the text in which a result is found by its words."""
    return f"{model}\n{firmware}\n{result}".casefold()
