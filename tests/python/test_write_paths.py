"""Does every path option preserve existing files that it may not overwrite?

`PATHS` lists every parameter of the command line that names a path, and what is written there; a
parameter that is not listed fails the first test. Each option that writes gets a foreign file, a
link to one, a folder, and an image mounted through a loop device. All of them stay unchanged.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
import stored
from command_line import Outcome, uflip
from foreign_texts import FEMU

from uflip.cli.main import VERBS
from uflip.device.catalogue import inspect_device

SMALL = "sim:demo?blocks_per_die=64"
SERVED = "sim:demo?blocks_per_die=24"
CAPACITY = inspect_device(SERVED).capacity_bytes
QUICK = ("--only", "order", "--scale", "quick", "-q")
NINE_WRITES = ("--pattern", "RW", "--io-count", "9")
SWEEP = ("sweep", SMALL, "--vary", "gc=greedy", *NINE_WRITES, "-q")
SERVE = ("serve", SERVED, "--run", "true", "-q")
BUFFERED = ("--size", "1MiB", "--buffered")

THESIS = b"three years of work\n"
# Usage, refused, a device that cannot be used, results; each comes before anything is written.
REFUSALS = (2, 3, 4, 5)
# Files that a command may create before it is refused.
ALLOWED = {"new.bin", "new.sock", "out"}

READ = "read"
"""Nothing is written there."""
CONTINUED = "own"
"""A folder of uflip's own, made before, is continued; anything else is refused."""

