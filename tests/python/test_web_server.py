"""Does the explorer answer only authorized requests, about the named folders only?"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sys
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import stored
from command_line import start, uflip

from uflip.errors import UsageError
from uflip.web.connections import bind_listener
from uflip.web.server import Serving, serving

SMALL = "sim:demo?blocks_per_die=64"
PROBE = "<img src=x onerror=alert(1)>"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        return " ".join(map(str, self.document["error"].values()))


def ask(server: Serving, path: str, method: str = "GET", **headers: str) -> Answer:
    """Ask without a browser, so that nothing is put right on the way."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    answer = Answer(
        response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    )
    connection.close()
    return answer


def api(server: Serving, name: str, **query: object) -> Answer:
    base = urllib.parse.urlsplit(server.url).path
    return ask(server, f"{base}api/{name}?{urllib.parse.urlencode(query)}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served") / "results"
    for name in ("one", "deep/er/two"):
        stored.results(root / name, url=SMALL)
    stored.results(root.parent / "secret", url=SMALL)
    (root / "notes").mkdir()
    (root / "notes" / "notes.txt").write_text("nothing to see\n")
    return root


def keys_of(server: Serving) -> dict[str, str]:
    listed = api(server, "results").document["results"]
    return {row["name"]: row["key"] for row in listed}


# Listing and content


def test_folders_are_found_at_any_depth(server: Serving) -> None:
    assert sorted(keys_of(server)) == ["results/deep/er/two", "results/one"]
    row = api(server, "results").document["results"][0]
    expected = {"scale": "quick", "status": "complete", "durability": "cached", "planned": 4}
    assert {name: row[name] for name in expected} == expected


def test_result_matches_its_summary(server: Serving, folder: Path) -> None:
    key = keys_of(server)["results/one"]
    document = api(server, "result", key=key).document
    printed = json.loads(uflip("show", folder / "one", "--json").out)
    means = [printed["baselines_ms"][pattern] for pattern in ("SR", "RR", "SW", "RW")]
    assert document["numbers"][:4] == means
    assert [float(cell) for cell in document["cells"][:4]] == [float(f"{ms:.3g}") for ms in means]
    for ours, theirs in zip(document["baselines"], printed["baselines"], strict=True):
        assert ours["statistics"] == theirs["statistics"]
        assert ours["half_width_ns"] == theirs["together"]["half_width_ns"]
    row = api(server, "rows", keys=key).document["rows"][0]
    assert row["cells"] == document["cells"]
    assert row["known"] == sum(each["together"]["converged"] for each in printed["baselines"])


def test_points_are_at_values_of_their_axis(tmp_path: Path) -> None:
    """Including a pattern with IOShift 0 only: a run may end before the others."""
    runs = [
        stored.planned_run(
            number, "alignment", pattern, parameter="io_shift", value=shift, unit="bytes",
            spec=stored.baseline(pattern, io_size=4096, io_count=10, target_size=1 << 20),
        )
        for number, (pattern, shift) in enumerate((("SR", 0), ("SR", 512), ("RW", 0)), 5)
    ]  # fmt: skip
    stored.results(tmp_path / "r", [*stored.FOUR, *runs], SMALL)
    with serving([tmp_path]) as running:
        result = api(running, "result", key=next(iter(keys_of(running).values()))).document
    (drawn,) = result["benchmarks"]
    assert drawn["values"] == [{"at": 8, "label": "0 B"}, {"at": 9, "label": "512 B"}]
    at = {each["pattern"]: [one["at"] for one in each["points"]] for each in drawn["patterns"]}
    assert at == {"SR": [8, 9], "RW": [8]}


def test_comparison_matches_command_line(server: Serving, folder: Path) -> None:
    keys = keys_of(server)
    pair = ",".join(keys[name] for name in ("results/one", "results/deep/er/two"))
    comparison = api(server, "compare", keys=pair).document["comparisons"][0]
    printed = json.loads(uflip("compare", folder / "one", folder / "deep/er/two", "--json").out)
    expected = printed["comparisons"][0]
    assert comparison["verdicts"] == expected["verdicts"]
    assert [row["ratio"] for row in comparison["rows"]] == [
        row["ratio"] for row in expected["rows"]
    ]
    for wrong in (keys["results/one"], ",".join([pair, *"abcdefg"])):
        assert api(server, "compare", keys=wrong).status == 400


