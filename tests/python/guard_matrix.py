"""Every write path × every kind of protected target, on real loop devices.

It is a program of its own because it mounts: `test_guard.py` starts it in new mount and UTS
namespaces. It prints a document: the attempts, those that were not refused, and changed targets.
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import signatures
from command_line import start, uflip
from fuse_file import forget_partitions

from uflip.device.catalogue import report_block
from uflip.device.opener import open_device
from uflip.errors import EXIT_CODES, UflipError
from uflip.spec import baseline

MIB = 1 << 20
KIND_OF_CODE = {code: kind for kind, (code, _) in EXIT_CODES.items()}


@dataclass(frozen=True)
class Target:
    """A target that must not be written to, and the confirmations that are tried."""

    name: str
    url: str
    typed: tuple[str | None, ...]
    watched: tuple[Path, ...]
    """Files whose content must stay."""
    options: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("refused",)


@dataclass
class Tally:
    attempts: int = 0
    targets: int = 0
    resumed: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    refusal_ms: list[float] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def run(*command: object) -> str:
    words = [str(word) for word in command]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{command}: {process.stderr}")
    return process.stdout.strip()


def fingerprint(paths: tuple[Path, ...]) -> list[tuple[str, Any]]:
    """Return content, length, time of the last change and mark of the files at the paths."""
    fingerprints: list[tuple[str, Any]] = []
    for path in paths:
        try:
            status = path.stat()
            content = path.read_bytes()  # not a digest, which would take longer than all commands
            mark = os.getxattr(path, "user.uflip") if "user.uflip" in os.listxattr(path) else b""
            fingerprints.append((str(path), (content, status.st_size, mark)))
        except OSError as error:
            fingerprints.append((str(path), error.errno))
    return fingerprints


class Bench:
    """Makes targets, and removes all of them at the end."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.count = 0

    def path(self, name: str) -> Path:
        self.count += 1
        return self.folder / f"{self.count:03}-{name}"

    def file(self, name: str, content: bytes = b"", size: int = 2 * MIB) -> Path:
        path = self.path(name)
        path.write_bytes(content or hashlib.shake_128(name.encode()).digest(size))
        return path

    def loop(self, path: Path, *options: str) -> str:
        device = run("losetup", "-f", "--show", *options, path)
        forget_partitions(device)
        self.stack.callback(subprocess.run, ["losetup", "-d", device], capture_output=True)
        return device

    def ext2_image(self, name: str, size: int = 2 * MIB) -> Path:
        """Make a file with an unmounted ext2."""
        path = self.path(name)
        with path.open("wb") as file:
            file.truncate(size)
        run("mkfs.ext2", "-q", "-F", path)
        return path

    def mount(self, device: str | Path, *options: str) -> Path:
        point = self.path("point")
        point.mkdir()
        run("mount", "-o", ",".join(("noatime", *options)), device, point)
        run("sync", "-f", point)  # what the mount itself writes
        self.stack.callback(subprocess.run, ["umount", "-l", str(point)], capture_output=True)
        return point

    def process(self, *command: object) -> "subprocess.Popen[str]":
        """Start a program that prints "ready" and then stays."""
        words = [str(word) for word in command]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)

        def end() -> None:
            os.killpg(process.pid, signal.SIGKILL)  # it, and what it started
            process.wait()

        self.stack.callback(end)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        return process

    def uflip_file(self, name: str, size: int = MIB) -> Path:
        """Make a file with uflip."""
        path = self.path(name)
        with open_device(f"file:{path}", size=size) as device:
            device.run(baseline("RW", io_count=5, target_size=size))
        return path


def token(device: str) -> str:
    return str(report_block(device)["token"])


def near_misses(token: str) -> tuple[str | None, ...]:
    """Return confirmations that are nearly right, as by typing or pasting mistakes."""
    model, serial_and_size = token.split(":", 1)
    return (
        None, "", token[:-1], token + "0", token.replace(":", " "), token.upper() + "x",
        f"{model}:{serial_and_size.rsplit(':', 1)[1]}", f" {token}", token + "+",
    )  # fmt: skip


