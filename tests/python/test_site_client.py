"""A client with a wrong address or token: the errors are complete and reveal no secret."""

import gzip
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from command_line import uflip
from forged_results import forge_results
from site_server import SiteServer, site_server, small_result

from uflip.site import client

ID = "0123456789ab"
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
FIRST = [
    {"path": "manifest.json", "digest": ABC, "bytes": 3},
    {"path": "ledger.jsonl", "digest": ABC, "bytes": 3},
]
Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def answering(
    result_answer: Answer, file_answer: Answer = (200, {}, b"abc"), sent: list[int] | None = None
) -> Iterator[str]:
    """Serve the same answer to each request for a result, and another one for its files.

    `sent` collects the lengths of those above a megabyte that a client received.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = file_answer if "/files/" in self.path else result_answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(body)
                if sent is not None and len(body) > 1 << 20:
                    sent.append(len(body))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}"
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def _json(document: object, status: int = 200) -> Answer:
    return status, {}, json.dumps(document).encode()


NO_SITE = {
    "a list": _json([]),
    "a text": _json("hello"),
    "nothing": _json(None),
    "another object": _json({"results": []}),
    "files that are a number": _json({"files": 7}),
    "files of numbers": _json({"files": [1, 2]}),
    "a file without a digest": _json({"files": [{"path": "manifest.json", "bytes": 3}]}),
    "a digest that leads elsewhere": _json({"files": [FIRST[0] | {"digest": "../../x"}]}),
    "less than nothing": _json({"files": [FIRST[0] | {"bytes": -1}]}),
    "a length in words": _json({"files": [FIRST[0] | {"bytes": "3"}]}),
    "no JSON": (200, {}, b"<html>"),
    "no text": (200, {}, b"\xff\xfe{"),
    "brackets": (200, {}, b"[" * 200_000),
    "an error of another kind": _json({"error": "no"}, 500),
    "an error in words": _json({"detail": "Not Found"}, 404),
    "elsewhere": (302, {"Location": "http://elsewhere.example/"}, b""),
    "elsewhere, with files": (301, {}, json.dumps({"files": FIRST}).encode()),
}


@pytest.mark.parametrize("answer", NO_SITE.values(), ids=NO_SITE.keys())
def test_server_that_is_no_site_is_reported(tmp_path: Path, answer: Answer) -> None:
    with answering(answer) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert (outcome.code, "The server is not a uflip results site" in outcome.err) == (6, True), (
        outcome.err
    )
    assert url in outcome.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("endless", ["the result", "a refusal"])
def test_endless_answer_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endless: str
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1 << 20)
    answer = (200 if endless == "the result" else 500, {}, b'{"a":"' + b"x" * (64 << 20))
    sent: list[int] = []
    with answering(answer, sent=sent) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert (outcome.code, "The answer of the site is too long or too slow" in outcome.err) == (
        6,
        True,
    ), outcome.err
    assert sent == [], "it hung up long before all was sent"
    with answering(_json({"files": FIRST}), answer, sent=sent) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert (outcome.code, sent) == (5 if endless == "the result" else 6, []), outcome.err


def test_compressed_answer_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps({"files": FIRST}).encode())
    with answering((200, {"Content-Encoding": "gzip"}, packed)) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert (outcome.code, "The server is not a uflip results site" in outcome.err) == (6, True), (
        outcome.err
    )


def test_password_in_address_is_hidden(tmp_path: Path) -> None:
    password = "SECRET"
    addresses = (
        "mysql://u:SECRET@h/db", "postgresql://u:SECRET@h:port/db", "x://u:SECRET@h@i/db",
        "postgresql+none://u:SECRET@h/db", "u:SECRET@h", "postgresql://u:SEC/RET?#@h:x/db",
    )  # fmt: skip
    for address in addresses:
        outcome = uflip("site", "serve", tmp_path / "site", "--port", "0", "--database", address)
        assert outcome.code == 2, outcome.err
        output = outcome.err + outcome.out
        assert password not in output or "://" not in address, output
        assert "SEC/RET" not in output
    for address in ("http://alice:SECRET@127.0.0.1:1", "ftp://alice:SECRET@h"):
        outcome = uflip("pull", address, ID, "--out", tmp_path / "out")
        assert outcome.code in {2, 6}
        assert "alice:***@" in outcome.err
        assert password not in outcome.err


def test_redirect_target_is_reported(tmp_path: Path) -> None:
    with answering(NO_SITE["elsewhere"]) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert "302" in outcome.err
    assert "http://elsewhere.example/" in outcome.err


NO_RESULT = {
    "no files": [],
    "no ledger": FIRST[:1],
    "a name that leads elsewhere": [*FIRST, FIRST[0] | {"path": "../evil"}],
    "a name that comes twice": [*FIRST, FIRST[0]],
    "another file": [*FIRST, FIRST[0] | {"path": "runs/a.txt"}],
}


@pytest.mark.parametrize("files", NO_RESULT.values(), ids=NO_RESULT.keys())
def test_invalid_file_list_creates_no_folder(
    tmp_path: Path, files: list[dict[str, object]]
) -> None:
    with answering(_json({"files": files})) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert outcome.code == 5, outcome.err
    assert "The site has no files of a result under this id" in outcome.err
    assert f"{url}/results/{ID}" in outcome.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("status", [301, 304, 307])
def test_redirect_is_not_a_file(tmp_path: Path, status: int) -> None:
    elsewhere = (status, {"Location": "/x"}, b"" if status == 304 else b"abc")
    with answering(_json({"files": FIRST}), elsewhere) as url:
        outcome = uflip("pull", url, ID, "--out", tmp_path / "out")
    assert (outcome.code, str(status) in outcome.err) == (6, True), outcome.err
    assert not (tmp_path / "out").exists()


def test_refused_upload_can_be_deleted_at_printed_address(
    server: SiteServer, tmp_path: Path
) -> None:
    result = small_result(tmp_path / "result")
    other = forge_results(
        result, tmp_path / "forged", lambda manifest: manifest["plan"][0].update(pattern="RW")
    )
    outcome = uflip("submit", other, server.url, "--token", server.token("owner"))
    assert outcome.code == 5, outcome.err
    (address,) = re.findall(r"DELETE (\S+) ends the upload", outcome.err)
    owner, stranger = server.client("owner"), server.client()
    assert owner.get(address).status_code == 200
    assert stranger.delete(address).status_code == 403
    assert owner.delete(address).status_code == 204
    assert owner.get(address).status_code == 404


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteServer]:
    with site_server(tmp_path_factory.mktemp("served") / "site") as site:
        yield site


@pytest.fixture(scope="module")
def result_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("client") / "result"
    return small_result(out)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", " ", "\t\n"])
def test_whitespace_around_token_is_ignored(
    server: SiteServer, result_dir: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    token = server.token("alice")
    command = ("submit", result_dir, server.url, "--json")
    assert uflip(*command, "--token", f"{token}{end}").code == 0
    monkeypatch.setenv("UFLIP_SITE_TOKEN", f"{end}{token}{end}")
    assert uflip(*command).code == 0


@pytest.mark.parametrize("odd", ["é", "\n", "\x1b", " ", "\u202e", "\udc80", "😀", "\x7f"])
def test_token_never_appears_in_errors(
    server: SiteServer, result_dir: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    token = f"uflip_never-to-be-seen{odd}x"
    commands = (("submit", result_dir, server.url), ("pull", server.url, ID))
    options = [("--token", token), (f"--token={token}",)]
    for command in commands:
        for where, more in (
            ("--token", options[0]),
            ("--token", options[1]),
            ("UFLIP_SITE_TOKEN", ()),
        ):
            monkeypatch.setenv("UFLIP_SITE_TOKEN", token if not more else "")
            outcome = uflip(*command, *more)
            assert (outcome.code, where in outcome.err) == (2, True), outcome.err
            assert "never-to-be-seen" not in outcome.err + outcome.out


def test_leftovers_of_killed_submission_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    result = tmp_path / "tmp" / "uflip-submit-others"
    for name in ("left", "young", "used"):
        (tmp_path / "tmp" / f"uflip-submit-{name}" / "copy").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    result.symlink_to(tmp_path / "elsewhere")
    for name in ("left", "used", "others"):
        os.utime(tmp_path / "tmp" / f"uflip-submit-{name}", (0, 0), follow_symlinks=False)
    held = client._locked(tmp_path / "tmp" / "uflip-submit-used")
    assert held is not None
    with client.scratch_folder() as mine:
        (mine / "copy").touch()
        (other,) = (each for each in (tmp_path / "tmp").iterdir() if each in mine.parents)
        assert other.stat().st_mode & 0o077 == 0
        os.utime(other, (0, 0))
        client._remove_stale(client.SUBMITTED)
        assert mine.exists(), "its process holds it"
    os.close(held)
    remaining = {each.name.removeprefix("uflip-submit-") for each in (tmp_path / "tmp").iterdir()}
    assert remaining == {"young", "used", "others"}
    assert (tmp_path / "elsewhere").exists()
