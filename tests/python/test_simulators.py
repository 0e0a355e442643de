"""Profiles from the configurations of other simulators, against what these simulate."""

import importlib.util
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from command_line import uflip
from foreign_texts import CONFIGURATIONS, FEMU, MQSIM, NVMEVIRT, NVMEVIRT_ALONE, SIMPLESSD

from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.profiles.simulators import import_profile
from uflip.spec import baseline

BENCHES = Path(__file__).resolve().parents[2] / "benches"


def constants(text: str, tmp_path: Path, *options: Any) -> dict[str, Any]:
    path = tmp_path / "configuration"
    path.write_text(text)
    return {key: value for key, (value, _) in import_profile(path, *options).constants.items()}


def mean_read_ns(text: str, tmp_path: Path, io_size: int = 4096) -> float:
    """Return the mean response time of random reads on the imported device."""
    path, profile = tmp_path / "configuration", tmp_path / "imported.toml"
    path.write_text(text)
    profile.write_text(import_profile(path).text("a"))
    with open_device(f"sim:{profile}?state=sequential") as device:
        trace = device.run(baseline("RR", io_count=2000, io_size=io_size))
    return float(np.asarray(trace.column("response_time_ns")).mean())


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_profiles_are_valid_and_never_overwrite(name: str, tmp_path: Path) -> None:
    configuration, profile = tmp_path / name, tmp_path / "mine.toml"
    configuration.write_text(CONFIGURATIONS[name])
    outcome = uflip("profile", "import", configuration, profile)
    assert outcome.code == 0, outcome.err
    assert f"{profile}: no fault" in outcome.out
    assert uflip("profile", "check", profile).code == 0
    assert "exists" in uflip("profile", "import", configuration, profile).err
    again = uflip("profile", "import", configuration, profile, "--force")
    assert again.code == 0, again.err


