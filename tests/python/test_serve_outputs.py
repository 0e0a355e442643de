"""Are the records of a served device complete, whatever goes wrong and however it ends?

Clients are qemu-io and nbdcopy; if one is not installed its cases are skipped.
"""

import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import PACKAGE_ROOT, start, uflip
from nbd import PATIENCE_S, Client, serving, stop_and_report

from uflip.results import Results
from uflip.web.served_devices import server_statistics

SMALL = "sim:demo?blocks_per_die=64"
KIB, MIB = 1 << 10, 1 << 20
KEEP = ("--record", "did.csv", "--save", "after.snapshot")
HEAD = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"


def qemu_io(*commands: str) -> str:
    """Make the command line of a client that does something to the first device."""
    if shutil.which("qemu-io") is None:
        pytest.skip("qemu-io is not installed")
    options = " ".join(f"-c '{command}'" for command in commands)
    return f'qemu-io -f raw {options} "$UFLIP_URI" > /dev/null'


def serve(program: str, *options: object) -> tuple[int, str, str]:
    """Serve a device at full speed while a command runs; return code, output and errors."""
    process = start("serve", SMALL, "--socket", "s", "--speed", 0, "--run", program, *options)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def recorded() -> list[list[str]]:
    """Return the recorded I/Os: kind, offset and size of each."""
    head, *lines = Path("did.csv").read_text().splitlines()
    assert head == HEAD
    return [line.split(",")[-4:-1] for line in lines]


def is_device_snapshot(snapshot: str) -> bool:
    return bool(json.loads(uflip("info", f"sim:{snapshot}", "--json").out)["details"]["snapshot"])


def eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# A command that fails


@pytest.mark.parametrize("form", ["text", "json"])
def test_failing_command_keeps_outputs_and_reports_error(workdir: Path, form: str) -> None:
    json_or_not = ("--json",) if form == "json" else ()
    program = f"{qemu_io('write 0 64k', 'read 4k 8k')}; exit 3"
    code, out, err = serve(program, *KEEP, *json_or_not)
    assert code == 4, err
    assert recorded() == [["Write", "0", str(64 * KIB)], ["Read", str(4 * KIB), str(8 * KIB)]]
    assert is_device_snapshot("after.snapshot")
    if form == "json":
        document = json.loads(out)
        (export,) = document["exports"]
        assert (export["reads"], export["writes"]) == (1, 1)
        assert document["error"]["got"] == "exit code 3"
        assert (document["error"]["kind"], document["error"]["exit_code"]) == ("device", 4)
    else:
        assert "exit code 3" in err
        assert "lag max" in err, "the table"


def test_failed_output_does_not_affect_others(workdir: Path) -> None:
    program = f"{qemu_io('write 0 64k')}; echo thesis > after.snapshot; exit 3"
    code, out, err = serve(program, *KEEP, "--json")
    assert code == 4, "that of what failed first"
    assert json.loads(out)["error"]["got"] == "exit code 3"
    assert "The file exists" in err
    assert Path("after.snapshot").read_text() == "thesis\n"
    assert recorded() == [["Write", "0", str(64 * KIB)]]
    Path("did.csv").unlink()
    Path("after.snapshot").unlink()
    code, out, _ = serve("echo thesis > did.csv", *KEEP, "--json")
    assert code == 3
    assert json.loads(out)["error"]["kind"] == "refused"
    assert Path("did.csv").read_text() == "thesis\n"
    assert is_device_snapshot("after.snapshot")


