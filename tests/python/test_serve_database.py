"""Does a database work on a served device? SQLite and PostgreSQL on ext4 on a loop over nbdfuse.

Needs root, FUSE and loop devices; is skipped with the reason where one of them is missing. The page
docs/how-to/serve-a-simulated-device.md shows the same by hand.
"""

import os
import pwd
import shlex
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from nbd import serving

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serve-a-simulated-device.md"
DEVICE = "sim:demo?blocks_per_die=128"
NEEDED = ("nbdfuse", "mkfs.ext4", "losetup", "mount", "umount")
# Install folders of Debian's packages, and of a build from source.
POSTGRESQL = (*Path("/usr/lib/postgresql").glob("*/bin"), Path("/usr/local/pgsql/bin"))
# The user that runs the server, which refuses root.
NOBODY = "nobody"
# A transaction of pgbench adds the same amount to an account, a teller, a branch, and the history.
SUMS = """SELECT (SELECT sum(abalance) FROM pgbench_accounts),
    (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches),
    (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history),
    (SELECT count(*) FROM pgbench_accounts)"""
BRANCHES, CLIENTS, TRANSACTIONS = 2, 2, 300


def run(*command: object, user: str | None = None) -> str:
    process = subprocess.run(
        [str(word) for word in command],
        capture_output=True, text=True, timeout=120, check=False, user=user, cwd="/",
    )  # fmt: skip
    if process.returncode != 0:
        raise OSError(f"{command}: {process.stderr}")
    return process.stdout.strip()


@pytest.fixture
def mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ext4 on a served device."""
    monkeypatch.chdir(tmp_path)
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip(f"needs root, /dev/fuse and {', '.join(missing) or 'nothing else'}")
    image = tmp_path / "nbd"
    image.touch()
    with ExitStack() as stack:
        # Readable by others: a database does not run as root, which owns the folders of tests.
        point = Path(stack.enter_context(TemporaryDirectory()))
        point.chmod(0o755)
        stack.enter_context(serving(DEVICE, "--speed", "0"))
        fuse = subprocess.Popen(["nbdfuse", image, "nbd+unix:///?socket=s"])
        stack.callback(fuse.wait, 20)
        until = time.monotonic() + 20
        while image.stat().st_size == 0:
            if fuse.poll() is not None or time.monotonic() > until:
                pytest.skip("nbdfuse cannot mount here")
            time.sleep(0.01)
        stack.callback(subprocess.run, ["umount", image], check=False)
        run("mkfs.ext4", "-q", "-F", image)
        try:
            loop = run("losetup", "--find", "--show", image)
        except OSError as error:
            pytest.skip(f"no loop device: {error}")
        stack.callback(run, "losetup", "--detach", loop)
        run("mount", "-t", "ext4", loop, point)
        stack.callback(run, "umount", point)
        yield point


def test_page_serves_the_tested_device() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (url, *options), *others = (
        shlex.split(line)[2:] for line in text.splitlines() if line.endswith("--quiet &")
    )
    assert (url, options[:2], others) == (DEVICE, ["--speed", "0"], [])


def test_sqlite_database_is_intact_after_updates(mount_point: Path) -> None:
    database = sqlite3.connect(mount_point / "data.sqlite")
    database.execute("PRAGMA synchronous = FULL")
    with database:
        database.execute("CREATE TABLE part (id INTEGER PRIMARY KEY, name TEXT, price INTEGER)")
        rows = ((number, f"part {number}", number * 7) for number in range(20_000))
        database.executemany("INSERT INTO part VALUES (?, ?, ?)", rows)
    for number in range(20):
        with database:
            database.execute("UPDATE part SET price = price + 1 WHERE id % 20 = ?", (number,))
    database.close()
    reopened = sqlite3.connect(mount_point / "data.sqlite")
    assert reopened.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    expected = sum(number * 7 + 1 for number in range(20_000))
    assert reopened.execute("SELECT count(*), sum(price) FROM part").fetchone() == (
        20_000,
        expected,
    )
    reopened.close()


@pytest.fixture
def cluster(mount_point: Path) -> Iterator[Callable[..., str]]:
    """Return a function that runs programs of PostgreSQL; its data is on the device."""
    programs = next((path for path in POSTGRESQL if (path / "initdb").exists()), None)
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    data, sockets = mount_point / "data", mount_point / "sockets"
    for folder in (data, sockets):
        folder.mkdir()
        shutil.chown(folder, pwd.getpwnam(NOBODY).pw_uid)

    def program(name: str, *arguments: object) -> str:
        where = () if name in ("initdb", "pg_ctl", "pg_checksums") else ("-h", sockets)
        return run(programs / name, *where, *arguments, user=NOBODY)

    initdb_options = (
        "-D",
        data,
        "-A",
        "trust",
        "-U",
        NOBODY,
        "--data-checksums",
        "--wal-segsize=1",
    )
    program("initdb", *initdb_options, "--no-locale", "-E", "UTF8")
    options = f"-c listen_addresses='' -k {sockets} -c max_wal_size=16MB -c shared_buffers=4MB"

    def postgresql(name: str, *arguments: object) -> str:
        if name == "start":
            return program("pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, name)
        if name == "stop":
            return program("pg_ctl", "-D", data, "-w", "-m", *arguments, name)
        if name == "pg_checksums":
            return program(name, "-D", data, *arguments)
        return program(name, *arguments)

    postgresql("start")
    yield postgresql
    if (data / "postmaster.pid").exists():
        postgresql("stop", "immediate")


def test_postgresql_is_intact_after_transactions_and_crash(
    cluster: Callable[..., str],
) -> None:
    cluster("pgbench", "-i", "-q", "-s", BRANCHES, "postgres")
    cluster("pgbench", "-c", CLIENTS, "-t", TRANSACTIONS, "-n", "postgres")
    ask = ("psql", "-At", "-F", " ", "-c", SUMS, "postgres")
    before = cluster(*ask)
    accounts, tellers, branches, history, transactions, count = map(int, before.split())
    assert accounts == tellers == branches == history != 0
    assert (transactions, count) == (CLIENTS * TRANSACTIONS, BRANCHES * 100_000)
    # Without a checkpoint commits are only in the log, which is replayed.
    cluster("stop", "immediate")
    cluster("start")
    assert cluster(*ask) == before
    cluster("psql", "-c", "CREATE EXTENSION amcheck", "postgres")
    checked = "SELECT relname, bt_index_check(oid, true) FROM pg_class WHERE relname ~ '_pkey$'"
    indices = cluster("psql", "-At", "-F", " ", "-c", checked, "postgres").split()
    assert {"pgbench_accounts_pkey", "pgbench_tellers_pkey"} <= set(indices)
    cluster("stop", "fast")
    output = cluster("pg_checksums", "--check")
    assert "Bad checksums:  0" in output, output
