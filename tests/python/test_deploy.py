"""Do the files in deploy/ name existing things, do programs accept them, and is a server logged?"""

import json
import re
import shlex
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from command_line import uflip
from site_server import site_server, small_result

from uflip.cli.site import command
from uflip.site import accounts
from uflip.site.site import open_site
from uflip.site.upload_files import MAX_BODY_BYTES

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "uflip-site.service").read_text()
EXPOSED = 30  # of 100, as systemd-analyze counts; an unrestricted service has 96


def instructions(file: str = "Containerfile") -> list[tuple[str, str]]:
    """Return the instructions of a Containerfile, with continued lines joined."""
    text = (DEPLOY / file).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def operands(name: str, file: str = "Containerfile") -> list[str]:
    return [operand for instruction, operand in instructions(file) if instruction == name]


def commands() -> list[list[str]]:
    """Return the commands of the unit and the container, with variables replaced by an address."""
    (in_unit,) = re.findall("^ExecStart=(.*)$", UNIT, re.MULTILINE)
    (in_container,) = operands("CMD")
    shell, option, line = json.loads(in_container)
    assert (shell, option) == ("sh", "-c")
    texts = [in_unit.replace("${STATE_DIRECTORY}", "/srv"), line.removeprefix("exec ")]
    return [shlex.split(re.sub(r"\$\{?\w+\}?", "https://a.example", text)) for text in texts]


@pytest.mark.parametrize("words", commands(), ids=["unit", "container"])
def test_started_command_is_valid(words: list[str]) -> None:
    assert Path(words[0]).name == "uflip"
    assert words[1:3] == ["site", "serve"]
    serve = command.commands["serve"]
    context = serve.make_context("serve", words[3:])
    assert context.params["behind_proxy"] is True
    assert context.params["base_url"] == "https://a.example"


def systemd_analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze: apt-get install systemd")
    command_line = [program, *map(str, arguments)]
    return subprocess.run(command_line, capture_output=True, text=True, check=False, timeout=60)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "uflip-site.service"
    unit.write_text(UNIT.replace("/opt/uflip/bin/uflip", "/bin/true"))
    process = systemd_analyze("verify", "--man=no", unit)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_service_is_sandboxed() -> None:
    process = systemd_analyze(
        "security", "--offline=true", f"--threshold={EXPOSED}", DEPLOY / "uflip-site.service"
    )
    assert process.returncode == 0, process.stdout


@pytest.mark.parametrize("file", ["Containerfile", "tool.Containerfile"])
def test_container_copies_existing_files(file: str) -> None:
    copied = [line.split()[:-1] for line in operands("COPY", file) if not line.startswith("--from")]
    assert all((ROOT / name).exists() for names in copied for name in names)
    assert {"Cargo.lock", "crates", "python"} <= {name for names in copied for name in names}


def test_container_of_a_site_is_unprivileged() -> None:
    assert operands("USER") == ["uflip"]


def test_containers_have_the_same_base_images_and_build() -> None:
    site, tool = (instructions(file) for file in ("Containerfile", "tool.Containerfile"))
    build = next(i for i, line in enumerate(site) if line[1].startswith("--from"))
    assert site[:build] == tool[:build]
    assert operands("ENTRYPOINT", "tool.Containerfile") == ['["uflip"]']


def test_base_images_are_pinned_by_version_and_digest() -> None:
    for image in operands("FROM"):
        assert re.match(r"\S+/\w+:\d+\.\d+\.\d+-[\w-]+@sha256:[0-9a-f]{64}( AS \w+)?$", image)


def test_proxy_accepts_an_upload_part() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    (largest,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(largest) << 20 > MAX_BODY_BYTES


# Monitoring and backups


def metric_names() -> set[str]:
    """Return the names that the server has at /metrics."""
    source = (ROOT / "python" / "uflip" / "site" / "app.py").read_text()
    names = set(re.findall(r'"(uflip_[a-z_]+)"', source))
    return names | {f"{name}{end}" for name in names for end in ("_total", "_bucket")}


@pytest.mark.parametrize("name", ["prometheus-alerts.yml", "grafana-dashboard.json"])
def test_monitoring_uses_existing_metrics(name: str) -> None:
    used = set(re.findall(r"\buflip_[a-z_]+", (DEPLOY / name).read_text()))
    assert used
    assert used <= metric_names()


def test_backup_command_is_valid() -> None:
    unit = (DEPLOY / "uflip-site-backup.service").read_text()
    (line,) = re.findall(r"uflip (site backup .*)'$", unit, re.MULTILINE)
    words = shlex.split(re.sub(r"\$\$\(.*?\)", "now", line).replace("$$STATE_DIRECTORY", "/b"))
    context = command.commands["backup"].make_context("backup", words[2:])
    assert str(context.params["out"]) == "/b/now"


def test_systemd_accepts_backup_units(tmp_path: Path) -> None:
    for name in ("uflip-site-backup.service", "uflip-site-backup.timer"):
        shutil.copy(DEPLOY / name, tmp_path)
    process = systemd_analyze("verify", "--man=no", tmp_path / "uflip-site-backup.timer")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


# What the operator of a site uses: tokens that expire, the list of accounts, metrics.


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


def test_access_log_has_a_line_per_request(tmp_path: Path) -> None:
    with site_server(tmp_path / "site", None, "--access-log") as server:
        httpx.get(f"{server.url}/devices/a%0Ab")
        httpx.get(f"{server.url}/devices", headers={"Host": "elsewhere"})
        assert server.process is not None
        server.process.terminate()
        _, err = server.process.communicate(timeout=30)
    assert server.process.returncode == 0
    asked = [line.split() for line in err.splitlines() if " /devices" in line]
    assert [words[1:5] for words in asked] == [
        ["127.0.0.1", "GET", "/devices/a\\x0ab", "404"],
        ["127.0.0.1", "GET", "/devices", "421"],
    ]