def test_recording_on_full_disk_keeps_whole_lines(
    workdir: Path,
) -> None:
    full, requests = 20_000, 1500
    with serving(SMALL, "--speed", "0", *KEEP) as process:
        # A limit on the size of files fails as a full disk does.
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (full, before[1]))
        with Client("s") as client:
            client.go()
            for _ in range(requests):
                assert client.write(0, bytes(512)) == 0
            (temporary,) = workdir.glob(".did.csv*")
            assert eventually(lambda: temporary.stat().st_size > full * 0.9)
            time.sleep(0.3)  # it has failed, and been cut
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 5, err
    lines = recorded()
    assert full * 0.9 < Path("did.csv").stat().st_size <= full
    assert set(map(tuple, lines)) == {("Write", "0", "512")}
    document = json.loads(out)
    assert document["exports"][0]["writes"] == requests > len(lines)
    error = document["error"]
    assert (error["kind"], error["where"]) == ("results", "--record did.csv")
    assert f"the first {len(lines)} reads and writes" in error["got"]
    assert is_device_snapshot("after.snapshot")
    assert uflip("replay", "did.csv", SMALL, "--out", "again", "-q").code == 0


# Zeroes


def test_zeroes_count_as_writes(workdir: Path) -> None:
    zeroes = qemu_io("write -z 0 32M", "write 64M 1M", "write -z 40M 4M", "discard 0 1M")
    with serving(SMALL, "--speed", "0", "--stats", "stats", "--record", "did.csv") as process:
        environment = os.environ | {"UFLIP_URI": "nbd+unix:///?socket=s"}
        subprocess.run(zeroes, shell=True, check=True, env=environment, timeout=120)
        (server,) = server_statistics([Path("stats")])["servers"]
        assert "exports" in server
        (live,) = server["exports"]
        (export,) = stop_and_report(process)["exports"]
    assert (export["writes"], export["write_zeroes"], export["trims"]) == (1, 2, 1)
    assert (export["bytes_written"], export["bytes_zeroed"]) == (MIB, 36 * MIB)
    # The write amplification by hand, from the programmed bytes.
    assert live["write_amplification"] == live["flash"]["programmed_bytes"] / (37 * MIB)
    assert 1 <= live["write_amplification"] < 6, "without the zeroed bytes it would be a hundred"
    # The form of this log has no trims.
    assert recorded() == [
        ["Write", "0", str(32 * MIB)],
        ["Write", str(64 * MIB), str(MIB)],
        ["Write", str(40 * MIB), str(4 * MIB)],
    ]
    assert uflip("replay", "did.csv", SMALL, "--out", "again", "-q").code == 0
    (run,) = Results.load(workdir / "again").runs
    assert run.trace().bytes_written == 37 * MIB


def test_idle_export_reports_no_times(workdir: Path) -> None:
    code, out, err = serve("true", "--json")
    assert code == 0, err
    (export,) = json.loads(out)["exports"]
    for name in ("response_time", "simulated", "lag", "recent"):
        values = {key: each for key, each in export[name].items() if each is not None}
        assert values.pop("count") == 0
        assert values.keys() <= {"span_ns"}, values
    code, out, err = serve("true")
    (line,) = [each for each in (out + err).splitlines() if each.startswith("demo?")]
    assert line.split()[-5:] == ["–"] * 5


def test_operations_not_recorded_are_counted(workdir: Path) -> None:
    program = qemu_io("write 0 64k", "flush", "discard 0 1M", "discard 1M 1M")
    code, out, err = serve(program, "--record", "did.csv")
    assert code == 0, err
    assert recorded() == [["Write", "0", str(64 * KIB)]]
    (line,) = [each for each in (out + err).splitlines() if "not in did.csv" in each]
    flushes, trims = line.rpartition(": ")[2].split(", ")
    assert trims == "2 trims"
    assert int(flushes.split()[0]) >= 1, "the client flushes at its end as well"


def test_sparse_copy_is_recorded_completely(workdir: Path) -> None:
    if shutil.which("nbdcopy") is None:
        pytest.skip("nbdcopy is not installed")
    size = int(json.loads(uflip("info", SMALL, "--json").out)["capacity_bytes"])
    with Path("image").open("wb") as image:
        image.write(os.urandom(MIB))
        image.truncate(size)
    code, out, err = serve("nbdcopy --destination-is-zero image \"$UFLIP_URI\" && "
                           "nbdcopy --allocated image \"$UFLIP_URI\"",
                           "--record", "did.csv", "--json")  # fmt: skip
    assert code == 0, err
    (export,) = json.loads(out)["exports"]
    assert export["bytes_zeroed"] >= size - 2 * MIB
    assert sum(int(each[2]) for each in recorded()) == (
        export["bytes_written"] + export["bytes_zeroed"] + export["bytes_read"]
    )


# Signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_ends_command_group_and_keeps_outputs(
    workdir: Path, number: signal.Signals, code: int
) -> None:
    began = "echo $$ > group; echo > began"
    program = f"{qemu_io('write 0 64k')}; sleep 1000 & sleep 1000 & {began}; sleep 1000"
    process = start("serve", SMALL, "--socket", "s", "--run", program, *KEEP, "--json")
    assert eventually(Path("began").exists)
    group = int(Path("group").read_text())
    assert group == os.getpgid(group) != os.getpgid(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, err
    assert eventually(lambda: not group_exists(group)), "nothing of it is left"
    assert recorded() == [["Write", "0", str(64 * KIB)]]
    assert is_device_snapshot("after.snapshot")
    error = json.loads(out)["error"]
    assert (error["exit_code"], error["where"]) == (code, "uflip serve")
    assert json.loads(out)["exports"][0]["writes"] == 1


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_command_is_served_while_it_ends(workdir: Path) -> None:
    last = qemu_io("write 1M 4k")
    program = f"trap '{last.replace(chr(39), chr(34))}; exit 0' INT; echo > began; sleep 1000"
    process = start("serve", SMALL, "--socket", "s", "--run", program, *KEEP, "-q")
    assert eventually(Path("began").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert recorded() == [["Write", str(MIB), str(4 * KIB)]]


# A terminal


def run_in_terminal(program: str, *typed: tuple[bytes, bytes]) -> tuple[int, str]:
    """Serve while a command runs in a terminal; type keys after it has printed a given line."""
    words = [sys.executable, "-m", "uflip", "serve", "null", "--socket", "s", "--run", program]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, words, os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)})
    output, pending = b"", [*typed]
    while select.select([terminal], [], [], PATIENCE_S)[0]:
        try:
            output += os.read(terminal, 4096)
        except OSError:  # all its processes have ended
            break
        if pending and pending[0][0] in output.splitlines():
            os.write(terminal, pending.pop(0)[1])
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output.decode()


@pytest.mark.parametrize(
    ("before", "keys", "code", "expected"),
    [
        ("true", b"\x04", 0, "over"),
        ("true", b"\x03", 130, "Interrupted"),
        ("trap 'echo mine; exit 0' INT", b"\x03", 0, "mine"),
        ("true", b"\x1aagain\n\x04", 0, "read again"),
    ],
    ids=["reads", "Ctrl-C", "its own Ctrl-C", "Ctrl-Z"],
)
def test_command_reads_from_terminal(
    workdir: Path, before: str, keys: bytes, code: int, expected: str
) -> None:
    reads = f"{before}; echo ready; sed -u 's/^/read /'; echo over"
    exit_code, text = run_in_terminal(reads, (b"ready", b"on\n"), (b"read on", keys))
    assert (exit_code, expected in text) == (code, True), text
    assert "lag max" in text


def test_ctrl_c_ends_command_and_server(workdir: Path) -> None:
    code, text = run_in_terminal("echo ready; sleep 1000", (b"ready", b"\x03"))
    assert (code, "Interrupted" in text) == (130, True), text
    assert "lag max" in text


# A file that must be there


def test_read_only_data_file_must_exist(workdir: Path) -> None:
    outcome = uflip("serve", "null", "--socket", "s", "--read-only", "--data", "new")
    assert outcome.code == 4
    assert "name an existing file" in outcome.err
    assert "or a new one" not in outcome.err
    Path("short").write_bytes(bytes(512))
    outcome = uflip("serve", "null", "--socket", "s", "--read-only", "--data", "short")
    assert outcome.code == 3
    assert "or a new file" not in outcome.err
    assert "it is created" not in outcome.err
