"""Power meters of the host, with sysfs trees and logs as the kernel and meters write them."""

import json
import time
from pathlib import Path

import pytest
from command_line import uflip as command

import uflip
from uflip.data.energy import PowerRecord, integrate_power, summarise_energy
from uflip.device import power
from uflip.device.power import (
    PowerSampler,
    counter_record,
    csv_record,
    nvme_power_states,
    power_record,
    power_sources,
    read_power_log,
)
from uflip.errors import DeviceError, UsageError
from uflip.spec import baseline

SECOND = 1_000_000_000
RANGE_UJ = 262_143_328_850


def write(path: Path, text: object) -> None:
    """Write a file of sysfs with the newline that the kernel adds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Return a tree as Linux 6.8 has it for a processor, a power supply and a voltage sensor."""
    powercap = tmp_path / "sys" / "class" / "powercap"
    for zone, name, energy in (
        ("intel-rapl:0", "package-0", 1_000_000),
        ("intel-rapl:0:0", "core", 400_000),
        ("intel-rapl:0:1", "dram", 200_000),
        ("intel-rapl:1", "psys", 5_000_000),
    ):
        write(powercap / zone / "name", name)
        write(powercap / zone / "energy_uj", energy)
        write(powercap / zone / "max_energy_range_uj", RANGE_UJ)
    hwmon = tmp_path / "sys" / "class" / "hwmon"
    write(hwmon / "hwmon0" / "name", "corsairpsu")
    write(hwmon / "hwmon0" / "power1_input", 42_000_000)
    write(hwmon / "hwmon1" / "name", "ina226")
    write(hwmon / "hwmon1" / "in1_input", 5_000)
    write(hwmon / "hwmon1" / "curr1_input", 300)
    write(hwmon / "hwmon2" / "name", "coretemp")
    write(hwmon / "hwmon2" / "temp1_input", 45_000)
    return tmp_path / "sys"


def test_all_meters_of_a_machine_are_listed(sysfs: Path) -> None:
    assert [each.name for each in power_sources(sysfs)] == [
        "rapl:package-0", "rapl:package-0/core", "rapl:package-0/dram", "rapl:psys",
        "hwmon:corsairpsu/power1", "hwmon:ina226/in1",
    ]  # fmt: skip
    assert power_sources(sysfs / "missing") == []


def test_power_sensors_are_in_watts(sysfs: Path) -> None:
    for source, watts in (("hwmon:corsairpsu/power1", 42.0), ("hwmon:ina226/in1", 1.5)):
        sampler = PowerSampler(source, sysfs, period_s=0.01)
        sampler.start()
        time.sleep(0.1)
        record = sampler.finish()
        assert record.joules == pytest.approx(watts * record.window_ns / 1e9)
        assert len(record.watts) >= 3
        assert set(record.watts) == {watts}
        assert list(record.times_ns) == sorted(record.times_ns)


def test_energy_of_a_package_is_the_difference_of_its_counter(sysfs: Path) -> None:
    sampler = PowerSampler("rapl", sysfs, period_s=60)
    sampler.start()
    write(sysfs / "class" / "powercap" / "intel-rapl:0" / "energy_uj", 3_500_000)
    record = sampler.finish()
    assert (record.joules, record.marks) == (2.5, ())


def test_unreadable_counter_is_marked(sysfs: Path) -> None:
    sampler = PowerSampler("rapl:psys", sysfs, period_s=60)
    sampler.start()
    write(sysfs / "class" / "powercap" / "intel-rapl:1" / "energy_uj", "")
    record = sampler.finish()
    assert record.joules is None
    assert record.marks == ("not_read", "too_few_samples")


def test_counter_that_wrapped_is_continued() -> None:
    readings = [(RANGE_UJ - 1_000_000,), (500_000,), (2_000_000,)]
    record = counter_record("rapl", [0, SECOND, 2 * SECOND], readings, (RANGE_UJ,), window_ns=1)
    assert record.joules == pytest.approx(3.0)
    assert record.watts == pytest.approx([1.5, 1.5])
    assert record.marks == ("wrapped",)


def test_counter_that_was_reset_has_no_energy() -> None:
    readings = [(5_000_000,), (4_000_000,), (6_000_000,)]
    record = counter_record("rapl", [0, SECOND, 2 * SECOND], readings, (RANGE_UJ,), window_ns=1)
    assert (record.joules, record.marks) == (None, ("went_back",))


def test_packages_add_up() -> None:
    readings = [(0, 10_000_000), (1_000_000, 12_000_000)]
    record = counter_record("rapl", [0, SECOND], readings, (RANGE_UJ, RANGE_UJ), window_ns=1)
    assert record.joules == 3.0