@pytest.fixture(scope="module")
def mqsim() -> ModuleType:
    """Return the comparison with MQSim, whose translation was measured."""
    sys.path.insert(0, str(BENCHES))
    spec = importlib.util.spec_from_file_location("mqsim_bench", BENCHES / "mqsim.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path.remove(str(BENCHES))
    return module


def test_mqsim_is_translated_as_the_measured_comparison(mqsim: ModuleType, tmp_path: Path) -> None:
    program = sys.modules["mqsim_program"]
    for setup in mqsim.SETUPS:
        text = ET.tostring(program.device_xml(setup), encoding="unicode")
        ours = constants(text, tmp_path)
        expected = {key: value for key, (value,) in parse_qs(mqsim.url_of(setup)).items()}
        expected = {key.rpartition("?")[2]: value for key, value in expected.items()}
        compared = ours.keys() & expected.keys()
        assert len(compared) >= 20
        for key in compared - {"spare_factor", "state"}:
            assert str(ours[key]).lower() == expected[key].lower(), (setup.name, key)
        assert ours["spare_factor"] == pytest.approx(float(expected["spare_factor"]), abs=1e-9)
        assert not expected.keys() - ours.keys() - {
            "spare_bytes", "idle_free_blocks", "state", "random_overwrites", "write_cache_bytes"
        }  # fmt: skip


def test_imported_mqsim_device_reads_as_mqsim_does(mqsim: ModuleType, tmp_path: Path) -> None:
    """102 µs in benches/mqsim.json, in whole microseconds, rounded down."""
    setup = next(each for each in mqsim.SETUPS if each.name == "random reads, 4 × 2 dies")
    text = ET.tostring(sys.modules["mqsim_program"].device_xml(setup), encoding="unicode")
    assert 102_000 <= mean_read_ns(text, tmp_path, setup.page_bytes) < 103_000


def test_mqsim_s_choices_become_those_of_a_profile(tmp_path: Path) -> None:
    found = constants(MQSIM, tmp_path)
    assert (found["gc"], found["bits_per_cell"]) == ("d_choices:7", 2)
    assert (found["read_ns"], found["read_high_ns"]) == (40_290, 50_290)
    assert (found["program_ns"], found["program_high_ns"]) == (400_361, 900_361)
    assert (found["erase_suspend_ns"], "program_suspend_ns" in found) == (70_000, False)
    assert found["reserved_blocks"] == int(0.05 * 128) - 1
    assert found["write_cache_bytes" if "write_cache_bytes" in found else "channels"] == 2
    path = tmp_path / "configuration"
    assert "CMT_Capacity" in import_profile(path).unused


def test_femu_reads_in_the_time_of_its_page(tmp_path: Path) -> None:
    found = constants(FEMU, tmp_path)
    # 192 of 256 MiB: 2 x 2 dies of 64 blocks of 256 pages of 4 KiB.
    assert (found["channels"], found["dies_per_channel"], found["blocks_per_die"]) == (2, 2, 64)
    assert found["spare_factor"] == pytest.approx(0.25, abs=0.003)
    assert (found["read_ns"], found["program_ns"], found["erase_ns"]) == (
        30_000,
        200_000,
        2 * 10**6,
    )
    assert mean_read_ns(FEMU, tmp_path) == pytest.approx(30_000, rel=0.001)
    line = "qemu -device virtio-blk -device femu,devsz_mb=1,id=n,femu_mode=1,pg_rd_lat=7"
    assert constants(line, tmp_path)["read_ns"] == 7
    with pytest.raises(UsageError, match="femu_mode = 3"):
        constants(FEMU.replace("femu_mode=1", "femu_mode=3"), tmp_path)


def test_nvmevirt_reads_in_the_sum_of_its_times(tmp_path: Path) -> None:
    found = constants(NVMEVIRT, tmp_path, "SMALL", 1 << 28)
    assert (found["page_bytes"], found["sector_bytes"]) == (32768, 512)
    assert (found["read_ns"], found["read_high_ns"]) == (29_000, 41_000)
    assert found["pages_per_block"] == (1 << 28) // (4 * 2 * 128 * 32768)
    assert found["spare_factor"] == pytest.approx(1 - 100 / 107)
    assert found["write_cache_bytes"] == 4 * 2 * 32768 * 2
    bandwidths = 4096 / (800 << 20) + 4096 / (3360 << 20)
    expected = 21_500 + 35_000 + bandwidths * 1e9
    assert mean_read_ns(NVMEVIRT_ALONE, tmp_path) == pytest.approx(expected, rel=0.01)
    with pytest.raises(UsageError, match="several SSDs"):
        constants(NVMEVIRT, tmp_path)
    with pytest.raises(UsageError, match="SSD_TYPE_ZNS"):
        constants(NVMEVIRT, tmp_path, "ZONED")


def test_simplessd_s_times_are_picoseconds(tmp_path: Path) -> None:
    found = constants(SIMPLESSD, tmp_path)
    assert (found["read_ns"], found["program_ns"], found["erase_ns"]) == (
        40_000,
        500_000,
        3_500_000,
    )
    assert (found["channel_bytes_per_s"], found["gc"]) == (400 * 10**6, "d_choices:4")
    assert found["link_bytes_per_s"] == pytest.approx(8e9 * 128 / 130 / 8 * 4, rel=1e-6)
    assert "read_high_ns" not in found
    # A page of flash over the channel, and 4 KiB of it over the link.
    expected = 40_000 + 16384 / 400e6 * 1e9 + 4096 / found["link_bytes_per_s"] * 1e9
    assert mean_read_ns(SIMPLESSD, tmp_path) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\n", "another file"),
        ("<IO_Flow_Parameter_Set_Synthetic>", "a workload of MQSim"),
        (MQSIM.replace("<Page_Capacity>8192</Page_Capacity>", ""), "no 'Page_Capacity'"),
        (MQSIM.replace("RGA", "BEST"), "not one of"),
        (MQSIM.replace("0.25", "nan"), "out of range"),
        (MQSIM.replace("?>", "?><!DOCTYPE a>"), "document type"),
        (FEMU.replace("size=192", "size=9999"), "flash of"),
        (SIMPLESSD.replace("Page = 128", "Page = x"), "not a number"),
        (NVMEVIRT_ALONE.replace("KB(16)", "f(16)"), "not a sum"),
        (NVMEVIRT_ALONE.replace("KB(16)", "FLASH_PAGE_SIZE"),
         "by itself"),
        (NVMEVIRT_ALONE.replace("KB(16)", "1 << (1 << 60)"),
         "out of range"),
    ],
)  # fmt: skip
def test_damaged_configurations_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        constants(text, tmp_path)
    assert reason in str(error.value)


