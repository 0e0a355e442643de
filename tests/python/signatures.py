"""Minimal media of many kinds of content, as libblkid recognizes them.

Offsets and numbers are those of the formats' own documents; names are those of libblkid.
"""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

SIZE = 4 << 20


def at(*parts: tuple[int, bytes]) -> bytes:
    """Return a medium of zeros with these parts at their offsets."""
    medium = bytearray(SIZE)
    for offset, content in parts:
        medium[offset : offset + len(content)] = content
    return bytes(medium)


def le16(value: int) -> bytes:
    return struct.pack("<H", value)


def le32(value: int) -> bytes:
    return struct.pack("<I", value)


def le64(value: int) -> bytes:
    return struct.pack("<Q", value)


def be16(value: int) -> bytes:
    return struct.pack(">H", value)


def be32(value: int) -> bytes:
    return struct.pack(">I", value)


def ext(compatible: int, incompatible: int) -> bytes:
    """The superblock of ext2, ext3 or ext4 is at 1024; features tell them apart."""
    return at(
        (1080, le16(0xEF53)), (1024 + 0x5C, le32(compatible)), (1024 + 0x60, le32(incompatible))
    )


def gpt() -> bytes:
    """A GUID partition table with one entry, both checksums right, behind a protective MBR."""
    entry = bytes(range(16)) + bytes(range(16, 32)) + le64(2048) + le64(4095) + le64(0) + bytes(72)
    entries = entry + bytes(128 * 128 - len(entry))
    last = SIZE // 512 - 1

    def header(checksum: int) -> bytes:
        return (
            b"EFI PART" + le32(0x10000) + le32(92) + le32(checksum) + le32(0) + le64(1)
            + le64(last) + le64(34) + le64(last - 33) + bytes(range(16)) + le64(2) + le32(128)
            + le32(128) + le32(zlib.crc32(entries))
        )  # fmt: skip

    protective = b"\0\0\x02\0\xee\xff\xff\xff" + le32(1) + le32(last)
    return at(
        (446, protective), (510, b"\x55\xaa"), (512, header(zlib.crc32(header(0)))), (1024, entries)
    )


def dos() -> bytes:
    """A partition table of an MBR with one Linux partition."""
    return at(
        (440, le32(7)), (446, b"\0\0\0\0\x83\0\0\0" + le32(2048) + le32(4096)), (510, b"\x55\xaa")
    )


def vfat() -> bytes:
    """A FAT16 of 4 MiB."""
    head = b"\xeb\x3c\x90mkfs.fat" + le16(512) + b"\x04" + le16(4) + b"\x02" + le16(512)
    head += le16(SIZE // 512) + b"\xf8" + le16(8) + le16(32) + le16(2) + le32(0) + le32(0)
    head += b"\x80\0\x29" + le32(0x12345678) + b"NO NAME    " + b"FAT16   "
    return at((0, head), (510, b"\x55\xaa"), (2048, b"\xf8\xff\xff\xff"))


def ntfs() -> bytes:
    """A boot sector, and the first record of the master file table at its offset."""
    head = b"\xeb\x52\x90NTFS    " + le16(512) + b"\x08" + bytes(7) + b"\xf8" + bytes(2)
    head += bytes(12) + b"\x80\0\x80\0" + le64(SIZE // 512 - 1) + le64(4) + le64(2)
    head += b"\xf6\0\0\0\x01\0\0\0" + le64(0x1122334455667788)
    record = b"FILE" + bytes(16) + le16(56) + le16(1) + le32(416) + le32(1024)
    return at((0, head), (510, b"\x55\xaa"), (16384, record), (16384 + 3 * 1024, record))


def swap() -> bytes:
    return at((1024, le32(1) + le32(SIZE // 4096 - 1)), (4086, b"SWAPSPACE2"))


def lvm() -> bytes:
    """A label of a physical volume in the second sector."""
    return at((512, b"LABELONE" + le64(1) + le32(0) + le32(32) + b"LVM2 001" + b"x" * 32))


def raid() -> bytes:
    """A superblock of version 1.2, 4 KiB from the beginning."""
    head = le32(0xA92B4EFC) + le32(1) + bytes(8) + bytes(range(16)) + b"host:0".ljust(32, b"\0")
    return at((4096, head), (4096 + 128, le64(2048) + le64(4096) + le64(8)))


def zfs() -> bytes:
    """The first label: the name of the pool in its list, and more uberblocks than needed."""
    uberblock = le64(0x00BAB10C) + le64(5000) + le64(1)
    name = be32(4) + b"name" + be32(9) + be32(1) + be32(4) + b"tank"
    pair = be32(8 + len(name)) + be32(0) + name
    blocks = ((131072 + 1024 * number, uberblock) for number in range(16))
    return at((16384, b"\x01\x01\0\0" + be32(0) + be32(1) + pair), *blocks)


def btrfs() -> bytes:
    head = bytes(32) + bytes(range(16)) + le64(65536) + le64(1) + b"_BHRfS_M"
    return at((65536, head), (65536 + 128, le64(1)), (65536 + 144, le32(4096) + le32(16384)))


def jfs() -> bytes:
    head = b"JFS1" + le32(1) + le64(100) + le32(4096) + le16(12) + le16(3) + le32(512) + le16(9)
    return at((32768, head))


def isw() -> bytes:
    """Intel's RAID of the mainboard: a text in the last sector but one."""
    return at((SIZE - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00"))


KINDS: dict[str, Callable[[], bytes]] = {
    "ext2": lambda: ext(0, 0),
    "ext3": lambda: ext(4, 0),
    "ext4": lambda: ext(4, 0x40),
    "vfat": vfat,
    "ntfs": ntfs,
    "btrfs": btrfs,
    "f2fs": lambda: at(
        (1024, le32(0xF2F52010) + le16(1) + le16(14) + le32(9) + le32(3) + le32(12))
    ),
    "jfs": jfs,
    "squashfs": lambda: at((0, b"hsqs"), (28, le16(4))),
    "erofs": lambda: at((1024, le32(0xE0F5E1E2)), (1036, b"\x0c")),
    "iso9660": lambda: at((32768, b"\x01CD001\x01")),
    "hfsplus": lambda: at((1024, b"H+" + be16(4)), (1024 + 40, be32(4096) + be32(1024))),
    "gfs2": lambda: at((65536, be32(0x01161970) + bytes(20) + be32(1801) + be32(1900))),
    "ocfs2": lambda: at((4096, b"OCFSV2"), (4096 + 192, le16(0) + le16(90))),
    "romfs": lambda: at((0, b"-rom1fs-")),
    "vxfs": lambda: at((1024, le32(0xA501FCF5))),
    "swap": swap,
    "crypto_LUKS": lambda: at((0, b"LUKS\xba\xbe" + be16(1))),
    "LVM2_member": lvm,
    "linux_raid_member": raid,
    "isw_raid_member": isw,
    "zfs_member": zfs,
    "VMFS_volume_member": lambda: at((1 << 20, le32(0xC001D00D))),
    "gpt": gpt,
    "dos": dos,
}
"""A medium for each kind, by the name that libblkid gives it."""

LONG = {"zfs_member", "jfs", "gfs2", "ocfs2"}
"""Kinds that are not looked for on a small medium: these continue with zeros up to `LONG_SIZE`."""
LONG_SIZE = 64 << 20


def write(path: Path, kind: str) -> None:
    """Make a file with content of a kind."""
    path.write_bytes(KINDS[kind]())
    if kind in LONG:
        with path.open("r+b") as file:
            file.truncate(LONG_SIZE)