@pytest.mark.parametrize("source", ["rapl:package-7", "hwmon:ina226", "usb", ""])
def test_unknown_meter_is_an_error_that_lists_those_of_the_machine(
    sysfs: Path, source: str
) -> None:
    with pytest.raises(UsageError, match="no such power meter") as error:
        PowerSampler(source, sysfs)
    assert "hwmon:ina226/in1" in str(error.value)


def test_meter_that_needs_root_is_listed_with_the_reason(
    sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = power._read_number

    def refuse(path: Path) -> int:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(power, "_read_number", refuse)
    assert power_sources(sysfs)[0].problem == "reading it needs root"
    with pytest.raises(DeviceError, match="cannot be read"):
        PowerSampler("rapl", sysfs)


# Integration: a ramp has a closed form, and the bounds of the error contain it.


def test_ramp_is_integrated_exactly_within_its_samples() -> None:
    times = [i * SECOND for i in range(11)]
    joules, error = integrate_power(times, [float(i) for i in range(11)], 2 * SECOND, 8 * SECOND)
    assert joules == pytest.approx((8**2 - 2**2) / 2)
    assert error == pytest.approx(3.0)


def test_error_covers_the_uncovered_ends() -> None:
    joules, error = integrate_power([SECOND, 2 * SECOND], [3.0, 3.0], 0, 4 * SECOND)
    assert (joules, error) == (12.0, 9.0)
    assert power_record("m", [SECOND], [3.0], 4 * SECOND).marks == ("too_few_samples",)


def log(path: Path, rows: list[tuple[float, object]]) -> Path:
    """Write the log of a meter."""
    path.write_text("time,volts,watts\n" + "".join(f"{at},5.0,{watts}\n" for at, watts in rows))
    return path


def test_log_is_aligned_by_the_clock(tmp_path: Path) -> None:
    begin = 1_700_000_000
    rows: list[tuple[float, object]] = [
        (begin + i / 10, 1.0 if i < 50 else 3.0) for i in range(101)
    ]
    path = log(tmp_path / "meter.csv", rows)
    record = csv_record(path, begin * SECOND + 2 * SECOND, 5 * SECOND)
    # 2.9 s at 1 W, a step within 0.1 s, 2 s at 3 W.
    assert record.joules == pytest.approx(2.9 + 0.2 + 6.0)
    assert record.error_joules == pytest.approx(0.1)
    assert (record.marks, record.times_ns[0], record.times_ns[-1]) == ((), 0, 5 * SECOND)
    later = csv_record(path, begin * SECOND + 8 * SECOND, 5 * SECOND)
    assert later.marks == ("not_covered",)
    assert later.error_joules == pytest.approx(9.0)
    missed = csv_record(path, begin * SECOND + 60 * SECOND, 5 * SECOND)
    assert (missed.joules, missed.marks) == (None, ("too_few_samples",))


def test_line_that_the_meter_is_writing_is_ignored(tmp_path: Path) -> None:
    path = log(tmp_path / "meter.csv", [(2, 1.0), (1, 2.0)])
    with path.open("a") as file:
        file.write("3,5")
    assert read_power_log(path) == ([SECOND, 2 * SECOND], [2.0, 1.0])


@pytest.mark.parametrize(
    "text", ["", "seconds,watts\n1,2\n", "time,watts\n1,much\n", "time,watts\n1,nan\n", "\0\xff"]
)
def test_log_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "meter.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(UsageError, match="log of the power meter"):
        read_power_log(path)


# Power states of a drive: `nvme id-ctrl` of a Samsung 970 EVO prints these for the same bytes.


def test_power_states_are_those_that_the_drive_declares() -> None:
    controller = bytearray(4096)
    controller[263] = 4
    for number, (watts, flags, entry, leave) in enumerate(
        [(620, 0, 0, 0), (430, 0, 0, 0), (210, 0, 0, 0), (400, 3, 210, 1200), (50, 3, 2000, 8000)]
    ):
        start = 2048 + 32 * number
        controller[start : start + 2] = watts.to_bytes(2, "little")
        controller[start + 3] = flags
        controller[start + 4 : start + 8] = entry.to_bytes(4, "little")
        controller[start + 8 : start + 12] = leave.to_bytes(4, "little")
    controller[2048 + 16 : 2048 + 19] = bytes([44, 1, 1 << 6])
    states = nvme_power_states(bytes(controller))
    assert [each.max_watts for each in states] == pytest.approx([6.2, 4.3, 2.1, 0.04, 0.005])
    assert [each.operational for each in states] == [True, True, True, False, False]
    assert states[0].idle_watts == pytest.approx(0.03)
    assert (states[0].active_watts, states[4].exit_us) == (None, 8000)
    assert nvme_power_states(bytes(512)) == []


# Runs: the samples are stored with them.


@pytest.fixture
def meter(tmp_path: Path) -> Path:
    """Return the log of a meter that always measures 2 W, before, during and after the test."""
    begin = time.time() - 10
    return log(tmp_path / "meter.csv", [(begin + i / 100, 2.0) for i in range(12_000)])


def test_pattern_measures_energy(tmp_path: Path, meter: Path) -> None:
    process = command(
        "pattern", f"file:{tmp_path / 'target'}", "--size", "1MiB", "--buffered", "--pattern", "RW",
        "--io-size", "4k", "--io-count", "200", "--power", f"csv:{meter}", "--json",
    )  # fmt: skip
    document = json.loads(process.out)
    energy = document["energy"]
    assert energy["source"] == f"csv:{meter}"
    if energy["joules"] is None:  # the run was shorter than the time between two samples
        assert energy["marks"] == ["too_few_samples"]
    else:
        assert energy["mean_watts"] == pytest.approx(2.0)
        assert energy["uj_per_io"] == pytest.approx(energy["joules"] / 200 * 1e6)


def test_run_stores_the_samples_of_each_run(tmp_path: Path, meter: Path) -> None:
    result = uflip.run(
        f"file:{tmp_path / 'target'}", tmp_path / "out", size="8MiB", buffered=True,
        scale="quick", only="granularity", state="as-is", method="paper", power=f"csv:{meter}",
    )  # fmt: skip
    summary = result.summary
    runs = [run for runs in summary["micro_benchmarks"].values() for run in runs]
    measured = [run["energy"] for run in runs if "energy" in run]
    assert measured
    assert {each["source"] for each in measured} == {f"csv:{meter}"}
    for each in measured:
        assert each["mean_watts"] is None or each["mean_watts"] == pytest.approx(2.0)


def test_simulated_device_has_no_meter() -> None:
    with pytest.raises(UsageError, match="--power applies only to"):
        uflip.open_device("sim:demo", power="rapl")


def test_energy_of_a_run_is_its_share_of_the_window() -> None:
    record = PowerRecord("rapl", 4 * SECOND, 8.0, 0.4)
    energy = summarise_energy(None, [record, record], 10, 100, 2 * SECOND)
    assert energy is not None
    assert (energy["joules"], energy["error_joules"]) == (4.0, 0.2)
    assert (energy["mean_watts"], energy["marks"]) == (2.0, ["mostly_outside"])


# A simulated device computes its energy.

ENERGIES = "&".join(
    ("read_nj=1200", "program_nj=9900", "erase_nj=74000", "transfer_pj_per_byte=750",
     "command_nj=300", "memory_mw=50", "idle_mw=400")
)  # fmt: skip
DEVICE = f"sim:demo?blocks_per_die=64&{ENERGIES}"


def test_energy_of_reads_has_a_closed_form() -> None:
    """N reads of a page: N × (read + transfer + command), and power × time."""
    reads = 500
    with uflip.open_device(DEVICE) as device:
        trace = device.run(baseline("RR", io_size=4096, io_count=reads))
    counters = json.loads(trace.counters_json() or "{}")
    page_bytes = 4096 + 224
    assert counters["energy_cell_read_nj"] == reads * 1200
    assert counters["energy_transfer_nj"] == reads * page_bytes * 750 // 1000
    assert counters["energy_controller_nj"] == reads * 300
    elapsed_ns = trace.elapsed_ns()
    assert counters["energy_idle_nj"] == elapsed_ns * 400 // 1000
    energy = summarise_energy(counters, [], reads, reads * 4096, elapsed_ns)
    assert energy is not None
    parts = reads * (1200 + 300 + page_bytes * 0.75) + elapsed_ns * 0.45
    assert energy["joules"] == pytest.approx(parts / 1e9, rel=1e-6)
    assert energy["mean_watts"] == pytest.approx(energy["joules"] / elapsed_ns * 1e9)


def test_energy_is_printed_by_cause() -> None:
    process = command("pattern", DEVICE, "--pattern", "RW", "--io-count", "400")
    assert "energy" in process.out
    assert "energy spent on" in process.out
    assert "idle power" in process.out
    assert "energy_" not in process.out


def test_energy_is_in_show_report_and_csv(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    result = uflip.run(DEVICE, folder, scale="quick", only="baseline")
    assert result.summary["baselines"]
    for run in result.summary["baselines"]:
        assert run["energy"]["joules"] == pytest.approx(
            sum(run["energy"]["by_cause_joules"].values())
        )
    assert "µJ per I/O" in command("show", str(folder)).out
    command("export", str(folder), "--format", "csv", "--out", str(tmp_path / "csv"))
    head = (tmp_path / "csv" / "summary.csv").read_text().splitlines()[0].split(",")
    assert {"joules", "uj_per_io", "counter_energy_erase_nj"} <= set(head)
    command("report", str(folder), "-o", str(tmp_path / "report.html"))
    assert "Energy by cause" in (tmp_path / "report.html").read_text()