def test_text_of_a_profile_cannot_be_broken_by_a_name(tmp_path: Path) -> None:
    path = tmp_path / "configuration"
    path.write_text(FEMU)
    text = import_profile(path).text('a"\n[ftl]\nftl = "x')
    assert tomllib.loads(text)["ftl"]["ftl"] == "page_map"


# Does the simulator agree with MQSim on setups that both express, and are its files read right?


SETUP = {"name": "", "channels": 2, "dies_per_channel": 2, "pattern": "RW", "interval_ns": 10**6}
RESULT = """<?xml version="1.0" encoding="us-ascii"?>
<MQSim_Results>
<Host>
<Host.IO_Flow> <Name>Host.IO_Flow.Synth.No_0</Name> <Request_Count>3</Request_Count> </Host.IO_Flow>
</Host>
<SSDDevice>
<SSDDevice.FTL Issued_Flash_Program_CMD="7" Total_WL_Executions="1"/>
<SSDDevice.FTL.TSU> </SSDDevice.FTL.TSU>
</SSDDevice>
</MQSim_Results>
"""
LOG = """SimulationTime(us)\tReponseTime(us)\tEndToEndDelay(us)
777\t776\t776
1555\t777\t777
9000\t812\t900
"""


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mqsim_program", BENCHES / "mqsim_program.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_simulator_agrees_with_mqsim() -> None:
    """Within 5 % where nothing is known to differ, and further away where something is."""
    command = [sys.executable, str(BENCHES / "mqsim.py"), "--check"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_mqsim_results_are_parsed(program: ModuleType) -> None:
    results = program.read_results(RESULT, LOG)
    assert results.response_us.tolist() == [776, 777, 812]
    assert (results.serviced, results.programs, results.unanswered, results.levelled) == (
        3,
        7,
        0,
        1,
    )


def test_mqsim_results_with_lost_ios_are_refused(program: ModuleType) -> None:
    with pytest.raises(ValueError, match="made 3 requests, and answered 2"):
        program.read_results(RESULT, LOG.rpartition("9000")[0])
    with pytest.raises(ValueError, match="no results"):
        program.read_results("<MQSim_Results/>", LOG)


def test_setup_is_written_as_mqsim_files(program: ModuleType) -> None:
    def texts(root: Any) -> dict[str, str]:
        return {element.tag: element.text for element in root.iter()}

    setup = program.Setup(**SETUP)
    device, workload = texts(program.device_xml(setup)), texts(program.workload_xml(setup, 5))
    assert (device["Flash_Channel_Count"], device["Chip_No_Per_Channel"]) == ("2", "2")
    assert float(device["GC_Exec_Threshold"]) * setup.blocks_per_die == pytest.approx(30.5)
    assert (workload["Synthetic_Generator_Type"], workload["Read_Percentage"]) == ("BANDWIDTH", "0")
    # MQSim computes the interval as ns / ((bandwidth / sector) / sectors), in whole numbers.
    sectors = int(workload["Average_Request_Size"])
    assert 10**9 // (int(workload["Bandwidth"]) // 512 // sectors) == 10**6
    assert (workload["Channel_IDs"], workload["Total_Requests_To_Generate"]) == ("0,1", "5")