def used_block(name: str, device: str, *watched: Path, url: str = "") -> Target:
    """Return a block device in use, with the token that it would have."""
    return Target(name, url or device, (None, token(device)), watched)


def mounted_blocks(bench: Bench) -> Iterator[Target]:
    """Yield block devices with a mounted file system."""
    backing = bench.ext2_image("mounted")
    device = bench.loop(backing)
    bench.mount(device)
    yield used_block("mounted", device, backing)
    link = bench.path("link")
    link.symlink_to(device)
    yield used_block("a link to a mounted one", device, backing, url=f"/dev/..{link}")

    backing = bench.ext2_image("read-only mount")
    device = bench.loop(backing)
    bench.mount(device, "ro")
    yield used_block("mounted read-only", device, backing)

    backing = bench.ext2_image("bind")
    device = bench.loop(backing)
    point, other = bench.mount(device), bench.path("other")
    other.mkdir()
    run("mount", "--bind", point, other)
    bench.stack.callback(subprocess.run, ["umount", str(other)], capture_output=True)
    run("umount", point)
    yield used_block("only a bind mount is left", device, backing)

    backing = bench.ext2_image("elsewhere")
    device = bench.loop(backing)
    point = bench.path("point")
    point.mkdir()
    bench.process(
        "unshare",
        "-m",
        "sh",
        "-c",
        f"mount -o noatime {device} {point} && echo ready && exec sleep 600",
    )
    yield used_block("mounted in another namespace", device, backing)

    backing = bench.ext2_image("lazy")
    device = bench.loop(backing)
    point = bench.mount(device)
    (point / "f").write_text("x")
    open_file = (point / "f").open()
    bench.stack.callback(open_file.close)
    run("umount", "-l", point)
    yield used_block("unmounted lazily, still open", device, backing)


def claimed_blocks(bench: Bench) -> Iterator[Target]:
    """Yield block devices that the system or a program has claimed."""
    backing = bench.path("swap")
    backing.write_bytes(bytes(4 * MIB))
    device = bench.loop(backing)
    run("mkswap", device)
    run("swapon", device)
    bench.stack.callback(subprocess.run, ["swapoff", device], capture_output=True)
    yield used_block("swapped to", device, backing)

    backing = bench.file("claimed")
    device = bench.loop(backing)
    claim = os.open(device, os.O_RDONLY | os.O_EXCL)
    bench.stack.callback(os.close, claim)
    yield used_block("claimed by a process", device, backing)

    backing = bench.file("written")
    device = bench.loop(backing)
    bench.process("sh", "-c", f"exec 3<>{device}; echo ready; exec sleep 600")
    yield used_block("open for writing in a process", device, backing)

    backing = bench.file("locked")
    device = bench.loop(backing)
    bench.process("flock", device, "sh", "-c", "echo ready; exec sleep 600")
    yield used_block("locked by a process", device, backing)


def layered_blocks(bench: Bench) -> Iterator[Target]:
    """Yield block devices that share their bytes with a used one."""
    lower = bench.ext2_image("lower", 4 * MIB)
    device = bench.loop(lower)
    upper = bench.loop(Path(device))
    bench.mount(upper)
    yield used_block("a mounted loop over it", device, lower)

    lower = bench.file("idle lower")
    device = bench.loop(lower)
    bench.loop(Path(device))
    yield used_block("an idle loop over it", device, lower)

    lower = bench.ext2_image("three", 4 * MIB)
    device = bench.loop(lower)
    bench.mount(bench.loop(Path(bench.loop(Path(device)))))
    yield used_block("two loops over it, the upper one mounted", device, lower)

    lower = bench.ext2_image("below", 4 * MIB)
    device = bench.loop(lower)
    upper = bench.loop(Path(device))
    bench.mount(device)
    yield used_block("over a mounted one", upper, lower)

    shared = bench.ext2_image("shared")
    first, second = bench.loop(shared), bench.loop(shared)
    bench.mount(first)
    yield used_block("another loop shows its file, mounted", second, shared)

    shared = bench.file("idle shared")
    first, second = bench.loop(shared), bench.loop(shared, "-o", "4096")
    yield used_block("another loop shows a part of its file", first, shared)
    yield used_block("it shows a part of what another loop shows", second, shared)

    inner_home = bench.ext2_image("outer", 8 * MIB)
    point = bench.mount(bench.loop(inner_home))
    (point / "inner").write_bytes(bytes(2 * MIB))
    inner = bench.loop(point / "inner")
    run("mkfs.ext2", "-q", inner)
    bench.mount(inner)
    yield used_block("a file on a loop, mounted again", inner, inner_home)

    disk, parts = partitioned(bench)
    bench.mount(parts[0])
    yield used_block("a partition of it is mounted", disk[0], disk[1])
    yield used_block("a mounted partition", parts[0], disk[1])

    backing = bench.ext2_image("whole", 8 * MIB)
    device = bench.loop(backing)
    run("addpart", device, "1", "2048", "4096")
    bench.stack.callback(subprocess.run, ["delpart", device, "1"], capture_output=True)
    bench.mount(device)
    yield used_block("a partition of a disk that is mounted whole", f"{device}p1", backing)