# Access control


def test_request_without_token_is_refused(server: Serving) -> None:
    for path in (
        "/",
        "/api/results",
        "/wrong/api/results",
        "/wrong/",
        "//",
        "/\xff/".encode("latin-1").decode("latin-1"),
    ):
        with contextlib.suppress(UnicodeEncodeError):
            answer = ask(server, path)
            assert answer.status in (400, 403), path
            assert b"results/one" not in answer.content


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example"]
)
def test_other_host_name_is_refused(server: Serving, host: str) -> None:
    path = urllib.parse.urlsplit(server.url).path
    assert ask(server, f"{path}api/results", Host=host).status in (400, 421)
    assert ask(server, f"{path}api/results", Host=f"localhost:{server.port}").status == 200


def test_other_origin_is_refused(server: Serving) -> None:
    path = f"{urllib.parse.urlsplit(server.url).path}api/results"
    for origin in (
        "http://evil.example",
        "null",
        f"https://127.0.0.1:{server.port}",
        "http://127.0.0.1:1",
    ):
        assert ask(server, path, Origin=origin).status == 403
    assert ask(server, path, Origin=f"http://127.0.0.1:{server.port}").status == 200


def test_non_path_target_is_refused(server: Serving) -> None:
    for target in ("*", "nothing", "//", "/%ff%fe/"):
        assert ask(server, target).status in (403, 404), target


def test_invalid_text_is_answered_in_ascii(server: Serving) -> None:
    base = urllib.parse.urlsplit(server.url).path
    body = b'{"device": "\\ud800"}'
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    origin = f"http://127.0.0.1:{server.port}"
    headers = {"Origin": origin, "Content-Type": "application/json"}
    connection.request("POST", f"{base}api/play/begin", body, headers)
    response = connection.getresponse()
    assert response.status == 400, response.status
    assert "error" in json.loads(response.read())
    connection.close()


def test_other_methods_are_refused(server: Serving) -> None:
    path = urllib.parse.urlsplit(server.url).path
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert ask(server, f"{path}api/results", method).status == 405


def test_every_answer_has_the_security_policy(server: Serving) -> None:
    path = urllib.parse.urlsplit(server.url).path
    for name in ("", "app.js", "app.css", "api/results", "nothing", "api/result?key=x"):
        headers = ask(server, path + name).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


# Readable paths

ELSEWHERE = [
    "../secret", "..%2fsecret", "%2e%2e/secret", "/etc/passwd", "one", "results/one",
    "deep/er/two", "....//secret", "..\\secret", "\0", "one%00", "file:///etc/passwd", "0" * 16,
]  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_paths_outside_are_not_read(server: Serving, name: str) -> None:
    key = keys_of(server)["results/one"]
    for answer in (
        api(server, "result", key=name),
        api(server, "run", key=key, run=name),
        api(server, "run", key=name, run="0001-baseline-SR-io_size-32768"),
        api(server, "window", key=name, run=name, **{"from": 0, "to": 9, "columns": 9}),
    ):
        assert answer.status in (400, 404)
        assert b"root:" not in answer.content
    path = urllib.parse.urlsplit(server.url).path
    for quoted in (name.replace("\0", "%00"), f"static/{name}".replace("\0", "%00")):
        assert ask(server, path + urllib.parse.quote(quoted, "%/")).status in (400, 403, 404)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "r"
    shutil.copytree(folder / "one", root / "whole")
    (root / "linked").symlink_to(folder.parent / "secret")
    shutil.copytree(folder / "one", root / "run")
    run = next((root / "run" / "runs").iterdir())
    run.unlink()
    run.symlink_to(folder.parent / "secret" / "runs" / run.name)
    with serving([root]) as server:
        keys = keys_of(server)
        assert sorted(keys) == ["r/run", "r/whole"]
        response = api(server, "result", key=keys["r/run"])
        assert response.status == 404
        assert "link" in response.error


