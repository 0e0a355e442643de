"""kill -9 of a results site during submissions: acknowledged results are never lost or partial.

The lifetime of a server is drawn in units of an undisturbed submission, measured before, and grows
with each try: every submission ends, however slow the machine.
"""

import hashlib
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
from command_line import uflip
from site_server import SiteServer

from uflip.errors import UflipError
from uflip.results.integrity import examine
from uflip.results.writer import FolderFiles
from uflip.site.client import Client, PreparedResult, prepare, redacted_copy

SEED = int(os.environ.get("UFLIP_SEED") or time.time_ns() % 2**32)
SUBMISSIONS = int(os.environ.get("UFLIP_KILLS") or (200 if os.environ.get("UFLIP_SOAK") else 3))
MOST_TRIES = 30
"""The last has 1.5^29 times the patience of the first: a site that fails it does not answer."""


def variant(folder: Path, out: Path, number: int) -> Path:
    """Return the same benchmark with another scale name: another result, which verifies."""
    redacted_copy(folder, out)
    verification = examine(out)
    files = FolderFiles(out)
    try:
        content = verification.usable_manifest()
        files.resume(content, verification)
        files.write_manifest(msgspec.structs.replace(content, scale=f"quick-{number}"))
    finally:
        files.close()
    return out


def test_kill_loses_no_acknowledged_result(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    seed_text = f"UFLIP_SEED={SEED}"
    outcome = uflip(
        "run", "sim:demo?blocks_per_die=32", "--scale", "quick", "--only", "order", "-q",
        "--out", tmp_path / "r",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    server = SiteServer(tmp_path / "site", None)
    token = server.token("alice")
    server.begin()
    undisturbed = prepared_variant(tmp_path, SUBMISSIONS)
    begun = time.monotonic()
    acknowledged = {SUBMISSIONS: _submit(server.url, token, undisturbed)}
    usual_s = time.monotonic() - begun
    kills, last = 0, seed_text
    for number in range(SUBMISSIONS):
        prepared = prepared_variant(tmp_path, number)
        for tried in range(MOST_TRIES):
            if server.process is None or server.process.poll() is not None:
                server.begin()
                _check(server, acknowledged, seed_text)
            dead = threading.Event()
            patience_s = rng.uniform(0, usual_s) * 1.5**tried
            killer = threading.Thread(target=_kill_later, args=(server, patience_s, dead))
            killer.start()
            try:
                acknowledged[number] = _submit(server.url, token, prepared)
            except UflipError as error:  # the next round resumes it
                last = f"{seed_text}: {error}"
            dead.set()
            killer.join()
            kills += server.process is not None and server.process.poll() is not None
            if number in acknowledged:
                break
        assert number in acknowledged, last
    if server.process is None or server.process.poll() is not None:
        server.begin()
    _check(server, acknowledged, seed_text)
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}) as alice:
        listed = alice.get("/api/v1/results?per_page=500").json()
        assert listed["total"] == len(set(acknowledged.values())) == SUBMISSIONS + 1, seed_text
    server.stop()
    print(f"{kills} kills, {SUBMISSIONS} submissions")


def prepared_variant(folder: Path, number: int) -> PreparedResult:
    """Return a submission of one of the results, made from the one in `r`."""
    scratch = folder / f"scratch-{number}"
    scratch.mkdir()
    return prepare(variant(folder / "r", folder / f"v-{number}", number), scratch)


def _submit(url: str, token: str, prepared: PreparedResult) -> str:
    with Client(url, token) as client:
        return str(client.submit(prepared)["id"])


def _kill_later(server: SiteServer, patience_s: float, dead: threading.Event) -> None:
    if not dead.wait(patience_s):
        server.kill()


def _check(server: SiteServer, acknowledged: dict[int, str], seed_text: str) -> None:
    headers = {"Authorization": f"Bearer {server.tokens['alice']}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=60) as alice:
        listed = alice.get("/api/v1/results?per_page=500").json()["results"]
        assert set(acknowledged.values()) <= {each["id"] for each in listed}, seed_text
        for each in listed[:5]:
            _check_whole(alice, each["id"], seed_text)


def _check_whole(alice: httpx.Client, result: str, seed_text: str) -> None:
    detail: Any = alice.get(f"/api/v1/results/{result}").json()
    assert alice.get(f"/api/v1/results/{result}/summary").status_code == 200, seed_text
    for file in detail["files"]:
        content = alice.get(f"/api/v1/results/{result}/files/{file['digest']}").content
        assert hashlib.sha256(content).hexdigest() == file["digest"], seed_text
