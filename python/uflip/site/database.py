"""The database of a site: opened, and migrated to the schema of this version.

SQLite in a file beside the results needs no set-up; a URL of SQLAlchemy selects PostgreSQL, which
several servers may share.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from uflip.errors import UnavailableError, UsageError
from uflip.escape import without_password
from uflip.extras import missing_extra

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

MIGRATIONS = Path(__file__).parent / "migrations"
LOCK = 0x75666C69
"""Advisory lock of PostgreSQL during migrations: two servers may start at once."""
BUSY_S = 30.0
PACKAGES = ("alembic", "fastapi", "jinja2", "sqlalchemy", "uvicorn")
BACKENDS = ("sqlite", "postgresql", "postgres")


def open_database(url: str) -> "Engine":
    """Open a database, and migrate it to this version's schema.

    `url`: as SQLAlchemy takes it: `sqlite:////srv/site/site.db`, `postgresql://user@host/name`.
    """
    check_url(url)
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import NoSuchModuleError, OperationalError

    try:
        engine = create_engine(_with_driver(url), pool_pre_ping=True)
    except (NoSuchModuleError, ValueError) as error:
        raise _no_database(url) from error
    except ImportError as error:
        raise _missing_library() from error
    prepare = _prepare_sqlite if engine.dialect.name == "sqlite" else _prepare_postgres
    event.listen(engine, "connect", prepare)
    try:
        _migrate(engine)
    except OperationalError as error:
        raise UnavailableError(
            "The database does not answer",
            where=engine.url.render_as_string(),
            got=str(error.orig).strip().splitlines()[0] if error.orig else str(error),
            action="start it, or give another --database",
        ) from error
    return engine


def check_url(url: str) -> None:
    """Refuse a malformed URL before anything is created."""
    check_library()
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        is_supported = make_url(url).get_backend_name() in BACKENDS
    except (ArgumentError, ValueError) as error:
        raise _no_database(url) from error
    if not is_supported:
        raise _no_database(url)


def check_library() -> None:
    """Refuse an environment without the packages of a site."""
    if any(find_spec(name) is None for name in PACKAGES):
        raise _missing_library()


def _missing_library() -> UnavailableError:
    what = "The results site needs FastAPI, SQLAlchemy and Alembic"
    return missing_extra("site", what, where="uflip site")


def _no_database(url: str) -> UsageError:
    return UsageError(
        "Not the address of a database",
        where="--database",
        got=without_password(url),
        allowed="sqlite:///FILE, postgresql://USER@HOST/NAME",
        action="omit --database for SQLite in the site's folder",
    )


def _with_driver(url: str) -> str:
    """Add the driver that is installed with uflip to a URL that names none."""
    for old in ("postgresql://", "postgres://"):
        if url.startswith(old):
            return "postgresql+psycopg://" + url.removeprefix(old)
    return url


def _prepare_sqlite(connection: object, _record: object) -> None:
    """Set WAL mode, so that readers do not block a writer, with durable commits."""
    cursor = connection.cursor()  # type: ignore[attr-defined]
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={int(BUSY_S * 1000)}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _prepare_postgres(connection: object, _record: object) -> None:
    """Disable JIT compilation of short queries, and plan each query for its parameters."""
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("SET jit = off")
    cursor.execute("SET plan_cache_mode = force_custom_plan")
    cursor.close()
    connection.commit()  # type: ignore[attr-defined]


def revisions() -> list[str]:
    """Return the schema revisions that this version supports, oldest first."""
    from alembic.script import ScriptDirectory

    return [each.revision for each in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]


def _migrate(engine: "Engine") -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection, _migration_lock(connection):
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise UsageError(
                "The database cannot be migrated to this version of uflip",
                where="--database",
                got=str(error),
                action="use the version that last wrote to it, or a newer one",
            ) from error


@contextmanager
def _migration_lock(connection: "Connection") -> Iterator[None]:
    from sqlalchemy import text

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    yield
