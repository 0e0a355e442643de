"""Does each accepted simulated device work or report wear-out, and can it be stopped?"""

import json
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from uflip import _native
from uflip.data.spec import text_of
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import DeviceError, UsageError
from uflip.profiles import read_profile
from uflip.spec import baseline

PROFILES = sorted((Path(__file__).parents[1] / "hostile" / "profiles").glob("*.toml"))
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the device cache, so that every device is created."""
    monkeypatch.setenv("UFLIP_CACHE_SIZE", "0")


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_hostile_profile_is_refused_or_works(path: Path) -> None:
    # Any other error fails the test.
    with suppress(UsageError, DeviceError):
        device = open_device(f"sim:{path}")
        for pattern in ("RW", "SR", "SW", "RR"):
            for depth in (1, 8, 32):
                with suppress(DeviceError):
                    trace = device.run(baseline(pattern, io_count=20, queue_depth=depth))
                    assert len(trace) == 20


def test_device_is_usable_after_a_failed_run() -> None:
    device = open_device(
        "sim:worn-mlc?page_spread=2.0&cycles_before=100&fail_uncorrectable=true&random_overwrites=0.5"
    )
    reads = baseline("RR", io_count=2000, queue_depth=32)
    for _ in range(3):
        with pytest.raises(DeviceError, match="cannot be read"):
            device.run(reads)
    assert len(device.run(baseline("SW", io_count=50, queue_depth=32))) == 50


def test_device_is_usable_after_a_cancelled_run() -> None:
    name, text, source = read_profile("demo")
    native = _native.Device.sim(name, text, source, json.dumps({"state": "empty"})).result()
    spec = baseline("RW", io_count=2_000_000, queue_depth=32)
    handle = native.start(text_of(spec))
    while handle.progress()[0] == 0:
        time.sleep(0.001)
    handle.cancel()
    assert handle.wait(PATIENCE_S)
    with pytest.raises(Exception, match="interrupted"):
        handle.result()
    device = Device(native, "sim:demo")
    assert len(device.run(baseline("RW", io_count=200, queue_depth=32))) == 200


def test_device_creation_can_be_cancelled() -> None:
    # A hundred random overwrites of the device: minutes of work.
    overrides = {"state": "random", "random_overwrites": 100.0, "blocks_per_die": 8000}
    name, text, source = read_profile("demo")
    handle = _native.Device.sim(name, text, source, json.dumps(overrides))
    assert not handle.wait(0.2), "the creation takes long"
    stopped = threading.Thread(target=handle.cancel)
    stopped.start()
    stopped.join()
    assert handle.wait(PATIENCE_S)
    with pytest.raises(Exception, match="interrupted"):
        handle.result()


def test_clock_overflow_is_a_device_error() -> None:
    device = open_device("sim:demo?state=empty")
    for _ in range(2):
        device.idle(200 * 365 * 24 * 3600 * 10**9)
    with pytest.raises(DeviceError, match="clock"):
        device.run(baseline("RR", io_count=1))


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ("relocate_at_least=64", "no page would be freed"),
        ("relocate_exactly=64", "no page would be freed"),
        ("buses=4294967295", "carry nothing"),
        ("read_ns=9223372036854775807", "years"),
        ("channel_bytes_per_s=1&page_bytes=1MiB&spare_factor=0.5", "years"),
        ("random_overwrites=nan", "does not fit"),
        ("random_overwrites=-1", "0 to 100"),
        ("reserved_blocks=4294967295", "spare factor"),
        ("idle_free_blocks=1", "more than"),
        ("page_bytes=16MiB&blocks_per_die=2000000", "8 PiB"),
        ("channels=1000000&dies_per_channel=100", "at most 4294967294"),
    ],
)
def test_unworkable_override_is_refused_with_a_reason(overrides: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        open_device(f"sim:demo?{overrides}")


def test_profile_with_nan_is_refused(tmp_path: Path) -> None:
    text = read_profile("demo")[1]
    lines = [
        "random_overwrites = nan" if line.startswith("random_overwrites") else line
        for line in text.splitlines()
    ]
    path = tmp_path / "none.toml"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError, match="finite numbers"):
        open_device(f"sim:{path}")
