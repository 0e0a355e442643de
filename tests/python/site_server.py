"""A results site as a process of its own, over SQLite or a PostgreSQL server made for the tests."""

import json
import os
import resource
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from command_line import start, uflip
from warm import program

START_S = 60.0
# Modules of a site at work; their import takes three quarters of its start.
IMPORTED = (
    "alembic.command", "anyio._backends._asyncio", "jinja2", "rich.progress", "sqlite3",
    "uflip.cli.progress", "uflip.cli.site", "uflip.site.app", "uflip.site.publishing",
    "uflip.site.intake", "uflip.site.blob_refs", "uflip.web.connections",
    "uflip.web.connections", "uvicorn.lifespan.off", "uvicorn.loops.asyncio",
)  # fmt: skip
POSTGRES = Path("/usr/lib/postgresql")


def postgres_programs() -> Path | None:
    """Return the folder of the newest PostgreSQL server's programs; None if not installed."""
    initdbs = sorted(POSTGRES.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return initdbs[-1].parent if initdbs else None


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server, and return the URL of an empty database."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server: apt-get install postgresql")
    if os.getuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and runuser is missing")
    # Not in pytest's folders, which only their owner may read.
    folder = Path(tempfile.mkdtemp(prefix="uflip-postgres-", dir="/tmp"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    data = folder / "data"
    _as_postgres(programs / "initdb", "-D", data, "-U", "uflip", "-A", "trust", "-N")
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    _as_postgres(
        programs / "pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log", "start"
    )
    try:
        yield f"postgresql://uflip@/postgres?host={folder}"
    finally:
        _as_postgres(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def _as_postgres(*command: object) -> None:
    words = [str(word) for word in command]
    if os.getuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    subprocess.run(words, check=True, capture_output=True, cwd="/tmp")


def start_site(*arguments: object) -> subprocess.Popen[str]:
    """Start `uflip site` as a process of its own, with preloaded modules."""
    return start("site", *arguments, program=program(*IMPORTED))


@dataclass
class SiteServer:
    """A server, and tokens for it.

    With `fresh` its process is a new interpreter; `descriptors` limits its open files.
    """

    folder: Path
    database: str | None
    options: tuple[str, ...] = ()
    fresh: bool = False
    descriptors: int | None = None
    url: str = ""
    process: subprocess.Popen[str] | None = None
    tokens: dict[str, str] = field(default_factory=dict)
    clients: dict[str | None, httpx.Client] = field(default_factory=dict)

    def begin(self) -> "SiteServer":
        """Start the server on a free port, and wait until it answers."""
        more = ["--database", self.database] if self.database else []
        more += ["--per-minute", str(10**6), *self.options]
        serve = ("serve", self.folder, "--port", "0", *more)
        self.process = start("site", *serve, **self._limits()) if self.fresh else start_site(*serve)
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_S)
        assert readable, "it does not print its address"
        self.url = self.process.stdout.readline().strip()
        started = time.monotonic()
        while True:
            assert self.process.poll() is None, self.process.communicate()
            try:
                httpx.get(f"{self.url}/health").raise_for_status()
                return self
            except httpx.HTTPError:
                assert time.monotonic() - started < START_S, "it does not answer"
                time.sleep(0.05)

    def _limits(self) -> dict[str, object]:
        if self.descriptors is None:
            return {}
        files, limit = resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors)
        return {"preexec_fn": lambda: resource.setrlimit(files, limit)}

    def kill(self) -> None:
        """Kill the server, as a loss of power would."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate(timeout=30)

    def token(self, name: str, role: str = "submitter") -> str:
        """Return the token of an account, created at the first call."""
        if name not in self.tokens:
            more = ["--database", self.database] if self.database else []
            outcome = uflip("site", "token", self.folder, name, "--role", role, "--json", *more)
            assert outcome.code == 0, outcome.err
            self.tokens[name] = json.loads(outcome.out)["token"]
        return self.tokens[name]

    def client(self, name: str | None = None) -> httpx.Client:
        """Return a client with the token of an account, or an anonymous one."""
        if name not in self.clients:
            headers = {"Authorization": f"Bearer {self.tokens[name]}"} if name else {}
            self.clients[name] = httpx.Client(base_url=self.url, headers=headers, timeout=60)
        return self.clients[name]

    def stop(self) -> None:
        """Close all clients, and terminate the server."""
        for client in self.clients.values():
            client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.communicate(timeout=30)


@contextmanager
def site_server(
    folder: Path,
    database: str | None = None,
    *options: str,
    fresh: bool = False,
    descriptors: int | None = None,
) -> Iterator[SiteServer]:
    """Serve a site during the block."""
    server = SiteServer(folder, database, options, fresh, descriptors).begin()
    try:
        yield server
    finally:
        server.stop()


def small_result(out: Path) -> Path:
    """Measure a small device in a second: a result that can be submitted."""
    outcome = uflip(
        "run", "sim:demo?blocks_per_die=64", "--scale", "quick", "--only", "order", "-q",
        "--out", out,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    return out
