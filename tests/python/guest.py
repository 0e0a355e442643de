"""A virtual machine for tests: a Debian kernel, NVMe drives (zoned, plain, with placement handles),
and an ATA drive.

QEMU emulates it. Its root is that of this machine, read-only over 9p, so that the guest has the
environment of the tests, and tests the installed package.

Needs qemu-system-x86, busybox-static, kmod and cpio, and a kernel: the package that Debian's
linux-image-amd64 depends on is downloaded into `build/guest/`. If something is missing, a test is
skipped with the reason.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE_DIR = ROOT / "build" / "guest"
PROGRAMS = ("qemu-system-x86_64", "busybox", "depmod", "modprobe", "cpio", "dpkg-deb", "apt-get")
MODULES = ("nvme", "ahci", "sd_mod", "virtio_pci", "9pnet_virtio", "9p")
# A poll queue raises no interrupt. The block device of a multipath drive, which QEMU 10 emulates,
# reports no limits of zones.
PARAMETERS = {"nvme.ko": "poll_queues=1", "nvme-core.ko": "multipath=0"}
# A processor that NumPy supports; with `max`, some kernels fail under emulation.
PROCESSOR = "Nehalem"
# On a busy machine the kernel's check of the guest's timer may fail.
PATIENT = "no_timer_check"
ZONE_MIB, CAPACITY_MIB, ZONES = 16, 12, 64
OPEN, ACTIVE = 8, 12
PLAIN_MIB, ATA_MIB = 256, 64
PLACED_MIB, HANDLES = 128, 4
BOOTS_S = 900
INIT = """#!/bin/sh
export PATH=/bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
while read module parameters; do insmod "/mod/$module" $parameters 2>/dev/null; done < /mod/order
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=1048576 host /host
mount -t proc p /host/proc; mount -t sysfs s /host/sys; mount -t devtmpfs d /host/dev
for memory in /host/var/tmp /host/run /host/dev/shm; do mount -t tmpfs t $memory; done
chroot /host /bin/sh -c '{command}'
echo "GUEST ENDED $?"
poweroff -f
"""


def in_guest(command: str, folder: Path) -> tuple[int, str]:
    """Run a shell command in the guest; return its exit code, and what it printed.

    The drives are new: nvme0 is zoned, nvme1 and sda are not; nvme2 has placement handles, if QEMU
    supports them (`places_data`). `/var/tmp` is writable.
    """
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    kernel, modules = _kernel()
    initramfs = _initramfs(folder, modules, command)
    drive, plain, ata, placed = (folder / name for name in ("drive", "plain", "ata", "placed"))
    sizes = (ZONES * ZONE_MIB, PLAIN_MIB, ATA_MIB, PLACED_MIB)
    for path, size_mib in zip((drive, plain, ata, placed), sizes, strict=True):
        with path.open("wb") as file:
            file.truncate(size_mib << 20)
    process = subprocess.run(
        [
            "qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", PROCESSOR, "-m", "2048",
            "-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio",
            "-kernel", kernel, "-initrd", initramfs,
            "-append", f"console=ttyS0 quiet panic=-1 {PATIENT} rdinit=/init",
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,"
            "multidevs=remap",
            "-drive", f"file={drive},if=none,id=drive,format=raw",
            "-device", "nvme,id=nvme0,serial=guest",
            "-device", "nvme-ns,drive=drive,bus=nvme0,nsid=1,zoned=on,logical_block_size=4096,"
            f"physical_block_size=4096,zoned.zone_size={ZONE_MIB}M,"
            f"zoned.zone_capacity={CAPACITY_MIB}M,zoned.max_open={OPEN},zoned.max_active={ACTIVE}",
            "-drive", f"file={plain},if=none,id=plain,format=raw,discard=unmap",
            "-device", "nvme,id=nvme1,serial=plain,drive=plain",
            "-drive", f"file={ata},if=none,id=ata,format=raw",
            "-device", "ide-hd,drive=ata,bus=ide.0",
            *(_placing_drive(placed) if places_data() else ()),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        timeout=BOOTS_S, check=False,
    )  # fmt: skip
    printed, _, ending = process.stdout.partition("GUEST ENDED ")
    assert ending, f"the guest did not end in order:\n{printed[-4000:]}\n{process.stderr}"
    return int(ending.split()[0]), printed


def places_data() -> bool:
    """Return whether QEMU emulates Flexible Data Placement, which it does from version 8.0 on."""
    return "fdp.nruh" in _output_of("qemu-system-x86_64", "-device", "nvme-subsys,help")


def _placing_drive(file: Path) -> tuple[str, ...]:
    handles = ";".join(map(str, range(HANDLES)))
    return (
        "-drive", f"file={file},if=none,id=placed,format=raw",
        "-device", f"nvme-subsys,id=placing,fdp=on,fdp.nruh={HANDLES},fdp.nrg=1,fdp.runs=8M",
        "-device", "nvme,id=nvme2,serial=placed,subsys=placing",
        "-device", f"nvme-ns,drive=placed,bus=nvme2,nsid=1,fdp.ruhs={handles}",
    )  # fmt: skip


def _kernel() -> tuple[Path, Path]:
    """Return a kernel and the folder that has its modules in `lib/modules`."""
    unpacked = CACHE_DIR / "kernel"
    if not unpacked.exists():
        CACHE_DIR.mkdir(parents=True, exist_ok=True)
        dependencies = _output_of("apt-cache", "depends", "linux-image-amd64")
        packages = [
            line.split()[1] for line in dependencies.splitlines() if "Depends: linux-image" in line
        ]
        if not packages or not _succeeds("apt-get", "-qq", "download", packages[0]):
            pytest.skip("apt has no kernel: apt-get update, and linux-image-amd64 of Debian")
        (package,) = CACHE_DIR.glob(f"{packages[0]}_*.deb")
        partial = CACHE_DIR / "unpacking"
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["dpkg-deb", "-x", package, partial], check=True)
        partial.rename(unpacked)
    (kernel,) = (unpacked / "boot").glob("vmlinuz-*")
    version = kernel.name.removeprefix("vmlinuz-")
    if not (unpacked / "lib" / "modules" / version / "modules.dep").exists():
        subprocess.run(["depmod", "-b", unpacked, version], check=True)
    return kernel, unpacked


def _initramfs(folder: Path, modules: Path, command: str) -> Path:
    """Make the initramfs: a shell, the required modules, and the command to run."""
    root = folder / "initramfs"
    for name in ("bin", "proc", "sys", "dev", "host", "mod"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin" / "busybox")
    for name in ("sh", "mount", "insmod", "poweroff", "chroot"):
        (root / "bin" / name).symlink_to("busybox")
    (version,) = (path.name for path in (modules / "lib" / "modules").iterdir())
    needed: list[str] = []
    for module in MODULES:
        dependencies = _output_of(
            "modprobe", "-d", str(modules), "-S", version, "--show-depends", module
        )
        needed += [
            line.split()[1] for line in dependencies.splitlines() if line.startswith("insmod ")
        ]
    in_order = list(dict.fromkeys(needed))
    for path in in_order:
        shutil.copy(path, root / "mod")
    names = "".join(_line(Path(path).name) for path in in_order)
    (root / "mod" / "order").write_text(names, encoding="utf-8")
    init = root / "init"
    init.write_text(INIT.format(command=command), encoding="utf-8")
    init.chmod(0o755)
    archive = folder / "initramfs.cpio"
    with archive.open("wb") as file:
        subprocess.run(
            "find . | cpio -o -H newc --quiet", shell=True, cwd=root, stdout=file, check=True
        )
    return archive


def _line(module: str) -> str:
    """Name a module, packed or not, and its parameters."""
    name = module.partition(".ko")[0] + ".ko"
    return f"{module} {PARAMETERS.get(name, '')}\n"


def _output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, cwd=CACHE_DIR, capture_output=True, check=False).returncode == 0


def pytest_command(file: Path) -> str:
    """Return the command that runs a file of tests in the guest, as this interpreter would."""
    return (
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/var/tmp TMPDIR=/var/tmp "
        f"PYTHONDONTWRITEBYTECODE=1; cd /var/tmp; {sys.executable} -m pytest -q -rA --color=no "
        f"-p no:cacheprovider -p no:xdist -c /dev/null --rootdir={file.parent} {file} 2>&1"
    )