def partitioned(bench: Bench) -> tuple[tuple[str, Path], tuple[str, str]]:
    """Make a disk with two partitions of one size, the first with an ext2."""
    backing = bench.path("disk")
    backing.write_bytes(bytes(8 * MIB))
    device = bench.loop(backing)
    for number, begin in ((1, 2048), (2, 8192)):
        run("addpart", device, number, begin, 4096)
        remove = ["delpart", device, str(number)]
        bench.stack.callback(subprocess.run, remove, capture_output=True)
    run("mkfs.ext2", "-q", f"{device}p1")
    return (device, backing), (f"{device}p1", f"{device}p2")


def blocks_with_a_wrong_token(bench: Bench) -> Iterator[Target]:
    """Yield unused block devices with confirmations that do not permit writing."""
    backing = bench.file("free")
    device = bench.loop(backing)
    yield Target("free", device, near_misses(token(device)), (backing,))

    (disk, file), (first, second) = partitioned(bench)
    bare = token(first).split("+")[0]
    yield Target("another partition", second, (None, token(first), bare, token(disk)), (file,))
    yield Target("the disk of a partition", disk, (None, token(first), bare), (file,))

    twins = [bench.file("twin one"), bench.file("twin two")]
    one, two = (bench.loop(twin) for twin in twins)
    yield Target("its twin", one, (None, token(two)), tuple(twins))

    backing = bench.file("changed")
    device = bench.loop(backing)
    old = token(device)
    run("losetup", "-d", device)
    other = bench.file("another medium")
    wait_until_free(device)
    run("losetup", device, other)
    bench.stack.callback(subprocess.run, ["losetup", "-d", device], capture_output=True)
    yield Target("another medium behind its name", device, (None, old), (backing, other))

    backing = bench.file("read-only")
    device = bench.loop(backing, "-r")
    yield Target(
        "read-only", device, (None, token(device)), (backing,), kinds=("refused", "device")
    )

    for kind in signatures.KINDS:
        backing = bench.path(f"holds-{kind}")
        signatures.write(backing, kind)
        device = bench.loop(backing)
        bare = token(device).split("+")[0]
        assert f"+{kind}" in token(device), f"{kind} is not found: {token(device)}"
        yield Target(f"holds {kind}", device, (None, bare, f"{bare}+wrong"), (backing,))
        run("losetup", "-d", device)


def wait_until_free(device: str) -> None:
    """Wait until the last user of a loop device has closed it."""
    for _ in range(200):
        if not Path(f"/sys/block/{Path(device).name}/loop").exists():
            return
        time.sleep(0.02)
    raise RuntimeError(f"{device} stays")


