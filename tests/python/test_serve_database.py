"""Does a database live on a served device? SQLite on ext4, on a loop device, on nbdfuse.

Needs root, FUSE and loop devices; is skipped with the reason where one of them is missing.
"""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from nbd import serving

DEVICE = "sim:demo?blocks_per_die=64"
NEEDED = ("nbdfuse", "mkfs.ext4", "losetup", "mount", "umount")


def run(*command: object) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise OSError(f"{command}: {done.stderr}")
    return done.stdout.strip()


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ext4 on a served device."""
    monkeypatch.chdir(tmp_path)
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or os.geteuid() != 0 or not Path("/dev/fuse").exists():
        pytest.skip(f"needs root, /dev/fuse and {', '.join(missing) or 'nothing else'}")
    point, image = tmp_path / "point", tmp_path / "nbd"
    point.mkdir()
    image.touch()
    with ExitStack() as stack:
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


def test_a_database_is_whole_after_it_was_filled_and_changed(mounted: Path) -> None:
    database = sqlite3.connect(mounted / "data.sqlite")
    database.execute("PRAGMA synchronous = FULL")
    with database:
        database.execute("CREATE TABLE part (id INTEGER PRIMARY KEY, name TEXT, price INTEGER)")
        rows = ((number, f"part {number}", number * 7) for number in range(20_000))
        database.executemany("INSERT INTO part VALUES (?, ?, ?)", rows)
    for number in range(20):
        with database:
            database.execute("UPDATE part SET price = price + 1 WHERE id % 20 = ?", (number,))
    database.close()
    again = sqlite3.connect(mounted / "data.sqlite")
    assert again.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    expected = sum(number * 7 + 1 for number in range(20_000))
    assert again.execute("SELECT count(*), sum(price) FROM part").fetchone() == (20_000, expected)
    again.close()
