"""Does no output name destroy existing data, whatever bears that name?

Every verb that writes a file meets everything that a name can lead to. Existing files are hashed
before and after; a refusal comes before any work and leaves all of them as they were.
"""

import ast
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
import stored
from command_line import Outcome, start, tree, uflip

from uflip.errors import RefusedError, ResultsError
from uflip.results import outputs

SMALL = "sim:demo?blocks_per_die=64"
THESIS = b"three years of work\n"
OK, USAGE, REFUSED, RESULTS = 0, 2, 3, 5

# Verb -> command line, of which the last word is the name; ending of the name.
SEALED = {
    "report": (("report", "r", "-o"), ".html"),
    "plan": (("plan", SMALL, "--only", "order", "--scale", "quick", "--out"), ".toml"),
    "sweep svg": (
        ("sweep", SMALL, "--vary", "gc=greedy", "--pattern", "RW", "--io-count", "9", "-o"),
        ".svg",
    ),
    "sweep png": (
        ("sweep", SMALL, "--vary", "gc=greedy", "--pattern", "RW", "--io-count", "9", "-o"),
        ".png",
    ),
    "sweep pdf": (
        ("sweep", SMALL, "--vary", "gc=greedy", "--pattern", "RW", "--io-count", "9", "-o"),
        ".pdf",
    ),
    "reproduce": (("reproduce", "ofc-fig5a", "-o"), ".svg"),
}
UNSEALED = {
    "sweep table": (
        ("sweep", SMALL, "--vary", "gc=greedy", "--pattern", "RW", "--io-count", "9", "--csv"),
        ".csv",
    ),
    "trace csv": (("pattern", "null", "--pattern", "RR", "--io-count", "9", "--trace"), ".csv"),
    "trace parquet": (
        ("pattern", "null", "--pattern", "RR", "--io-count", "9", "--trace"),
        ".parquet",
    ),
    "save": (("pattern", SMALL, "--pattern", "RW", "--io-count", "9", "--save"), ".snapshot"),
    "prepare": (("prepare", SMALL, "--save"), ".snapshot"),
    "log csv": (("oc", "pattern", "sim:dfc", "--mix", "W", "--log"), ".csv"),
    "log parquet": (("oc", "pattern", "sim:dfc", "--mix", "W", "--log"), ".parquet"),
}
FILES = SEALED | UNSEALED
FOLDERS = {
    "run": ("run", SMALL, "--only", "order", "--scale", "quick", "--out"),
    "replay": ("replay", "trace.iolog", SMALL, "--out"),
    "export csv": ("export", "r", "-o"),
    "export parquet": ("export", "r", "--format", "parquet", "-o"),
    "oc": ("oc", "sim:dfc", "--scale", "quick", "--only", "oc2", "--out"),
}


