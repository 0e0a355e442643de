"""Does the simulator agree with MQSim on setups that both express, and are its files read right?"""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
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
