"""MQSim as a program: its two XML files, a run, and the results that uflip compares.

MQSim (Tavakkol et al., FAST 2018; github.com/CMU-SAFARI/MQSim) is not part of uflip: users build it
and pass the path of its binary. It prints response times in whole microseconds, and no percentiles.
Its log of response times has a line for each completion that comes later than one period after the
last line, so with a period of 0 it has all of them.
"""

import subprocess
import xml.etree.ElementTree as ET  # parses only what MQSim has just written
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

SECTOR_BYTES = 512
WIDTH_BYTES = 1  # data lines of a channel, in bytes
LANES, LANE_GB_PER_S = 4, 1.0
MIN_ANSWERED = 0.999  # of all I/Os

Value = str | int | float | bool
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Setup:
    """A device and a workload that both simulators can express.

    Attributes
    ----------
    name
        Unique name of the setup.
    channels, dies_per_channel, blocks_per_die, pages_per_block, page_bytes
        The flash; in MQSim a chip of one die with one plane is a die, and each of them loses a
        block to mapping pages that are never written.
    read_ns, program_ns, erase_ns, transfers_per_us
        Cell times, and the rate of a channel [MT/s, a byte each].
    spare_factor
        Share of the flash that the host cannot address.
    free_blocks
        Free blocks of a die below which MQSim collects.
    pattern
        One of the baselines.
    queue_depth, interval_ns
        I/Os in flight, or the mean time between arrivals (Poisson).
    warm_up_sizes, ios
        Writes before the window, in device sizes, and the I/Os in it.
    """

    name: str
    channels: int = 1
    dies_per_channel: int = 1
    blocks_per_die: int = 1024
    pages_per_block: int = 64
    page_bytes: int = 8192
    read_ns: int = 75_000
    program_ns: int = 750_000
    erase_ns: int = 3_800_000
    transfers_per_us: int = 333
    spare_factor: float = 0.125
    free_blocks: int = 30
    pattern: str = "RW"
    queue_depth: int = 1
    interval_ns: int = 0
    warm_up_sizes: int = 5
    ios: int = 400_000

    @property
    def dies(self) -> int:
        """Dies in all."""
        return self.channels * self.dies_per_channel

    @property
    def logical_pages(self) -> int:
        """Pages that the host can address."""
        pages = self.blocks_per_die * self.pages_per_block
        return self.dies * round(pages * (1 - self.spare_factor))

    @property
    def writes(self) -> bool:
        """Whether anything is written."""
        return self.pattern.endswith("W")

    @property
    def warm_up_ios(self) -> int:
        """I/Os before the window."""
        return self.warm_up_sizes * self.logical_pages if self.writes else 0


@dataclass(frozen=True)
class MqsimRun:
    """The counters of an MQSim run, and each response time [us, whole ones]."""

    serviced: int
    programs: int
    unanswered: int
    levelled: int
    response_us: NDArray[np.int64]


def _element(name: str, values: Values, *children: ET.Element) -> ET.Element:
    element = ET.Element(name)
    for key, value in values.items():
        child = ET.SubElement(element, key)
        child.text = str(value).lower() if isinstance(value, bool) else str(value)
    element.extend(children)
    return element


HOST: Values = {
    "PCIe_Lane_Bandwidth": LANE_GB_PER_S,
    "PCIe_Lane_Count": LANES,
    "SATA_Processing_Delay": 400_000,
    "Enable_ResponseTime_Logging": True,
    "ResponseTime_Logging_Period_Length": 0,
}


def _flash_values(setup: Setup) -> Values:
    return {
        "Flash_Technology": "SLC",
        "CMD_Suspension_Support": "NONE",
        "Page_Read_Latency_LSB": setup.read_ns,
        "Page_Read_Latency_CSB": setup.read_ns,
        "Page_Read_Latency_MSB": setup.read_ns,
        "Page_Program_Latency_LSB": setup.program_ns,
        "Page_Program_Latency_CSB": setup.program_ns,
        "Page_Program_Latency_MSB": setup.program_ns,
        "Block_Erase_Latency": setup.erase_ns,
        "Block_PE_Cycles_Limit": 100_000,
        "Suspend_Erase_Time": 0,
        "Suspend_Program_Time": 0,
        "Die_No_Per_Chip": 1,
        "Plane_No_Per_Die": 1,
        "Block_No_Per_Plane": setup.blocks_per_die,
        "Page_No_Per_Block": setup.pages_per_block,
        "Page_Capacity": setup.page_bytes,
        "Page_Metadat_Capacity": 0,
    }