def everything(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Path -> (mode, device number, content or where it leads)."""
    entries = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = b""
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = str(path.readlink()).encode()
        entries[str(path.relative_to(folder))] = (
            status.st_mode, status.st_rdev, sha256(content).hexdigest(),
        )  # fmt: skip
    return entries


@pytest.fixture(scope="module")
def result_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result folder."""
    folder = tmp_path_factory.mktemp("finished") / "r"
    outcome = uflip("run", SMALL, "--only", "order", "--scale", "quick", "--out", folder, "-q")
    assert outcome.code == OK, outcome.err
    return folder


@pytest.fixture
def workspace(workdir: Path, result_dir: Path) -> Path:
    """A folder with a thesis in it, and results."""
    (workdir / "thesis").write_bytes(THESIS)
    subprocess.run(["cp", "-a", result_dir, workdir / "r"], check=True)
    (workdir / "trace.iolog").write_text("fio version 2 iolog\na read 0 4096\n")
    return workdir


# Files, links and folders at an output path; each makes one and returns the path.


def a_file(name: Path) -> Path:
    name.write_bytes(THESIS)
    return name


def an_empty_file(name: Path) -> Path:
    name.touch()
    return name


def a_fifo(name: Path) -> Path:
    os.mkfifo(name)
    return name


def a_socket(name: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(name.name)  # a path from here: that of a temporary folder may be too long
    return name


def a_device(name: Path) -> Path:
    try:
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes device nodes")
    return name


def a_link(name: Path) -> Path:
    name.symlink_to("thesis")
    return name


def a_link_to_a_device(name: Path) -> Path:
    name.symlink_to("/dev/null")
    return name


def a_link_to_nothing(name: Path) -> Path:
    name.symlink_to("not-yet")
    return name


def a_folder(name: Path) -> Path:
    name.mkdir()
    (name / "thesis").write_bytes(THESIS)
    return name


def in_no_folder(name: Path) -> Path:
    return name.with_name("missing") / name.name


def in_results(name: Path) -> Path:
    return Path("r") / name.name


def among_the_runs(name: Path) -> Path:
    return Path("r/runs") / name.name


def in_results_by_a_link(name: Path) -> Path:
    Path("elsewhere").symlink_to("r/runs")
    return Path("elsewhere") / name.name


def below_a_file(name: Path) -> Path:
    return Path("thesis") / name.name


def beyond_a_names_length(name: Path) -> Path:
    return name.with_name("x" * 260 + name.suffix)


def the_standard_output(_name: Path) -> Path:
    return Path("-")


# Paths that are refused even with --force -> the exit code.
NEVER: dict[Callable[[Path], Path], int] = {
    a_fifo: REFUSED, a_socket: REFUSED, a_device: REFUSED, a_link: REFUSED,
    a_link_to_a_device: REFUSED, a_link_to_nothing: REFUSED, a_folder: USAGE, in_no_folder: USAGE,
    in_results: REFUSED, among_the_runs: REFUSED, in_results_by_a_link: REFUSED,
    below_a_file: USAGE, beyond_a_names_length: RESULTS,
    the_standard_output: USAGE,
}  # fmt: skip


def attempt(verb: str, name: Path, *more: str) -> Outcome:
    return uflip(*FILES[verb][0], name, *more)


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["asked", "forced"])
@pytest.mark.parametrize("lead", NEVER, ids=lambda lead: lead.__name__)
@pytest.mark.parametrize("verb", FILES)
def test_unusable_output_name_is_refused(
    workspace: Path, verb: str, lead: Callable[[Path], Path], force: tuple[str, ...]
) -> None:
    name = lead(Path("output" + FILES[verb][1]))
    before = everything(workspace)
    outcome = attempt(verb, name, *force)
    assert everything(workspace) == before
    assert (outcome.code, outcome.out) == (NEVER[lead], ""), outcome.err
    assert name.name[:20] in outcome.err


@pytest.mark.parametrize("make", [a_file, an_empty_file], ids=lambda make: make.__name__)
@pytest.mark.parametrize("verb", FILES)
def test_foreign_file_is_refused(workspace: Path, verb: str, make: Callable[[Path], Path]) -> None:
    name = make(Path("output" + FILES[verb][1]))
    before = everything(workspace)
    outcome = attempt(verb, name)
    assert everything(workspace) == before
    assert outcome.code == REFUSED, outcome.err
    assert "--force" in outcome.err


def same_names(workspace: Path, before: dict[str, tuple[int, int, str]], new: str) -> bool:
    """Nothing but `new` appeared or changed: no temporary file is left."""
    after = everything(workspace)
    return {name: entry for name, entry in after.items() if name != new} == before


@pytest.mark.parametrize("verb", SEALED)
def test_generated_file_is_replaced_unless_edited(workspace: Path, verb: str) -> None:
    name = Path("output" + FILES[verb][1])
    before = everything(workspace)
    first = attempt(verb, name)
    assert first.code == OK, first.err
    assert same_names(workspace, before, name.name)
    if verb == "reproduce":  # takes its time; what follows is the same for all figures
        return
    os.utime(name, (1, 1))
    second = attempt(verb, name)
    assert (second.code, name.stat().st_mtime > 1) == (OK, True), second.err
    assert same_names(workspace, before, name.name)
    whole = name.read_bytes()
    for edited in (whole + b" ", whole[:-1], whole.replace(b"e", b"E", 1), b" " + whole, b""):
        name.write_bytes(edited)
        outcome = attempt(verb, name)
        assert (outcome.code, name.read_bytes()) == (REFUSED, edited)
    outcome = attempt(verb, name, "--force")
    assert outcome.code == OK, outcome.err
    assert name.read_bytes() == whole
    assert same_names(workspace, before, name.name)


@pytest.mark.parametrize("verb", UNSEALED)
def test_measured_file_is_replaced_only_by_force(workspace: Path, verb: str) -> None:
    name = Path("output" + FILES[verb][1])
    before = everything(workspace)
    first = attempt(verb, name)
    assert first.code == OK, first.err
    measured = name.read_bytes()
    refused = attempt(verb, name)
    assert (refused.code, name.read_bytes()) == (REFUSED, measured)
    name.write_bytes(THESIS)
    outcome = attempt(verb, name, "--force")
    assert outcome.code == OK, outcome.err
    assert name.read_bytes() != THESIS
    assert same_names(workspace, before, name.name)


@pytest.mark.parametrize(
    "lead", [a_file, an_empty_file, a_fifo, a_device, a_link, a_link_to_nothing, a_folder],
    ids=lambda lead: lead.__name__,
)  # fmt: skip
@pytest.mark.parametrize("verb", FOLDERS)
def test_new_folder_replaces_nothing(
    workspace: Path, verb: str, lead: Callable[[Path], Path]
) -> None:
    name = lead(Path("output"))
    before = everything(workspace)
    outcome = uflip(*FOLDERS[verb], name)
    assert everything(workspace) == before
    assert outcome.code in (REFUSED, RESULTS), outcome.err


@pytest.mark.parametrize("lead", [in_results, among_the_runs], ids=lambda lead: lead.__name__)
@pytest.mark.parametrize("verb", FOLDERS)
def test_output_folder_inside_result_folder_is_refused(
    workspace: Path, verb: str, lead: Callable[[Path], Path]
) -> None:
    before = everything(workspace)
    outcome = uflip(*FOLDERS[verb], lead(Path("output")))
    assert everything(workspace) == before
    assert outcome.code == REFUSED, outcome.err


def test_report_cannot_overwrite_manifest(workspace: Path) -> None:
    before = everything(workspace)
    assert uflip("report", "r", "-o", "r/manifest.json", "--force").code == REFUSED
    assert everything(workspace) == before


def test_unwritable_folder_is_an_error_before_work(workspace: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    locked = workspace / "locked"
    locked.mkdir(mode=0o555)
    before = everything(workspace)
    for verb, (command, ending) in FILES.items():
        assert uflip(*command, locked / ("output" + ending)).code == RESULTS, verb
    assert everything(workspace) == before


# The module itself


def test_file_created_or_changed_meanwhile_is_kept(workdir: Path) -> None:
    free = outputs.check(workdir / "a.html", outputs.REPORT)
    (workdir / "a.html").write_bytes(THESIS)
    ours = workdir / "b.html"
    outputs.write(outputs.check(ours, outputs.REPORT), b"<p>")
    looked_at = outputs.check(ours, outputs.REPORT)
    ours.write_bytes(THESIS)
    for target in (free, looked_at):
        with pytest.raises(RefusedError, match="Another process"):
            outputs.write(target, b"<p>")
        assert target.path.read_bytes() == THESIS
    assert sorted(path.name for path in workdir.iterdir()) == ["a.html", "b.html"]


def test_one_of_concurrent_writers_wins(workdir: Path) -> None:
    targets = [outputs.check(workdir / "a.csv", outputs.TABLE) for _ in range(8)]
    won, lost = [], []

    def work(number: int) -> None:
        try:
            outputs.write(targets[number], b"%d" % number * 100_000)
            won.append(number)
        except RefusedError:
            lost.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    assert (workdir / "a.csv").read_bytes() == b"%d" % won[0] * 100_000
    assert [path.name for path in workdir.iterdir()] == ["a.csv"]


def test_failed_write_keeps_the_old_file(workdir: Path) -> None:
    target = outputs.check(workdir / "a.html", outputs.REPORT)
    outputs.write(target, b"<p>")
    whole = target.path.read_bytes()
    second = outputs.check(target.path, outputs.REPORT)

    def fail(error: BaseException) -> None:
        with outputs.output_file(second) as file:
            file.write_bytes(b"half")
            raise error

    with pytest.raises(ResultsError, match="cannot be written"):
        fail(OSError(28, "No space left on device"))
    with pytest.raises(KeyboardInterrupt):
        fail(KeyboardInterrupt())
    assert target.path.read_bytes() == whole
    assert [path.name for path in workdir.iterdir()] == ["a.html"]


def test_replaced_file_keeps_its_mode(workdir: Path) -> None:
    target = outputs.check(workdir / "a.html", outputs.REPORT)
    outputs.write(target, b"<p>")
    target.path.chmod(0o600)
    outputs.write(outputs.check(target.path, outputs.REPORT), b"<b>")
    assert stat.S_IMODE(target.path.stat().st_mode) == 0o600


def test_seal_is_valid_for_one_kind(workdir: Path) -> None:
    (workdir / "a").write_bytes(outputs.add_seal(b"x", outputs.REPORT))
    assert outputs.has_valid_seal(workdir / "a", outputs.REPORT)
    assert not outputs.has_valid_seal(workdir / "a", outputs.FIGURES[".svg"])
    assert not outputs.has_valid_seal(workdir / "a", outputs.PLAN)
    assert not outputs.has_valid_seal(workdir / "a", outputs.TRACE)


# Modules that open files for writing: new files and folders of `outputs`, or names of uflip's own.
WRITERS = {
    "cli/options.py",
    "safe_files.py",
    "results/outputs.py",
    "results/export.py",
    "results/fio_job.py",
    "results/perfetto.py",
    # In a new folder of `results/outputs.py`.
    "cli/reproduce.py",
    # A device that travels, and I/Os that are handed over, in a folder that is gone afterwards.
    "cost/replay.py",
    "explain/nearest_device.py",
    "reproduce/simulated_device.py",
    "benchmark/replay.py",
    "device/io_list.py",
    # In the site's own folder, or in a new one that is moved to its name when it is whole.
    "site/backup.py",
    "site/blobs.py",
    "site/client.py",
    "site/folders.py",
    # The redirect file with the explorer's token, in a new folder of mode 0700.
    "web/server.py",
    # In the hidden folder of results that come from another machine (`safe_files.new_folder`).
    "benchmark/multi_device.py",
}


def test_files_are_opened_for_writing_in_few_modules() -> None:
    package = Path(outputs.__file__).parents[1]
    writers = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            mode = next((text for text in texts if isinstance(text, str)), "")
            opens = node.func.attr == "open" and re.fullmatch("[rbt]*[wxa+][wxabt+]*", mode)
            if opens or node.func.attr in ("write_text", "write_bytes", "touch"):
                writers.add(str(path.relative_to(package)))
    assert writers <= WRITERS, f"{writers - WRITERS}: use results/outputs.py"


def test_unwritable_record_is_reported_before_file_is_created(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("no folder\n")
    outcome = uflip(
        "run", f"file:{tmp_path / 'new.bin'}", "--size", "2MiB", "--scale", "quick",
        "--only", "order", "--record", tmp_path / "taken" / "state.json", "--out", tmp_path / "out",
    )  # fmt: skip
    assert outcome.code == 5, outcome.err
    assert "--record" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_file_too_large_for_file_system_is_not_created(tmp_path: Path) -> None:
    outcome = uflip(
        "run", f"file:{tmp_path / 'new.bin'}", "--size", "1000000TiB", "--out", tmp_path / "out"
    )
    assert outcome.code == 2, outcome.err
    assert "not enough free space" in outcome.err
    assert "up to" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_closed_standard_output_does_not_fail_command() -> None:
    line = f"exec {sys.executable} -m uflip info sim:demo >&- 2>&-"
    assert subprocess.run(["sh", "-c", line], check=False, timeout=60).returncode == 0


def test_nothing_is_created_in_a_result_folder(workdir: Path) -> None:
    """Measured files, sockets, data files of served devices, a site."""
    stored.results(Path("r"))
    Path("aside").symlink_to("r")
    before = tree(Path("r"))
    for command in (
        ("run", "file:r/x.bin", "--size", "1MiB", "--buffered", "--scale", "quick", "--out", "o"),
        ("run", "file:aside/x.bin", "--size", "1MiB", "--buffered", "--out", "o"),
        ("prepare", "file:r/runs/x.bin", "--size", "1MiB", "--buffered"),
        ("pattern", "file:r/x.bin", "--size", "1MiB", "--buffered", "--pattern", "RW"),
        ("pattern", "file:r/manifest.json", "--buffered", "--pattern", "RW", "--io-size", "512",
         "--destroy", "r/manifest.json"),
        ("serve", "sim:demo", "--socket", "s.sock", "--data", "r/d.img", "--run", "true"),
        ("serve", "sim:demo", "--socket", "r/s.sock", "--run", "true"),
        ("serve", "sim:demo", "--socket", "s.sock", "--stats", "aside/s.sock", "--run", "true"),
        ("site", "token", "r", "x"),
        ("site", "token", "r/runs/site", "x"),
    ):  # fmt: skip
        outcome = uflip(*command)
        assert outcome.code == 3, (command, outcome.err)
        assert "Files cannot be written into a result folder" in outcome.err
        assert tree(Path("r")) == before
    assert sorted(path.name for path in Path().iterdir()) == ["aside", "r"]


def test_unwritable_standard_output_is_an_error(workdir: Path) -> None:
    """A full disk behind `>`: the error cannot go there, so it goes to standard error."""
    stored.results(Path("r"))
    for command, code, message in (
        (("show", "r"), 5, "No space left on device"),
        (("show", "r", "--json"), 5, "No space left on device"),
        (("devices", "--json"), 5, "No space left on device"),
        (("profile", "export", "sim:demo"), 5, "No space left on device"),
        (("info", "file:nowhere", "--json"), 4, "does not exist"),
    ):
        with Path("/dev/full").open("w") as full:
            process = start(*command, stdout=full)
            _, err = process.communicate()
        assert process.returncode == code, (command, err)
        assert err.startswith("error: "), command
        assert message in err
        assert "Exception ignored" not in err
