"""Labels of devices on a site, and the grouping of results by device."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip
from forged_results import forge_results
from site_server import SiteServer, site_server
from test_markup import OBEYED, TERMINAL

from uflip.profiles import read_profile
from uflip.results import Results
from uflip.site.examiner import model_of

SMALL = "sim:demo?blocks_per_die=64"


def _measure(device: str, out: Path) -> Path:
    outcome = uflip("run", device, "--scale", "quick", "--only", "order", "-q", "--out", out)
    assert outcome.code == 0, outcome.err
    return out


@pytest.fixture(scope="module")
def result_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _measure(SMALL, tmp_path_factory.mktemp("devices") / "result")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    with site_server(tmp_path_factory.mktemp("served") / "site") as site:
        yield site


def _publish(server: SiteServer, folder: Path) -> dict[str, Any]:
    token = server.token("alice")
    outcome = uflip("submit", folder, server.url, "--token", token, "--publish", "--json")
    assert outcome.code == 0, outcome.err
    address = f"/api/v1/results/{json.loads(outcome.out)['id']}"
    result: dict[str, Any] = server.client().get(address).json()
    return result


def _forge(folder: Path, out: Path, **device: object) -> Path:
    """Return the same results with another description of the device."""
    return forge_results(folder, out, lambda content: content["device"].update(device))


def test_differently_configured_devices_are_separate(
    server: SiteServer, result_dir: Path, tmp_path: Path
) -> None:
    plain = _publish(server, result_dir)
    slow = _publish(server, _measure(f"{SMALL}&program_ns=3000000", tmp_path / "slow"))
    same = _publish(server, _measure("sim:demo?program_ns=3ms&blocks_per_die=64&seed=1",
                                        tmp_path / "same"))  # fmt: skip
    assert plain["device"] == "demo?blocks_per_die=64"
    assert slow["device"] == "demo?blocks_per_die=64&program_ns=3000000"
    assert slow["device_slug"] == same["device_slug"] != plain["device_slug"]
    # The page of a result shows the difference, and no spread combines them.
    assert "program_ns=3000000" in server.client().get(f"/results/{slow['id']}").text
    page = server.client().get(f"/devices/{plain['device_slug']}").text
    assert plain["id"] in page
    assert slow["id"] not in page
    assert {each["results"] for each in server.client().get("/api/v1/devices").json()} == {1, 2}


def test_device_is_identified_by_profile_not_name(result_dir: Path, tmp_path: Path) -> None:
    plain = Results.load(_measure("sim:demo", tmp_path / "plain")).manifest.device
    assert model_of(plain) == "demo"
    # The profile of another device under the plain name, or under a name without a profile.
    for url in ("sim:demo", "sim:", "sim:dftl", "sim:demo?program_ns=1", "sim:demo?nothing=1"):
        folder = _forge(result_dir, tmp_path / url.replace("?", "-"), url=url)
        model = model_of(Results.load(folder).manifest.device)
        assert model.startswith("demo, profile "), (url, model)
    path = tmp_path / "own.toml"
    path.write_text(read_profile("demo")[1])
    mine = Results.load(_measure(f"sim:{path}?blocks_per_die=64", tmp_path / "own")).manifest.device
    assert model_of(mine).startswith("own, profile ")


def test_terminal_codes_in_names_are_escaped(
    server: SiteServer, result_dir: Path, tmp_path: Path
) -> None:
    named = {"model": f"drive {TERMINAL} gpj", "firmware": f"1{TERMINAL}2"}
    result = _publish(server, _forge(result_dir, tmp_path / "forged", **named))
    assert result["firmware"] == named["firmware"], "the API returns the original text"
    addresses = ("/", "/devices", f"/devices/{result['device_slug']}", f"/results/{result['id']}")
    for address in addresses:
        response = server.client().get(address)
        assert response.status_code == 200
        assert OBEYED.search(response.text) is None, address
        assert "drive \\x1b[2J" in response.text
        assert "\\u202e" in response.text
    missing = server.client().get("/results/%1b%5b2J%e2%80%ae")
    assert missing.status_code == 404
    assert OBEYED.search(missing.text) is None