def test_damage_is_reported_and_costs_one_row(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "r"
    for name in ("whole", "cut", "newer", "none", "text"):
        shutil.copytree(folder / "one", root / name)
    manifest = (root / "cut" / "manifest.json").read_bytes()
    (root / "cut" / "manifest.json").write_bytes(manifest[: len(manifest) // 2])
    content = json.loads(manifest)
    (root / "newer" / "manifest.json").write_text(json.dumps(content | {"format_version": 999}))
    (root / "none" / "manifest.json").write_text("[]")
    (root / "text" / "manifest.json").write_bytes(b"\xff\xfe")
    run = next((root / "whole" / "runs").iterdir())
    run.write_bytes(run.read_bytes()[:100])
    with serving([root]) as server:
        rows = {row["name"]: row for row in api(server, "results").document["results"]}
        assert {name for name, row in rows.items() if "error" in row} == {
            "r/cut", "r/newer", "r/none", "r/text",
        }  # fmt: skip
        assert "another version" in rows["r/newer"]["error"]["what"]
        for name in ("r/cut", "r/newer", "r/none", "r/text"):
            assert api(server, "result", key=rows[name]["key"]).status == 404
        document = api(server, "result", key=rows["r/whole"]["key"]).document
        assert document["finished"] == 3
        assert any(
            "damaged" in each["code"] or "lost" in each["code"] for each in document["warnings"]
        )


def test_folder_may_vanish_or_change_while_open(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "r"
    shutil.copytree(folder / "one", root / "here")
    with serving([root]) as server:
        key = keys_of(server)["r/here"]
        assert api(server, "result", key=key).status == 200
        run = api(server, "result", key=key).document["runs"][0]["id"]
        shutil.rmtree(root / "here")
        for answer in (
            api(server, "result", key=key),
            api(server, "window", key=key, run=run, **{"from": 0, "to": 9, "columns": 9}),
            api(server, "slowest", key=key, run=run, **{"from": 0, "to": 9}),
        ):
            assert answer.status == 404
            assert "no such result folder" in answer.error
        stored.results(root / "here", stored.FOUR[:2], SMALL)
        assert api(server, "result", key=key).document["finished"] == 2


def test_invalid_numbers_are_refused(server: Serving) -> None:
    key = keys_of(server)["results/one"]
    run = api(server, "result", key=key).document["runs"][0]["id"]
    for wrong in ("", "x", "nan", "inf", "1e400", "-1e300"):
        query = {"key": key, "run": run, "from": wrong, "to": 9, "columns": 9}
        assert api(server, "window", **query).status == 400
        assert api(server, "io", key=key, run=run, number=wrong).status == 400
    for number in (-1, 100):
        assert "0 to 99" in api(server, "io", key=key, run=run, number=number).error
    huge = {"key": key, "run": run, "from": -(2.0**61), "to": 2.0**61, "columns": 2.0**40}
    assert api(server, "window", **huge).status == 200
    assert api(server, "slowest", **huge).status == 200


def test_names_stay_text_in_json(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / PROBE.replace("/", "_")
    shutil.copytree(folder / "one", root / f"'\"{PROBE}")
    with serving([root]) as server:
        response = api(server, "results")
        assert response.headers["content-type"] == "application/json"
        assert response.document["results"][0]["name"].endswith(PROBE)


def test_non_utf8_name_costs_one_row(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "r"
    shutil.copytree(folder / "one", root / "good")
    shutil.copytree(folder / "one", root / os.fsdecode(b"bad\xff"))
    with serving([root]) as server:
        listed = api(server, "results").document["results"]
        keys = ",".join(each["key"] for each in listed)
        for listing in (listed, api(server, "rows", keys=keys).document["rows"]):
            bad, good = sorted(listing, key=lambda each: "error" not in each)
            assert "not UTF-8" in bad["error"]["got"]
            assert "error" not in good
        response = api(server, "result", key=bad["key"])
        assert (response.status, "not valid text" in response.error) == (404, True)
        assert api(server, "result", key=good["key"]).status == 200


# Beginning and end


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_set_tcp_nodelay(host: str) -> None:
    with bind_listener(host, 0, "--port 0") as listener:
        listener.listen()
        asking = socket.create_connection(listener.getsockname()[:2])
        answering, _ = listener.accept()
        with asking, answering:
            assert answering.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_port_in_use_and_missing_folder_are_reported(folder: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        outcome = uflip("explore", folder, "--port", port, "--no-browser")
        assert outcome.code == 2
        assert "another program listens there" in outcome.err
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "nothing"):
        outcome = uflip("explore", path, "--no-browser")
        assert (outcome.code, "no folder to explore" in outcome.err) == (2, True)
    assert uflip("explore").code == 2
    with pytest.raises(UsageError), serving([tmp_path / "nothing"]):
        pass


def test_missing_libraries_are_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("uvicorn", "starlette.applications"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            outcome = uflip("explore", folder, "--no-browser")
        assert outcome.code == 6
        assert "pip install 'starlette>=" in outcome.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_explorer(folder: Path, number: signal.Signals) -> None:
    process = start("explore", folder, "--no-browser")
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    port = int(url.split(":")[2].split("/")[0])
    answer = ask(Serving(url, port, None), urllib.parse.urlsplit(url).path)  # type: ignore[arg-type]
    assert answer.status == 200
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, ""), out


def test_token_is_not_in_browser_arguments(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf %s "$*" > {tmp_path}/argument\n'
        f'page="${{1#file://}}"; cat "$page" > {tmp_path}/page\n'
        f'stat -c %a "$page" "${{page%/*}}" > {tmp_path}/modes; touch {tmp_path}/done\n'
    )
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setenv("DISPLAY", ":0")
    process = start("explore", folder)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        deadline = time.monotonic() + 60
        while not (tmp_path / "done").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        argument = (tmp_path / "argument").read_text()
        token = url.rstrip("/").rpartition("/")[2]
        assert argument.startswith("file:///")
        assert token not in argument
        assert f"url={url}" in (tmp_path / "page").read_text()
        assert (tmp_path / "modes").read_text().split() == ["600", "700"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert not Path(argument.removeprefix("file://")).parent.exists(), "it is gone afterwards"


def test_open_channel_jobs_are_drawn_if_they_have_ios(tmp_path: Path) -> None:
    outcome = uflip(
        "oc", "run", "sim:dfc", "--scale", "quick", "--only", "oc0,oc1", "--out", tmp_path / "oc"
    )
    assert outcome.code == 0, outcome.err
    with serving([tmp_path]) as server:
        (key,) = keys_of(server).values()
        document = api(server, "result", key=key).document
        assert document["cells"] is None
        channel = api(server, "channel", key=key).document
        printed = json.loads(uflip("show", tmp_path / "oc", "--json").out)["open_channel"]
        assert channel["luns"] == {
            name: printed["oc0"][name] for name in ("write_mb_per_s", "read_mb_per_s")
        }
        assert [mix["mix"] for mix in channel["bands"]] == [*printed["oc0"]["mixes"]]
        for mix in channel["bands"]:
            expected = printed["oc0"]["mixes"][mix["mix"]]
            slowest = max(
                each["max_ms"] for each in (expected["reads"], expected["writes"]) if each
            )
            assert max(mix["ms"]) <= slowest * 1.000001
        assert (channel["wear"]["block"], channel["wear"]["cycles"]) == (
            printed["oc1"]["sacrificed"], printed["oc1"]["cycles"],
        )  # fmt: skip
        assert channel["wear"]["first_failure"] == printed["oc1"]["first_failing_read_cycles"]
        assert [rule["name"] for rule in channel["rules"]] == [
            r["name"] for r in printed["contract"]
        ]
        for each in document["benchmarks"]:
            points = [point for pattern in each["patterns"] for point in pattern["points"]]
            assert {point["parameter"] for point in points} <= {each["parameter"]}
            effect = f"(at {each['parameter']} = |No decided mean varies by more than 5%)"
            assert not each["finding"] or re.search(effect, each["finding"])
        varied = [(each["name"], each["parameter"]) for each in document["benchmarks"]]
        assert sorted(varied) == [
            ("oc0", "first_page"), ("oc0", "lun"), ("oc0", "reads_percent"), ("oc1", "cycles"),
        ]  # fmt: skip
        jobs = {run["micro_benchmark"]: run["id"] for run in document["runs"]}
        drawn = {
            name: api(server, "window", key=key, run=run, **{"from": 0, "to": 9, "columns": 9})
            for name, run in jobs.items()
        }
        assert {name: answer.status for name, answer in drawn.items()} == {"oc0": 200, "oc1": 400}
        assert "no picture of this job" in drawn["oc1"].error