# (verb, parameter) -> a command whose next word is the path, with options after it; or READ,
# CONTINUED.
PATHS: dict[tuple[str, str], tuple[tuple[str, ...], str, tuple[str, ...]] | str] = {
    ("run", "devices"): (("run",), "file:", (*BUFFERED, *QUICK, "--out", "out")),
    ("run", "--out"): (("run", SMALL, *QUICK, "--out"), "", ()),
    ("run", "--plan"): READ,
    ("run", "--resume"): CONTINUED,
    ("run", "--record"): (
        ("run", "file:new.bin", *BUFFERED, *QUICK, "--out", "out", "--record"), "", ()
    ),
    ("plan", "device"): READ,
    ("plan", "--record"): READ,
    ("plan", "--plan"): READ,
    ("plan", "--out"): (("plan", SMALL, *QUICK[:-1], "--out"), "", ()),
    ("prepare", "device"): (("prepare",), "file:", BUFFERED),
    ("prepare", "--record"): (("prepare", "file:new.bin", *BUFFERED, "--record"), "", ()),
    ("prepare", "--save"): (("prepare", SMALL, "--save"), "", ()),
    ("deallocate", "device"): (("deallocate",), "file:", ("--buffered",)),
    ("deallocate", "--save"): (("deallocate", SMALL, "--save"), "", ()),
    ("zones", "device"): (("zones",), "file:", ("--buffered", "--reset", "0")),
    ("zones", "--save"): (("zones", "sim:zns", "--reset", "0", "--save"), "", ()),
    ("pattern", "device"): (("pattern",), "file:", (*BUFFERED, *NINE_WRITES)),
    ("pattern", "--spec"): READ,
    ("pattern", "--trace"): (("pattern", "null", *NINE_WRITES, "--trace"), "", ()),
    ("pattern", "--inside"): (("pattern", SMALL, *NINE_WRITES, "--inside"), "", ()),
    ("pattern", "--save"): (("pattern", SMALL, *NINE_WRITES, "--save"), "", ()),
    ("replay", "trace"): READ,
    ("replay", "device"): (("replay", "writes.iolog"), "file:", (*BUFFERED, "--out", "out")),
    ("replay", "--out"): (("replay", "writes.iolog", SMALL, "--out"), "", ()),
    ("replay", "--resume"): CONTINUED,
    ("sweep", "device"): READ,
    ("sweep", "--spec"): READ,
    ("sweep", "--data"): ((*SWEEP, "--data"), "", ()),
    ("sweep", "--resume"): CONTINUED,
    ("sweep", "--out"): ((*SWEEP, "-o"), "", ()),
    ("sweep", "--csv"): ((*SWEEP, "--csv"), "", ()),
    ("show", "results"): READ,
    ("show", "others"): READ,
    ("hints", "results"): READ,
    ("infer", "target"): (("infer",), "file:", (*BUFFERED, "-q", "--out", "out")),
    ("infer", "twin"): (("infer", "--check", SMALL), "", ()),
    ("infer", "--observations"): READ,
    ("infer", "--out"): (("infer", SMALL, "-q", "--out"), "", ()),
    ("infer", "-o"): (("infer", SMALL, "-q", "--out", "out", "-o"), "", ()),
    ("cost", "results"): READ,
    ("compare", "results"): READ,
    ("compare", "--out"): (("compare", "r", "r", "-o"), "", ()),
    ("verify", "results"): READ,
    ("analyse", "file"): READ,
    ("why", "file"): READ,
    ("why", "--device"): READ,
    ("why", "--out"): (("why", "latency.log", "-o"), "", ()),
    ("pattern", "--fio-job"): READ,
    ("plan", "--fio-job"): READ,
    ("explore", "paths"): READ,
    ("explore", "--served"): READ,
    ("explore", "--twin"): READ,
    ("site accounts", "folder"): READ,
    ("site backup", "folder"): READ,
    ("site backup", "out"): (("site", "backup", "s"), "", ()),
    ("site restore", "backup_folder"): READ,
    ("site restore", "folder"): (("site", "restore", "b"), "", ()),
    ("site seed", "folder"): CONTINUED,
    ("site seed", "--device"): READ,
    ("site serve", "folder"): CONTINUED,
    ("site token", "folder"): (("site", "token"), "", ("somebody",)),
    ("submit", "result"): READ,
    ("pull", "--out"): (("pull", "http://127.0.0.1:1", "0123456789ab", "--out"), "", ()),
    ("report", "results"): READ,
    ("report", "--out"): (("report", "r", "-o"), "", ()),
    ("figure", "results"): READ,
    ("figure", "--out"): (("figure", "r", "overview", "-o"), "", ()),
    ("export", "results"): READ,
    ("export", "--out"): (("export", "r", "-o"), "", ()),
    ("import", "files"): READ,
    ("import", "--out"): (("import", "fio-log", "latency.log", "--out"), "", ()),
    ("oc pattern", "device"): READ,
    ("oc pattern", "--log"): (("oc", "pattern", "sim:dfc", "--mix", "W", "--log"), "", ()),
    ("oc pattern", "--save"): (("oc", "pattern", "sim:dfc", "--mix", "W", "--save"), "", ()),
    ("oc run", "device"): READ,
    ("oc run", "--out"): (
        ("oc", "sim:dfc", "--scale", "quick", "--only", "oc2", "--out"), "", ()
    ),
    ("powercut", "device"): READ,
    ("serve", "devices"): READ,
    ("serve", "--socket"): ((*SERVE, "--socket"), "", ()),
    ("serve", "--stats"): ((*SERVE, "--socket", "new.sock", "--stats"), "", ()),
    ("serve", "--data"): ((*SERVE, "--socket", "new.sock", "--data"), "", ()),
    ("serve", "--record"): ((*SERVE, "--socket", "new.sock", "--record"), "", ()),
    ("serve", "--save"): ((*SERVE, "--socket", "new.sock", "--save"), "", ()),
    ("reproduce", "--data"): READ,
    ("reproduce", "--profiles"): (("reproduce", "drives", "--profiles"), "", ()),
    ("reproduce", "--out"): (("reproduce", "ofc-fig5a", "-o"), "", ()),
    ("profile check", "path"): READ,
    ("profile export", "device"): READ,
    ("profile import", "configuration"): READ,
    ("profile import", "path"): (("profile", "import", "run.sh"), "", ()),
    ("profile new", "device"): READ,
    ("profile new", "path"): (("profile", "new", "sim:demo"), "", ()),
    ("info", "device"): READ,
}  # fmt: skip
MAKES_A_SITE = {("site token", "folder")}
WRITING = {path_option: usage for path_option, usage in PATHS.items() if not isinstance(usage, str)}
# The ending that a name must have, where it decides about the form.
ENDINGS = {
    "--save": ".snapshot", "--trace": ".csv", "--csv": ".csv", "--log": ".csv", "--record": ".csv",
    "path": ".toml",
    ("run", "--record"): ".json", ("prepare", "--record"): ".json", ("plan", "--out"): ".toml",
    ("sweep", "--out"): ".svg", ("figure", "--out"): ".svg", ("reproduce", "--out"): ".svg",
    ("why", "--out"): ".html",
    ("compare", "--out"): ".html", ("report", "--out"): ".html", ("infer", "-o"): ".toml",
    ("infer", "twin"): ".toml",
}  # fmt: skip
# Parameters that name a place although their type is a text.
TEXTS = {"device", "devices", "paths", "path", "spec_file", "target"}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command of the command line with its name."""
    for verb in VERBS:
        command: click.Command = import_module(f"uflip.cli.{verb}").command
        if isinstance(command, click.Group):
            yield from ((f"{verb} {name}", each) for name, each in command.commands.items())
        else:
            yield verb, command


def test_every_path_parameter_is_listed() -> None:
    listed = set()
    for verb, command in commands():
        for parameter in command.params:
            if isinstance(parameter.type, click.Path) or parameter.name in TEXTS:
                listed.add((verb, max(parameter.opts, key=len)))
    assert listed == set(PATHS)


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return the content, links, inodes and times of everything in a folder."""
    entries: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        leads = str(path.readlink()) if path.is_symlink() else ""
        content = b""
        if path.is_file() and about.st_size < 1 << 20:
            content = path.read_bytes()
        times = () if path.is_dir() else (about.st_mtime_ns, about.st_size)
        key = str(path.relative_to(folder))
        entries[key] = (
            about.st_mode,
            about.st_ino,
            leads,
            content,
            times,
        )
    return entries


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Work in a folder with a thesis, and with everything that a command of the list reads."""
    folder = tmp_path_factory.mktemp("room")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        stored.results(Path("r"))
        assert uflip("site", "token", "s", "somebody").code == 0
        assert uflip("site", "backup", "s", "b").code == 0
        Path("writes.iolog").write_text("fio version 2 iolog\na write 0 4096\n")
        Path("latency.log").write_text("1, 1000, 1, 4096, 0\n")
        Path("run.sh").write_text(FEMU)
        Path("thesis").write_bytes(THESIS)
        os.truncate("thesis", CAPACITY)  # a served device would take a file of this size
        Path("chapters").mkdir()
        Path("chapters", "one").write_bytes(THESIS)
        yield folder


def a_file(name: Path) -> None:
    os.link("thesis", name)


def a_link(name: Path) -> None:
    name.symlink_to("thesis")


def a_folder(name: Path) -> None:
    shutil.copytree("chapters", name)


def a_link_to_a_folder(name: Path) -> None:
    name.symlink_to("chapters")


def a_link_to_nothing(name: Path) -> None:
    name.symlink_to("chapters/two")


def attempt(path_option: tuple[str, str], name: Path) -> Outcome:
    command, prefix, more = WRITING[path_option]
    return uflip(*command, f"{prefix}{name}", *more)


def name_for(path_option: tuple[str, str]) -> Path:
    return Path("name" + (ENDINGS.get(path_option) or ENDINGS.get(path_option[1]) or ""))


def check_nothing_is_lost(workspace: Path, path_option: tuple[str, str], name: Path) -> None:
    """Run a command; it must be refused with an error, and change no existing file."""
    before = state(workspace)
    outcome = attempt(path_option, name)
    after = state(workspace)
    assert {key: after.get(key) for key in before} == before, (path_option, outcome.err)
    assert outcome.code in REFUSALS, (path_option, outcome)
    assert "error: " in outcome.err, (path_option, outcome.err)
    new = after.keys() - before.keys()
    assert new <= ALLOWED, (path_option, new)
    for key in new:
        (workspace / key).unlink()


@pytest.mark.parametrize(
    "put", [a_file, a_link, a_folder, a_link_to_a_folder, a_link_to_nothing],
    ids=lambda put: put.__name__,
)  # fmt: skip
def test_existing_file_at_the_path_is_kept(workspace: Path, put: Callable[[Path], None]) -> None:
    for path_option in WRITING:
        if path_option in MAKES_A_SITE and put in (a_folder, a_link_to_a_folder):
            continue  # a site may share a folder with other files
        name = name_for(path_option)
        put(name)
        check_nothing_is_lost(workspace, path_option, name)
        if name.is_dir() and not name.is_symlink():
            shutil.rmtree(name)
        else:
            name.unlink()


def test_image_of_a_loop_device_is_kept(workspace: Path) -> None:
    """Not even `--destroy` lets it be written."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("only root makes loop devices")
    image = Path("image")
    with image.open("wb") as file:
        file.truncate(CAPACITY)
    made = subprocess.run(
        ["losetup", "--find", "--show", image], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"there is no loop device: {made.stderr}")
    try:
        for path_option in WRITING:
            name = name_for(path_option)
            os.link(image, name)
            check_nothing_is_lost(workspace, path_option, name)
            name.unlink()
        outcome = uflip(*SERVE, "--socket", "new.sock", "--data", image, "--destroy", image)
        assert outcome.code == 3, outcome
        assert "loop device" in outcome.err
    finally:
        subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)
        image.unlink()


def test_served_device_takes_only_released_or_own_data(workspace: Path) -> None:
    served = (*SERVE, "--socket", "new.sock", "--data")
    shutil.copy("thesis", "copy")
    with Path("copy").open("rb") as copy:
        assert uflip(*served, "copy").code == 3
        assert uflip(*served, "copy", "--destroy", "thesis").code == 3
        assert uflip(*served, "copy", "--destroy", "copy").code == 0
        assert copy.read(len(THESIS)) == THESIS, "clients wrote nothing"
    assert uflip(*served, "copy").code == 0, "it is the server's from now on"
    assert uflip(*served, "new").code == 0
    assert uflip(*served, "new").code == 0
    benchmark = uflip("pattern", "file:new", "--buffered", *NINE_WRITES)
    assert benchmark.code == 3
    assert "the data of a served device" in benchmark.err
    for options in (("--destroy", "x"), ("--data", "new", "--read-only", "--destroy", "new")):
        assert uflip(*SERVE, "--socket", "new.sock", *options).code == 2
    assert uflip(*served, "thesis", "--read-only").code == 0, "nothing is written to it"
    Path("copy").unlink()
    Path("new").unlink()