def device_xml(setup: Setup) -> ET.Element:
    """Return the device description for MQSim's `-i`.

    No cache, the whole map in memory, greedy collection that nothing interrupts, nothing suspended.
    Static wear levelling cannot be switched off: the constructor of its collector receives the seed
    in the place of that switch (src/exec/SSD_Device.cpp).
    """
    device: dict[str, Value] = {
        "Seed": 321,
        # A random read of an unwritten page maps it at no cost. Preconditioning leaves a tenth of
        # the pages unmapped, and so few free blocks that such reads start collection.
        "Enabled_Preconditioning": setup.writes,
        "Memory_Type": "FLASH",
        "HostInterface_Type": "NVME",
        # Requests that are never completed keep their fetched queue entry: the queue must be long.
        "IO_Queue_Depth": 65_535,
        "Queue_Fetch_Size": 65_000,
        "Caching_Mechanism": "SIMPLE",
        "Data_Cache_Sharing_Mode": "SHARED",
        "Data_Cache_Capacity": 16 << 20,
        "Data_Cache_DRAM_Row_Size": 8192,
        "Data_Cache_DRAM_Data_Rate": 800,
        "Data_Cache_DRAM_Data_Busrt_Size": 4,
        "Data_Cache_DRAM_tRCD": 13,
        "Data_Cache_DRAM_tCL": 13,
        "Data_Cache_DRAM_tRP": 13,
        "Address_Mapping": "PAGE_LEVEL",
        "Ideal_Mapping_Table": True,
        "CMT_Capacity": 2 << 20,
        "CMT_Sharing_Mode": "SHARED",
        "Plane_Allocation_Scheme": "CWDP",
        "Transaction_Scheduling_Policy": "OUT_OF_ORDER",
        "Overprovisioning_Ratio": setup.spare_factor,
        "GC_Exec_Threshold": f"{(setup.free_blocks + 0.5) / setup.blocks_per_die:.9f}",
        "GC_Block_Selection_Policy": "GREEDY",
        "Use_Copyback_for_GC": False,
        "Preemptible_GC_Enabled": False,
        "GC_Hard_Threshold": 0.005,
        "Dynamic_Wearleveling_Enabled": True,
        "Static_Wearleveling_Enabled": False,
        "Static_Wearleveling_Threshold": 100,
        "Preferred_suspend_erase_time_for_read": 0,
        "Preferred_suspend_erase_time_for_write": 0,
        "Preferred_suspend_write_time_for_read": 0,
        "Flash_Channel_Count": setup.channels,
        "Flash_Channel_Width": WIDTH_BYTES,
        "Channel_Transfer_Rate": setup.transfers_per_us,
        "Chip_No_Per_Channel": setup.dies_per_channel,
        "Flash_Comm_Protocol": "NVDDR2",
    }
    return _element(
        "Execution_Parameter_Set",
        {},
        _element("Host_Parameter_Set", HOST),
        _element(
            "Device_Parameter_Set",
            device,
            _element("Flash_Parameter_Set", _flash_values(setup)),
        ),
    )


def arrival_rate(setup: Setup) -> int:
    """Return the arrival rate [bytes/s]; 0 for a fixed queue depth."""
    return setup.page_bytes * 10**9 // setup.interval_ns if setup.interval_ns else 0


def workload_xml(setup: Setup, ios: int) -> ET.Element:
    """Return the workload description of `ios` I/Os for MQSim's `-w`."""
    sectors = setup.page_bytes // SECTOR_BYTES
    random = setup.pattern.startswith("R")
    flow: dict[str, Value] = {
        "Priority_Class": "HIGH",
        "Device_Level_Data_Caching_Mode": "TURNED_OFF",
        "Channel_IDs": ",".join(map(str, range(setup.channels))),
        "Chip_IDs": ",".join(map(str, range(setup.dies_per_channel))),
        "Die_IDs": 0,
        "Plane_IDs": 0,
        "Initial_Occupancy_Percentage": 100,
        "Working_Set_Percentage": 100,
        "Synthetic_Generator_Type": "BANDWIDTH" if setup.interval_ns else "QUEUE_DEPTH",
        "Read_Percentage": 0 if setup.writes else 100,
        "Address_Distribution": "RANDOM_UNIFORM" if random else "STREAMING",
        "Percentage_of_Hot_Region": 0,
        "Generated_Aligned_Addresses": True,
        "Address_Alignment_Unit": sectors,
        "Request_Size_Distribution": "FIXED",
        "Average_Request_Size": sectors,
        "Variance_Request_Size": 0,
        "Seed": 798,
        "Average_No_of_Reqs_in_Queue": setup.queue_depth,
        "Bandwidth": arrival_rate(setup),
        "Stop_Time": 0,
        "Total_Requests_To_Generate": ios,
    }
    scenario = _element("IO_Scenario", {}, _element("IO_Flow_Parameter_Set_Synthetic", flow))
    return _element("MQSim_IO_Scenarios", {}, scenario)


def read_results(text: str, log: str) -> MqsimRun:
    """Read a result file and the log of response times.

    MQSim never completes an I/O to a page that is being collected (docs/reference/mqsim.md). At a
    given arrival rate a few are missing in the end; at a fixed queue depth each of them occupies a
    place in the queue for good.

    Raises
    ------
    ValueError
        If more responses are missing than that.
    """
    root = ET.fromstring(text)
    flow, ftl = next(root.iter("Host.IO_Flow"), None), next(root.iter("SSDDevice.FTL"), None)
    if flow is None or ftl is None:
        raise ValueError("MQSim wrote no results")
    lines = log.splitlines()[1:]
    response = np.array([int(line.split("\t")[1]) for line in lines], dtype=np.int64)
    requested = int(flow.findtext("Request_Count", "0"))
    if len(response) < requested * MIN_ANSWERED:
        raise ValueError(f"MQSim made {requested} requests, and answered {len(response)}")
    return MqsimRun(
        serviced=len(response),
        programs=int(ftl.attrib["Issued_Flash_Program_CMD"]),
        unanswered=requested - len(response),
        levelled=int(ftl.attrib["Total_WL_Executions"]),
        response_us=response,
    )


def run(binary: Path, setup: Setup, ios: int) -> MqsimRun:
    """Run MQSim for `ios` I/Os."""
    with TemporaryDirectory(prefix="mqsim-") as name:
        folder = Path(name)
        device, workload = folder / "device.xml", folder / "work.xml"
        for path, root in ((device, device_xml(setup)), (workload, workload_xml(setup, ios))):
            ET.indent(root)
            ET.ElementTree(root).write(path, encoding="us-ascii", xml_declaration=True)
        command = [str(binary), "-i", str(device), "-w", str(workload)]
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        log = next(folder.glob("*.log")).read_text()
        return read_results((folder / "work_scenario_1.xml").read_text(), log)