def files_in_use(bench: Bench) -> Iterator[Target]:
    def target(name: str, path: Path, *watched: Path, more: str = "") -> Target:
        typed = (None, f"{path}", f"{path}+ext2", *([f"{path}{more}"] if more else []))
        return Target(name, f"file:{path}", typed, (path, *watched))

    backing = bench.ext2_image("backing")
    bench.mount(bench.loop(backing))
    yield target("the file of a mounted loop", backing)

    backing = bench.file("idle backing")
    bench.loop(backing)
    yield target("the file of an idle loop", backing)

    backing = bench.ext2_image("moved backing")
    bench.mount(bench.loop(backing))
    moved = backing.rename(bench.path("moved"))
    yield target("the file of a mounted loop, renamed since", moved)

    ours = bench.uflip_file("ours, mounted", 2 * MIB)
    run("mkfs.ext2", "-q", "-F", ours)
    bench.mount(bench.loop(ours))
    yield target("a file that uflip made, mounted since", ours)

    swap = bench.path("swapfile")
    swap.write_bytes(bytes(4 * MIB))
    swap.chmod(0o600)
    run("mkswap", swap)
    run("swapon", swap)
    bench.stack.callback(subprocess.run, ["swapoff", str(swap)], capture_output=True)
    yield target("swapped to", swap, more="+swap")

    locked = bench.file("database")
    bench.process(
        sys.executable, "-c",
        "import fcntl, time\n"
        f"f = open({str(locked)!r}, 'r+')\n"
        "fcntl.lockf(f, fcntl.LOCK_EX)\nprint('ready', flush=True)\ntime.sleep(600)",
    )  # fmt: skip
    yield target("locked by a database", locked)

    written = bench.uflip_file("log")
    bench.process("sh", "-c", f"exec 3>>'{written}'; echo ready; exec sleep 600")
    yield target("open for writing in a process", written)

    locked = bench.uflip_file("measured by somebody else")
    bench.process("flock", "-s", locked, "sh", "-c", "echo ready; exec sleep 600")
    yield target("read by another benchmark", locked)

    library = Path(sys.executable).resolve()
    yield target("this very program", library)


def foreign_file(name: str, path: Path, *watched: Path) -> Target:
    return Target(
        name, f"file:{path}", (None, f"{path}x"), (path, *watched), kinds=("refused", "usage")
    )


def foreign_files(bench: Bench) -> Iterator[Target]:
    """Yield unused files that uflip did not make, or not in this form."""
    yield foreign_file("somebody's", bench.file("thesis"))
    empty = bench.path("empty")
    empty.touch()
    sized = ("--size", "1MiB")
    yield Target("somebody's, empty", f"file:{empty}", (None,), (empty,), sized)

    image = bench.ext2_image("image")
    yield Target("an image", f"file:{image}", (None, str(image), f"{image}+ext4"), (image,))

    link = bench.path("link")
    secret = bench.file("behind a link")
    link.symlink_to(secret)
    yield Target(
        "behind a link", f"file:{link}", (None, str(secret)), (secret,), kinds=("refused", "usage")
    )
    hard = bench.path("hard")
    os.link(secret, hard)
    yield foreign_file("by another name", hard, secret)
    unlinked = bench.file("unlinked")
    descriptor = os.open(unlinked, os.O_RDWR)
    bench.stack.callback(os.close, descriptor)
    unlinked.unlink()
    path = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    yield foreign_file("without a name, by its descriptor", path)
    readable = bench.file("read-only")
    readable.chmod(0o444)
    typed = (None, str(readable))
    yield Target("read-only", f"file:{readable}", typed, (readable,), kinds=("refused", "device"))


