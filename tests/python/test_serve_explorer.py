"""Does the explorer show a served device, and can its clients' I/Os be replayed elsewhere?"""

import http.client
import json
import random
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from browser_page import MonitoredPage, check_in_all_themes
from command_line import uflip
from nbd import FLUSH, Client, serving, stop_and_report

import uflip.web.server as explorer
from uflip.errors import DeviceError
from uflip.results import Results
from uflip.web.served_devices import request_status

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SMALL = "sim:demo?blocks_per_die=64"
KIB = 1 << 10


@pytest.fixture
def working(workdir: Path) -> Iterator[Client]:
    """A client that has overwritten a full device, so that it collects garbage."""
    with serving(SMALL, "null", "--speed", "0", "--stats", "stats"), Client("s") as client:
        size, _ = client.go()
        rng = random.Random(5)
        for _ in range(400):
            at = rng.randrange(size // (64 * KIB)) * 64 * KIB
            assert client.write(at, bytes(64 * KIB)) == 0
        assert client.do(FLUSH) == 0
        yield client


def api(server: explorer.Serving, name: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", f"{urllib.parse.urlsplit(server.url).path}api/{name}")
    document = json.loads(connection.getresponse().read())
    connection.close()
    return document


def test_explorer_reports_server_statistics(working: Client) -> None:
    with explorer.serving([], sockets=[Path("stats"), Path("nobody")]) as server:
        one, nobody = api(server, "served")["servers"]
        assert "nobody" in nobody["error"]["where"]
        export, null = one["exports"]
        counters = export["counters"]
        assert export["writes"] == 400
        assert counters["blocks_collected"] > 0
        # By hand: pages of 4 KiB programmed since serving began, over the bytes written.
        written = 400 * 64 * KIB
        assert export["flash"]["programmed_bytes"] == counters["pages_programmed"] * 4 * KIB
        assert export["write_amplification"] == counters["pages_programmed"] * 4 * KIB / written
        assert 1 < export["write_amplification"] < 20
        assert 0 <= export["flash"]["free_blocks"] < 100 < export["flash"]["blocks"] == 8 * 64
        assert "flash" not in null
        assert null["write_amplification"] is None
        assert (null["lag"]["count"], null["lag"]["p99_ns"], null["recent"]["max_ns"]) == (
            0,
            None,
            None,
        )
        assert export["recent"]["span_ns"] == 10**9
    with pytest.raises(DeviceError, match="does not report"):
        request_status(Path("s").with_name("nobody"))


def test_socket_without_statistics_is_an_error(working: Client) -> None:
    with pytest.raises(DeviceError, match="does not report"):
        request_status(Path("s"))  # it greets, and speaks of nothing else


def test_page_shows_served_device(browser: "Browser", working: Client) -> None:
    with explorer.serving([], sockets=[Path("stats")]) as server:
        watched = MonitoredPage(browser)
        page = watched.page
        page.goto(f"{server.url}#/served")
        rows = page.locator("table tbody tr")
        page.wait_for_function("() => document.querySelectorAll('table').length === 3")
        export = api(server, "served")["servers"][0]["exports"][0]
        flash = rows.nth(2).inner_text().split("\t")
        assert flash[0] == export["name"]
        assert float(flash[1]) == float(f"{export['write_amplification']:.3g}")
        assert flash[2].startswith(f"{export['flash']['free_blocks']} of 512")
        assert flash[3] == f"{export['counters']['blocks_collected']:,}"
        assert rows.nth(4).inner_text().split("\t")[:4] == [export["name"], "0", "400", "1"]
        # The page polls, and shows later writes.
        assert working.write(0, bytes(4 * KIB)) == 0
        page.wait_for_function(
            "() => document.querySelectorAll('table')[2].querySelector('tbody tr')"
            ".children[2].textContent === '401'"
        )
        # The charts show the last seconds, with the values of the statistics.
        charts = page.get_by_role("region", name="The last minutes").first
        assert charts.locator("h3").count() == 4
        with page.expect_download() as waiting:
            charts.get_by_role("button", name="CSV").click()
        lines = waiting.value.path().read_text(encoding="utf-8").splitlines()
        assert lines[0] == "seconds,iops,p99_ns,write_amplification,free_blocks"
        seconds, *_, free = zip(*(line.split(",") for line in lines[1:]), strict=True)
        assert len(lines) > 2
        assert seconds[-1] == "0"
        assert free[-1] == str(
            api(server, "served")["servers"][0]["exports"][0]["flash"]["free_blocks"]
        )
        check_in_all_themes(page, "served")
        watched.context.close()
        assert watched.console_messages == []


def test_nothing_is_served_without_socket(browser: "Browser", workdir: Path) -> None:
    with explorer.serving([workdir]) as server:
        assert api(server, "served") == {"servers": []}
        watched = MonitoredPage(browser)
        watched.page.goto(f"{server.url}#/served")
        watched.page.wait_for_selector("h1")
        assert watched.page.locator("nav >> text=Served").count() == 0
        watched.context.close()


def test_recording_is_replayed_and_explored(workdir: Path) -> None:
    rng = random.Random(9)
    done = []
    with serving(SMALL, "--speed", "0", "--record", "did.csv") as process:
        with Client("s") as client:
            client.go()
            for _ in range(200):
                at, size = rng.randrange(500) * 4 * KIB, rng.choice((4, 8, 32)) * KIB
                write = rng.random() < 0.5
                done.append((at, size, write))
                if write:
                    assert client.write(at, bytes(size)) == 0
                else:
                    assert isinstance(client.read(at, size), bytes)
        stop_and_report(process)
    outcome = uflip("replay", "did.csv", "sim:mtron", "--out", "again", "-q")
    assert outcome.code == 0, outcome.err
    (run,) = Results.load(workdir / "again").runs
    trace = run.trace()
    offsets, sizes, modes = (
        np.asarray(trace.column(name)).tolist()
        for name in ("offset_bytes", "io_size_bytes", "mode")
    )
    assert list(zip(offsets, sizes, strict=True)) == [(at, size) for at, size, _ in done]
    assert len(set(zip(modes, (write for *_, write in done), strict=True))) == 2
    with explorer.serving([workdir / "again"]) as server:
        (row,) = api(server, "results")["results"]
        document = api(server, f"run?key={row['key']}&run={run.id}")
        assert document["io_count"] == 200
        slowest = api(server, f"io?key={row['key']}&run={run.id}&number=7")
        assert (slowest["offset_bytes"], slowest["io_size_bytes"]) == done[7][:2]
