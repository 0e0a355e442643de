"""What the operator of a site uses: tokens that expire, the list of accounts, metrics."""

import json
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from command_line import uflip
from site_server import site_server, small_result

from uflip.site import accounts
from uflip.site.site import open_site


def test_rotated_and_expired_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site"
    given = [uflip("site", "token", folder, "alice", "--expires", "30").out.strip()]
    given.append(uflip("site", "token", folder, "alice", "--rotate").out.strip())
    given.append(uflip("site", "token", folder, "alice", "--rotate", "--expires", "1").out.strip())
    assert len(set(given)) == 3
    site = open_site(folder)
    try:
        with site.sessions() as session:
            owners = [accounts.account_of(session, token) for token in given]
            assert [owner and owner.name for owner in owners] == [None, None, "alice"]
            role = owners[2].role
        tomorrow = accounts.utc_now(after=timedelta(days=1, seconds=1))
        monkeypatch.setattr(accounts, "utc_now", lambda: tomorrow)
        with site.sessions() as session:
            assert accounts.account_of(session, given[2]) is None
    finally:
        site.close()
    (row,) = json.loads(uflip("site", "accounts", folder, "--json").out)["accounts"]
    assert (row["name"], row["role"], row["token"]) == ("alice", role, "expired")
    assert uflip("site", "accounts", folder).out.splitlines()[1].split()[:3] == [
        "alice", "submitter", "expired",
    ]  # fmt: skip
    both = uflip("site", "token", folder, "alice", "--rotate", "--revoke")
    assert (both.code, "exclude each other" in both.err) == (2, True)
    unknown = uflip("site", "token", folder, "alise", "--rotate")
    assert (unknown.code, "did you mean alice" in unknown.err) == (2, True)


def test_metrics_describe_the_site(tmp_path: Path) -> None:
    result = small_result(tmp_path / "r")
    with site_server(tmp_path / "site", fresh=True) as server:
        words = ("submit", result, server.url, "--token", server.token("alice"))
        assert uflip(*words, "--publish").code == 0
        lines = httpx.get(f"{server.url}/metrics").text.splitlines()
    values = {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }
    assert values["uflip_results_published"] == values["uflip_results_stored"] == 1
    size = sum(each.stat().st_size for each in result.rglob("*") if each.is_file())
    # Caches of the folder are not submitted.
    assert 0.3 * size < values["uflip_result_bytes"] <= size
    assert values["uflip_examiners_busy"] == values["uflip_examiners_waiting"] == 0
    assert values["uflip_unfinished_uploads"] == 0
    assert 0 < values["uflip_database_seconds"] < 60
