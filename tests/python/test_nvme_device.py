"""Is an NVMe namespace named, checked and resolved like a block device, with more commands?

The commands themselves are tested in `crates/host/src/nvme/`, and on drives of QEMU in
`tests/guest/nvme_commands.py`.
"""

import pytest
import stored
from command_line import uflip

from uflip.data.device import DeviceInfo, NvmeNamespace, ZoneLimits
from uflip.device.guard import check_options
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.device.url import parse_url
from uflip.errors import UflipError, UsageError
from uflip.spec import basic

ZONES = ZoneLimits(zone_bytes=16 << 20, zone_count=64, max_open_zones=8, max_active_zones=12)
NAMESPACE = NvmeNamespace(nsid=1, command_bytes_max=512 << 10, placement_handles=4)


def described(kind: str, **details: object) -> DeviceInfo:
    return stored.device_info(kind, capacity_bytes=1 << 30, sector_bytes=4096, details=details)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("nvme:/dev/ng0n1", "nvme", "/dev/nvme0n1"),
        ("/dev/ng12n3", "nvme", "/dev/nvme12n3"),
        ("nvme:/dev/nvme0n1", "nvme", "/dev/nvme0n1"),
        ("nvme:/dev/disk/by-id/nvme-X", "nvme", "/dev/disk/by-id/nvme-X"),
        ("/dev/nvme0n1", "block", "/dev/nvme0n1"),
        ("/dev/ng0n1p1", "block", "/dev/ng0n1p1"),
    ],
)
def test_names_of_a_namespace_lead_to_its_block_device(text: str, kind: str, name: str) -> None:
    target = parse_url(text)
    assert (target.kind, target.name) == (kind, name)
    assert parse_url(target.text) == target


@pytest.mark.parametrize("text", ["ng0n1", "nvme:ng0n1", "nvme0n1"])
def test_incomplete_name_has_a_suggestion(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_url(text)
    assert f"nvme:/dev/{text.removeprefix('nvme:')}" in refused.value.action


def test_options_are_those_of_a_block_device_without_a_page_cache() -> None:
    target = parse_url("nvme:/dev/ng0n1")
    assert check_options(target, data="zeros", destroy="TOKEN", completion="polled") is None
    with pytest.raises(UsageError, match="--buffered"):
        check_options(target, buffered=True)
    with pytest.raises(UsageError, match="--size"):
        check_options(target, size="1GiB")


@pytest.mark.parametrize("name", ["/dev/ng987n6", "/dev/null", "/dev/nowhere/at/all"])
def test_missing_namespace_is_an_error_with_an_action(name: str) -> None:
    with pytest.raises(UflipError) as refused:
        open_device(f"nvme:{name}", destroy="X:Y:1")
    assert refused.value.action
    outcome = uflip("info", f"nvme:{name}")
    assert outcome.code not in (0, 1)


def test_appends_need_a_namespace_or_a_simulated_device() -> None:
    append = basic("append", "sequential", io_size=4096, io_count=4, queue_depth=4)
    assert resolve(append, described("nvme", zones=ZONES)).totals.total_ios == 4
    with pytest.raises(UsageError, match="zone append") as refused:
        resolve(append, described("block", zones=ZONES))
    assert "nvme:/dev/NAME" in refused.value.action
    with pytest.raises(UsageError, match="no zones"):
        resolve(append, described("nvme"))


def test_placement_handles_are_write_streams() -> None:
    info = described("nvme", namespace=NAMESPACE)
    assert info.write_streams == 4
    assert resolve(basic("write", "random", io_count=8, write_stream=3), info)
    with pytest.raises(UsageError, match="no such write stream") as refused:
        resolve(basic("write", "random", io_count=8, write_stream=4), info)
    assert refused.value.allowed == "0 to 3"
    assert described("block").write_streams == 1


def test_deallocations_enter_the_queue() -> None:
    trim = basic("trim", "sequential", io_size=4096, io_count=4, queue_depth=4)
    assert resolve(trim, described("nvme")).totals.total_ios == 4
    with pytest.raises(UsageError, match="Trims on a real device"):
        resolve(trim, described("block"))