def modified_uflip_files(bench: Bench) -> Iterator[Target]:
    """Yield files that uflip made and that another program changed since."""
    content = bench.file("precious", size=MIB)
    overwritten = bench.uflip_file("written over")
    shutil.copyfile(content, overwritten)
    yield foreign_file("one of ours that somebody wrote to", overwritten, content)

    same_time = bench.uflip_file("same length and time")
    before = same_time.stat()
    shutil.copyfile(content, same_time)
    os.utime(same_time, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    yield foreign_file("one of ours with other content", same_time)

    copy_with_mark = bench.path("kept")
    run("cp", "-a", bench.uflip_file("original"), copy_with_mark)
    yield foreign_file("a copy with all attributes", copy_with_mark)
    copy = bench.path("copied")
    run("cp", "-a", bench.uflip_file("original"), copy)
    shutil.copyfile(content, copy)
    yield foreign_file("a copy with other content", copy)

    replaced = bench.uflip_file("replaced")
    bench.file("new", size=MIB).rename(replaced)
    yield foreign_file("another file in the place of one of ours", replaced)

    formatted = bench.uflip_file("formatted", 2 * MIB)
    run("mkfs.ext2", "-q", "-F", formatted)
    yield foreign_file("one of ours with a file system", formatted)

    grown = bench.uflip_file("grown")
    with grown.open("ab") as file:
        file.write(b"diary")
    yield foreign_file("one of ours that grew", grown)
    truncated = bench.uflip_file("cut")
    os.truncate(truncated, MIB // 2)
    yield foreign_file("one of ours that was cut", truncated)

    other = bench.uflip_file("other mark")
    os.setxattr(other, "user.uflip", b"2" + os.getxattr(other, "user.uflip")[1:])
    yield foreign_file("a mark of another version", other)
    forged = bench.file("forged mark")
    os.setxattr(forged, "user.uflip", os.getxattr(bench.uflip_file("real"), "user.uflip"))
    yield foreign_file("a mark of another file", forged)

    opened = bench.uflip_file("killed")
    mark = os.getxattr(opened, "user.uflip").replace(b"open=0", b"open=1")
    with opened.open("r+b") as file:
        file.seek(MIB - 600)
        file.write(b"not of uflip")
    os.setxattr(opened, "user.uflip", mark)
    yield foreign_file("left open by a kill, then written to by somebody", opened)


def non_files(bench: Bench) -> Iterator[Target]:
    """Yield paths that `file:` does not accept."""
    sized = ("--size", "512", "--buffered")

    def target(
        name: str, path: str, *, kinds: tuple[str, ...] = ("refused",), watch: bool = True
    ) -> Target:
        watched = (Path(path),) if watch else ()
        return Target(name, f"file:{path}", (None, path), watched, sized, kinds)

    yield target("the machine's name in procfs", "/proc/sys/kernel/domainname")
    yield target("a setting in procfs", "/proc/sys/vm/swappiness")
    yield target("a setting in sysfs", "/sys/block/loop0/queue/nr_requests")
    bound = bench.path("bound")
    bound.touch()
    run("mount", "--bind", "/proc/sys/kernel/domainname", bound)
    bench.stack.callback(subprocess.run, ["umount", str(bound)], capture_output=True)
    yield target("procfs behind a bind mount", str(bound))
    yield target("a new file in procfs", "/proc/uflip-new")
    yield target("a new file in sysfs", "/sys/uflip-new")
    yield target("a new file in /dev", "/dev/uflip-new")
    yield target("a character device", "/dev/null", watch=False)
    yield target("a block device", "/dev/loop0", watch=False)
    node = bench.path("node")
    os.mknod(node, 0o600 | 0o060000, os.makedev(7, 0))
    yield target("a block device elsewhere", str(node), kinds=("device",), watch=False)
    fifo = bench.path("fifo")
    os.mkfifo(fifo)
    yield target("a FIFO", str(fifo), kinds=("device",), watch=False)
    path = bench.path("socket")
    with socket.socket(socket.AF_UNIX) as server:
        previous_dir = Path.cwd()
        os.chdir(path.parent)
        server.bind(path.name)
        os.chdir(previous_dir)
    yield target("a socket", str(path), kinds=("device", "refused"), watch=False)
    yield target("a folder", str(bench.folder), kinds=("device",), watch=False)


Attempt = Callable[[Target, str | None], str]


def attempt_by_python(target: Target, typed: str | None, tally: Tally) -> str:
    options = dict(zip(target.options[::2], target.options[1::2], strict=False))
    began = time.perf_counter()
    try:
        device = open_device(
            target.url,
            size=options.get("--size"),
            buffered="--buffered" in target.options,
            destroy=typed,
        )
    except UflipError as error:
        tally.refusal_ms.append((time.perf_counter() - began) * 1e3)
        return error.kind
    with device:
        device.run(baseline("RW", io_size=512, io_count=1, target_size=512))
    return "written"


def attempt_by_command(*words: str) -> Attempt:
    def attempt(target: Target, typed: str | None) -> str:
        options = () if typed is None else ("--destroy", typed)
        outcome = uflip(words[0], target.url, *words[1:], *target.options, *options, "--quiet")
        if "Traceback" in outcome.err:
            return f"traceback: {outcome.err[-300:]}"
        return "written" if outcome.code == 0 else KIND_OF_CODE.get(outcome.code, str(outcome.code))

    return attempt


def attempt_by_plan(target: Target, typed: str | None) -> str:
    """Run a plan for this very device, if one can be made."""
    Path("its.toml").unlink(missing_ok=True)
    planned = uflip("plan", target.url, "--only", "order", "--scale", "quick", "--state", "as-is",
                 *target.options, "--out", "its.toml")  # fmt: skip
    plan = "its.toml" if planned.code == 0 else "plan.toml"
    return attempt_by_command("run", "--plan", plan, "--out", "out")(target, typed)


COMMANDS: dict[str, Attempt] = {
    "run": attempt_by_command("run", "--only", "order", "--scale", "quick", "--out", "out"),
    "run as-is": attempt_by_command("run", "--only", "order", "--state", "as-is", "--out", "out"),
    "run --plan": attempt_by_plan,
    "prepare": attempt_by_command("prepare"),
    "pattern": attempt_by_command(
        "pattern", "--pattern", "RW", "--io-count", "5", "--io-size", "512"
    ),
    "oc": attempt_by_command("oc", "--scale", "quick"),
}


def try_all(target: Target, tally: Tally) -> None:
    tally.targets += 1
    before = fingerprint(target.watched)

    def record_attempt(attempt_name: str, typed: str | None, kind: str) -> None:
        tally.attempts += 1
        tally.kinds[kind] = tally.kinds.get(kind, 0) + 1
        allowed = (*target.kinds, "usage") if attempt_name == "oc" or typed == "" else target.kinds
        if kind not in allowed:
            tally.wrong.append(f"{target.name} by {attempt_name} with {typed!r}: {kind}")
        if fingerprint(target.watched) != before:
            tally.changed.append(f"{target.name} by {attempt_name} with {typed!r}")

    for typed in target.typed:
        record_attempt("Python", typed, attempt_by_python(target, typed, tally))
    for attempt_name, attempt in COMMANDS.items():
        if attempt_name == "oc" and target.typed[-1] is not None:
            record_attempt(attempt_name, None, uflip_oc(target))
            continue
        typed = target.typed[-1]
        record_attempt(attempt_name, typed, attempt(target, typed))


def uflip_oc(target: Target) -> str:
    outcome = uflip("oc", target.url, "--scale", "quick", "--quiet")
    return "written" if outcome.code == 0 else KIND_OF_CODE.get(outcome.code, str(outcome.code))


@contextmanager
def device_of(url: str, **options: Any) -> Iterator[Any]:
    with open_device(url, **options) as device:
        yield device


def check_free_targets_are_written(bench: Bench, tally: Tally) -> None:
    """Check that permitted targets are written: a guard must not refuse everything."""

    def expect_write(name: str, url: str, watched: Path, typed: str | None) -> None:
        before = fingerprint((watched,))
        with open_device(url, destroy=typed) as device:
            device.run(baseline("RW", io_size="4k", io_count=20, target_size="1MiB"))
        if fingerprint((watched,)) == before:
            tally.wrong.append(f"{name}: nothing was written")
        tally.written.append(name)

    backing = bench.file("free for all")
    device = bench.loop(backing)
    expect_write("a free device", device, backing, token(device))
    backing = bench.path("given up")
    signatures.write(backing, "gpt")
    device = bench.loop(backing)
    expect_write("a device with what it holds", device, backing, token(device))
    (_, file), (first, second) = partitioned(bench)
    bench.mount(first)
    expect_write("the partition beside a mounted one", second, file, token(second))
    shared = bench.file("two halves", size=4 * MIB)
    first, second = (
        bench.loop(shared, "-o", str(begin), "--sizelimit", str(2 * MIB)) for begin in (0, 2 * MIB)
    )
    expect_write("one half of a file beside the other", second, shared, token(second))
    ours = bench.uflip_file("ours")
    expect_write("one of ours", f"file:{ours}", ours, None)
    moved = ours.rename(bench.path("moved"))
    expect_write("one of ours, moved", f"file:{moved}", moved, None)
    theirs = bench.file("given")
    expect_write("a file that is given up", f"file:{theirs}", theirs, str(theirs))
    expect_write("the same file again", f"file:{theirs}", theirs, None)


def check_resumes(bench: Bench, tally: Tally) -> None:
    """Check that a benchmark is resumed on its own medium only."""
    backing = bench.file("resumed", size=64 * MIB)
    device = bench.loop(backing)
    name = token(device)
    out = bench.path("cut")
    process = start(
        "run", device, "--destroy", name, "--scale", "quick", "--only", "granularity", "--state",
        "sequential", "--out", out, "--pause", "20ms", "--quiet",
    )  # fmt: skip
    for _ in range(3000):
        if len(list((out / "runs").glob("0*.parquet"))) >= 2 or process.poll() is not None:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, err = process.communicate()
    if process.returncode != -signal.SIGKILL:
        tally.wrong.append(f"the benchmark to be resumed ended by itself: {err}")
        return

    def expect_refusal(
        case: str, typed: str | None, *watched: Path, kinds: tuple[str, ...] = ("refused",)
    ) -> None:
        before = fingerprint(watched)
        options = () if typed is None else ("--destroy", typed)
        outcome = uflip("run", "--resume", out, *options, "--quiet")
        tally.attempts += 1
        tally.resumed += 1
        kind = "written" if outcome.code == 0 else KIND_OF_CODE.get(outcome.code, str(outcome.code))
        if kind not in kinds:
            tally.wrong.append(f"resume, {case}: {kind}: {outcome.err[-300:]}")
        if fingerprint(watched) != before:
            tally.changed.append(f"resume, {case}")

    for typed in near_misses(name):
        expect_refusal(f"typed {typed!r}", typed, backing)
    claim = os.open(device, os.O_RDONLY | os.O_EXCL)
    expect_refusal("claimed", name, backing)
    os.close(claim)
    over = run("losetup", "-f", "--show", device)
    expect_refusal("a loop over it", name, backing)
    run("losetup", "-d", over)
    wait_until_free(over)
    run("blockdev", "--setro", device)
    expect_refusal("read-only", name, backing, kinds=("device",))
    run("blockdev", "--setrw", device)
    # The same name, size and all: another medium.
    run("losetup", "-d", device)
    wait_until_free(device)
    other = bench.file("another medium", size=64 * MIB)
    run("losetup", device, other)
    expect_refusal("another medium, the old token", name, backing, other)
    expect_refusal("another medium, its own token", token(device), backing, other)
    run("losetup", "-d", device)
    wait_until_free(device)
    # The right medium again, with a new diskseq: it is identified by its brand.
    run("losetup", device, backing)
    outcome = uflip("run", "--resume", out, "--destroy", token(device), "--quiet")
    if outcome.code != 0:
        tally.wrong.append(f"the same medium again: {outcome.err}")
    tally.written.append("a benchmark that was cut short, on the same medium attached again")


def main() -> None:
    folder = Path(sys.argv[1])
    tally = Tally()
    with ExitStack() as stack:
        os.chdir(folder)
        run("mount", "--make-rprivate", "/")
        Path("domain").write_text("kept")
        Path("/proc/sys/kernel/domainname").write_text("kept.example")
        uflip("plan", "null", "--only", "order", "--scale", "quick", "--out", "plan.toml")
        bench = Bench(folder, stack)
        kinds = (
            mounted_blocks, claimed_blocks, layered_blocks, blocks_with_a_wrong_token, files_in_use,
            foreign_files, modified_uflip_files, non_files,
        )  # fmt: skip
        for make in kinds:
            for target in make(bench):
                try_all(target, tally)
        check_free_targets_are_written(bench, tally)
        check_resumes(bench, tally)
    times = sorted(tally.refusal_ms)
    document = tally.__dict__ | {
        "refusal_ms": {"median": statistics.median(times), "worst": times[-1], "tries": len(times)}
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
