"""Configurations of other simulators as profiles: MQSim, FEMU, NVMeVirt, SimpleSSD.

```text
text ─ parameters of the simulator ─ translate ─▶ constants of a profile, each with its source
                                      └─────────▶ assumptions, and parameters without a counterpart
```

**Source**: `ssdconfig.xml` and the source of MQSim (FAST '18); `hw/femu/femu.c`, `bbssd/ftl.c` and
`run-blackbox.sh` of FEMU (FAST '18); `ssd_config.h`, `ssd.c` and `conv_ftl.c` of NVMeVirt
(FAST '23); `config/sample.cfg` of SimpleSSD 2.0.
**Faithful**: geometry, times, spare space, rates of channels and link, victim policy. For MQSim
the correspondence is measured (docs/reference/mqsim.md).
**Simplified**: the whole map is in memory. FEMU and NVMeVirt collect a line of blocks of all dies;
a profile collects a block of a die.
**Ambiguous**: a file may leave out what the simulator takes from elsewhere: the size of NVMeVirt's
memory, the cache mode of MQSim's workload. Such values are assumptions, and printed.
"""

import ast
import configparser
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from uflip.data.document import DocumentKind, read_foreign_text
from uflip.errors import UsageError, unknown_name

KIND = DocumentKind(
    "configuration",
    1 << 22,
    "name MQSim's ssdconfig.xml, a script or command line of FEMU, NVMeVirt's ssd_config.h, or a "
    ".cfg of SimpleSSD",
    UsageError,
)
DEFAULT_CAPACITY = 16 << 30
Value = int | float | str | bool
Constants = dict[str, tuple[Value, str]]
"""Key of a profile -> its value, and where it comes from."""

BASE: dict[str, dict[str, Value]] = {
    "geometry": {
        "channels": 1,
        "dies_per_channel": 1,
        "blocks_per_die": 1,
        "pages_per_block": 1,
        "metadata_pages": 0,
        "page_bytes": 4096,
        "spare_bytes": 0,
        "sector_bytes": 512,
    },
    "timing": {
        "bits_per_cell": 1,
        "read_ns": 0,
        "program_ns": 0,
        "program_high_ns": 0,
        "erase_ns": 0,
        "channel_bytes_per_s": 1,
        "buses": 0,
        "bus_bytes_per_s": 1,
        "link_bytes_per_s": 1,
        "command_read_ns": 0,
        "command_write_ns": 0,
        "relocate_ns": 0,
        "collect_ns": 0,
    },
    "ftl": {"ftl": "page_map", "spare_factor": 0.07, "allocator": "round_robin"},
    "gc": {
        "gc": "greedy",
        "reserved_blocks": 1,
        "idle_free_blocks": 0,
        "relocation": "same_die",
        "copy_back": False,
        "separate_streams": True,
        "relocate_at_least": 0,
    },
    "wear": {"dynamic_wear_levelling": False, "static_wear_threshold": 0},
    "cache": {"write_cache_bytes": 0, "flush": "when_needed"},
    "state": {"state": "random", "random_overwrites": 1.0, "seed": 1},
}
"""The keys of a profile that have no default; a translation replaces values and may add keys."""
TABLE_OF_ADDED = {
    "planes_per_die": "geometry",
    "multi_plane": "geometry",
    "read_middle_ns": "timing",
    "read_high_ns": "timing",
    "program_middle_ns": "timing",
    "command_read_latency_ns": "timing",
    "command_write_latency_ns": "timing",
    "partial_transfer": "timing",
    "die_queue": "timing",
    "mapping_unit_bytes": "ftl",
    "relocations_at_once": "gc",
    "program_suspend_ns": "suspend",
    "erase_suspend_ns": "suspend",
    "suspensions_max": "suspend",
}
_FREE_RATE = 10**12
"""The rate of a channel or link that the simulator does not limit [bytes/s]."""
_MIB = 1 << 20
_CAPACITY_ROUNDING = 1 << 19  # a capacity is rounded down to MiB: half of one avoids errors


@dataclass(frozen=True)
class ImportedProfile:
    """A profile that was translated."""

    simulator: str  #: Its name.
    constants: Constants  #: Key -> value and source.
    assumptions: tuple[str, ...]  #: What the file does not contain, a sentence each.
    unused: Mapping[str, str]  #: Parameters without a counterpart, with their values.

    def text(self, name: str) -> str:
        """Return the profile as TOML; `name` is that of the configuration."""
        tables = {table: dict(keys) for table, keys in BASE.items()}
        for key, (value, _) in self.constants.items():
            known = (table for table, keys in BASE.items() if key in keys)
            table = next(known, None) or TABLE_OF_ADDED[key]
            tables.setdefault(table, {})[key] = value
        comments = [f"From {name}, a configuration of {self.simulator}."]
        comments += [f"Assumed: {each}" for each in self.assumptions]
        if self.unused:
            listed = ", ".join(f"{key} = {value}" for key, value in self.unused.items())
            comments.append(f"Without a counterpart: {listed}")
        lines = [f"# {_printable(each)}" for each in comments]
        lines += ["", f"description = {_toml(f'{self.simulator}: {name}')}"]
        for table, keys in tables.items():
            lines += ["", f"[{table}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in keys.items()]
        lines += [
            "",
            "[sources]",
            'default = { kind = "off", detail = "not in the configuration" }',
        ]
        for key, (_, source) in self.constants.items():
            detail = _toml(f"{self.simulator}: {source}")
            lines.append(f'{key} = {{ kind = "inferred", detail = {detail} }}')
        return "\n".join(lines) + "\n"


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = _printable(value).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return f"{value:.9f}" if isinstance(value, float) else str(value)


def import_profile(
    path: Path, model: str | None = None, capacity: int | None = None
) -> ImportedProfile:
    """Translate the configuration of a simulator.

    `path`: its file, which is recognised. `model`: the SSD of NVMeVirt's file, as SAMSUNG_970PRO.
    `capacity`: the memory that NVMeVirt reserves [bytes].
    """
    text = read_foreign_text(path, KIND)
    readers: dict[str, Callable[[], ImportedProfile]] = {
        "MQSim": lambda: _mqsim(_xml_parameters(text)),
        "FEMU": lambda: _femu(_femu_options(text)),
        "NVMeVirt": lambda: _nvmevirt(text, model, capacity),
        "SimpleSSD": lambda: _simplessd(_ini_parameters(text)),
    }
    simulator = _simulator_of(text)
    if simulator is None:
        got = "a workload of MQSim" if "<IO_Flow_Parameter_Set" in text else "another file"
        raise KIND.unreadable(path, got, f"a configuration of {', '.join(readers)}")
    for option, value in (("--model", model), ("--capacity", capacity)):
        if value is not None and simulator != "NVMeVirt":
            raise UsageError(
                f"{option} is for NVMeVirt only",
                where=option,
                got=f"a configuration of {simulator}",
                action=f"omit {option}",
            )
    try:
        return readers[simulator]()
    except (KeyError, ValueError, ArithmeticError, ElementTree.ParseError) as error:
        got = f"no {error}" if isinstance(error, KeyError) else str(error)
        allowed = f"a whole configuration of {simulator}"
        raise KIND.unreadable(path, got, allowed) from error
    except configparser.Error as error:
        raise KIND.unreadable(path, " ".join(str(error).split()), "an ini file") from error


def _simulator_of(text: str) -> str | None:
    if "<Device_Parameter_Set>" in text:
        return "MQSim"
    if "NAND_CHANNELS" in text and "#define" in text:
        return "NVMeVirt"
    if re.search(r"-device\s+femu\b", text):
        return "FEMU"
    if re.search(r"^\s*\[pal\]", text, re.MULTILINE):
        return "SimpleSSD"
    return None


class _Parameters:
    """The parameters of a configuration; those that are never read have no counterpart."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = dict(values)
        self.read: set[str] = set()

    def text(self, name: str, default: str | None = None) -> str:
        self.read.add(name)
        if default is not None:
            return self.values.get(name, default)
        return self.values[name]

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int:
        value = self.number(name, None if default is None else float(default))
        if value != int(value) or value < least:
            raise ValueError(f"{name} = {self.values.get(name)}, not a number from {least}")
        return int(value)

    def number(self, name: str, default: float | None = None) -> float:
        text = self.text(name, None if default is None else str(default))
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"{name} = {text[:80]}, not a number") from None
        if not math.isfinite(value) or not 0 <= value < 1 << 62:
            raise ValueError(f"{name} = {text[:80]}, out of range")
        return value

    def is_true(self, name: str) -> bool:
        return self.text(name, "false").lower() in ("true", "1")

    def unused(self) -> dict[str, str]:
        return {name: each for name, each in self.values.items() if name not in self.read}


def _xml_parameters(text: str) -> _Parameters:
    if "<!" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL):
        raise ValueError("a document type")  # entities could fill the memory
    body = text.split("?>", 1)[-1] if text.lstrip().startswith("<?") else text
    root = ElementTree.fromstring(body)
    leaves = (each for each in root.iter() if len(each) == 0)
    return _Parameters({each.tag: (each.text or "").strip() for each in leaves})


# Transfers over MQSim's PCIe link for an I/O besides its data: a doorbell, the request for the
# submission entry and the entry itself, the completion entry, each with 28 bytes of headers; for a
# write the request for the data as well. Data is sent in packets of 128 bytes.
_PACKET, _HEADERS = 128, 28
_DOORBELL, _REQUEST = 2 + _HEADERS, 4 + _HEADERS
_ENTRIES = 64 + _HEADERS + 16 + _HEADERS
# Cycles of commands and addresses on MQSim's channel (ONFI_Channel_NVDDR2.cpp).
_CYCLES_NS = {"Read": 290, "Program": 361, "Erase": 220}
_MQSIM_BITS = {"SLC": 1, "MLC": 2, "TLC": 3}


def _mqsim(given: _Parameters) -> ImportedProfile:
    blocks, pages = given.whole("Block_No_Per_Plane", least=2), given.whole("Page_No_Per_Block")
    page_bytes = given.whole("Page_Capacity", least=512)
    planes = given.whole("Plane_No_Per_Die", least=1)
    channels = given.whole("Flash_Channel_Count", least=1)
    dies = given.whole("Chip_No_Per_Channel", least=1) * given.whole("Die_No_Per_Chip", least=1)
    units = channels * dies * planes
    spare = given.number("Overprovisioning_Ratio")
    logical = units * round(blocks * pages * (1 - spare)) * page_bytes
    physical = units * (blocks - 1) * pages * page_bytes
    threshold = int(given.number("GC_Exec_Threshold") * blocks)
    constants: Constants = {
        "channels": (channels, "Flash_Channel_Count"),
        "dies_per_channel": (dies, "Chip_No_Per_Channel x Die_No_Per_Chip"),
        "blocks_per_die": (
            planes * (blocks - 1),
            "Plane_No_Per_Die x (Block_No_Per_Plane - 1): each plane keeps a block for map pages",
        ),
        "pages_per_block": (pages, "Page_No_Per_Block"),
        "page_bytes": (page_bytes, "Page_Capacity"),
        "sector_bytes": (512, "the sector of MQSim"),
        "spare_factor": (
            1 - (logical + _CAPACITY_ROUNDING) / physical,
            "Overprovisioning_Ratio, of all blocks",
        ),
        "allocator": ("static", f"Plane_Allocation_Scheme {given.text('Plane_Allocation_Scheme')}"),
        "reserved_blocks": (max(1, threshold - 1), "GC_Exec_Threshold x Block_No_Per_Plane - 1"),
        "relocation": ("same_die", "valid pages stay in their plane"),
        "separate_streams": (True, "a write frontier for collection"),
        "dynamic_wear_levelling": (
            given.is_true("Dynamic_Wearleveling_Enabled"),
            "Dynamic_Wearleveling_Enabled",
        ),
        "copy_back": (given.is_true("Use_Copyback_for_GC"), "Use_Copyback_for_GC"),
    }
    if planes > 1:
        constants["planes_per_die"] = (planes, "Plane_No_Per_Die")
        constants["multi_plane"] = ("same_page", "commands for several planes of a die")
    assumptions = _mqsim_times(given, constants)
    _mqsim_interface(given, constants, page_bytes)
    _mqsim_collection(given, constants, blocks, pages)
    assumptions += _mqsim_state(given, constants)
    scheme = given.text("Plane_Allocation_Scheme")
    if not scheme.startswith("C"):
        assumptions.append(f"pages are distributed over channels first, not in the order {scheme}")
    if not given.is_true("Ideal_Mapping_Table"):
        assumptions.append("the whole map is in memory, as with Ideal_Mapping_Table")
    return ImportedProfile("MQSim", constants, tuple(assumptions), given.unused())


def _mqsim_times(given: _Parameters, constants: Constants) -> list[str]:
    technology = given.text("Flash_Technology")
    bits = _MQSIM_BITS.get(technology)
    if bits is None:
        raise ValueError(f"Flash_Technology = {technology}, not one of {', '.join(_MQSIM_BITS)}")
    constants["bits_per_cell"] = (bits, "Flash_Technology")
    for kind in ("Read", "Program"):
        cycles = _CYCLES_NS[kind]
        for page, suffix, least in (("LSB", "", 1), ("CSB", "_middle", 3), ("MSB", "_high", 2)):
            name, key = f"Page_{kind}_Latency_{page}", f"{kind.lower()}{suffix}_ns"
            source = f"{name} + {cycles} ns of cycles on the channel"
            if bits >= least:
                constants[key] = (given.whole(name) + cycles, source)
            given.read.add(name)
    if bits == 1:
        constants["program_high_ns"] = constants["program_ns"]
    erase = given.whole("Block_Erase_Latency") + _CYCLES_NS["Erase"]
    constants["erase_ns"] = (erase, "Block_Erase_Latency + 220 ns of cycles on the channel")
    rate = given.whole("Channel_Transfer_Rate", least=1)
    width = given.whole("Flash_Channel_Width", 1, least=1)
    # MQSim rounds the time of two transfers down to whole nanoseconds.
    two_transfers_ns = max(1, 1000 // rate * 2)
    constants["channel_bytes_per_s"] = (
        round(2e9 * width / two_transfers_ns),
        "Channel_Transfer_Rate x Flash_Channel_Width, in whole ns for two transfers",
    )
    return _mqsim_suspension(given, constants)


def _mqsim_suspension(given: _Parameters, constants: Constants) -> list[str]:
    support = given.text("CMD_Suspension_Support", "NONE")
    if support == "NONE":
        return []
    if "multi_plane" in constants:
        return [f"commands are not suspended (CMD_Suspension_Support {support}): a profile with "
                "commands for several planes has no suspension"]  # fmt: skip
    for word, key in (("PROGRAM", "program"), ("ERASE", "erase")):
        if word in support:
            name = f"Suspend_{word.capitalize()}_Time"
            constants[f"{key}_suspend_ns"] = (given.whole(name), name)
    constants["suspensions_max"] = (1, "one suspension, which MQSim does not limit")
    return ["a program or erase is suspended once at most"]


def _mqsim_interface(given: _Parameters, constants: Constants, page_bytes: int) -> None:
    if given.text("HostInterface_Type", "NVME") != "NVME":
        raise ValueError("HostInterface_Type other than NVME")
    lanes = given.whole("PCIe_Lane_Count", least=1)
    rate = lanes * given.number("PCIe_Lane_Bandwidth")
    if rate <= 0:
        raise ValueError("PCIe_Lane_Bandwidth = 0")
    packets = max(1, page_bytes // _PACKET) * (_PACKET + _HEADERS)
    overhead = _DOORBELL + _REQUEST + _ENTRIES
    source = "PCIe_Lane_Count x PCIe_Lane_Bandwidth, with headers"
    constants["link_bytes_per_s"] = (round(page_bytes / (packets / rate) * 1e9), source)
    constants["command_read_ns"] = (round(overhead / rate), f"queue entries: {source}")
    constants["command_write_ns"] = (round((overhead + _REQUEST) / rate), f"the same: {source}")


def _mqsim_collection(given: _Parameters, constants: Constants, blocks: int, pages: int) -> None:
    policy = given.text("GC_Block_Selection_Policy")
    policies = {
        "GREEDY": "greedy",
        "RGA": f"d_choices:{max(1, int(math.log2(blocks)))}",
        "FIFO": "cyclic",
        "RANDOM": "random",
    }
    if policy not in policies:
        raise ValueError(f"GC_Block_Selection_Policy = {policy}, not one of {', '.join(policies)}")
    constants["gc"] = (policies[policy], f"GC_Block_Selection_Policy {policy}")
    if "suspensions_max" in constants:
        constants["die_queue"] = ("reads_first", "CMD_Suspension_Support: reads go first")
    elif not given.is_true("Preemptible_GC_Enabled"):
        source = "Preemptible_GC_Enabled: a victim is read and written before I/Os of the host"
        constants["die_queue"] = ("collection_first", source)
        constants["relocations_at_once"] = (pages, source)


def _mqsim_state(given: _Parameters, constants: Constants) -> list[str]:
    caching = given.text("Caching_Mechanism")
    if caching == "ADVANCED":
        constants["write_cache_bytes"] = (given.whole("Data_Cache_Capacity"), "Data_Cache_Capacity")
        cache = "all flows use the write cache; MQSim reads that from the workload"
    else:
        cache = f"no flow uses the write cache (Caching_Mechanism {caching})"
    if given.is_true("Enabled_Preconditioning"):
        constants["state"] = ("random", "Enabled_Preconditioning")
        return [cache]
    constants["state"] = ("sequential", "MQSim reads unwritten pages from flash, too")
    return [cache, "the device is written once in order, since a read of MQSim always uses flash"]


_SHELL_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)=([^\s#]*)", re.MULTILINE)
_SHELL_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_FEMU_DEFAULTS = {
    "devsz_mb": "1024", "femu_mode": "2", "secsz": "512", "secs_per_pg": "8", "pgs_per_blk": "256",
    "blks_per_pl": "256", "pls_per_lun": "1", "luns_per_ch": "8", "nchs": "8",
    "pg_rd_lat": "40000", "pg_wr_lat": "200000", "blk_er_lat": "2000000", "ch_xfer_lat": "0",
    "gc_thres_pcent": "75", "gc_thres_pcent_high": "95",
}  # fmt: skip
"""The properties of the device in `femu.c` that a profile uses, with their defaults."""
_FEMU_BLACK_BOX = "1"
_MAX_EXPANSIONS = 64
_MAX_EXPRESSION = 1000


def _femu_options(text: str) -> _Parameters:
    """Return the options of `-device femu`, after variables of the shell are replaced."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    variables: dict[str, str] = {}
    for name, value in _SHELL_ASSIGNMENT.findall(_unquoted_assignments(text)):
        expanded = _SHELL_VARIABLE.sub(lambda found: variables.get(found[1], ""), value)
        variables[name] = expanded.replace("\0", " ")[: 1 << 16]
    candidates = [*variables.values(), _SHELL_VARIABLE.sub(lambda f: variables.get(f[1], ""), text)]
    found = [re.search(r"-device\s+femu\b([^\s\"']*)", each) for each in candidates]
    options = max((each[1] for each in found if each), key=len, default="")
    pairs = (each.split("=", 1) for each in options.strip(",").split(",") if "=" in each)
    return _Parameters(_FEMU_DEFAULTS | {key.strip(): value.strip() for key, value in pairs})


def _unquoted_assignments(text: str) -> str:
    """Return a script whose quoted values have no blanks or quotes: a blank becomes a null byte."""

    def joined(found: re.Match[str]) -> str:
        return found[0].replace('"', "").replace("'", "").replace(" ", "\0")

    return re.sub(r"(?m)^\s*(?:export\s+)?[A-Za-z_]\w*=.*[\"'].*$", joined, text)


def _femu(given: _Parameters) -> ImportedProfile:
    mode = given.text("femu_mode")
    if mode != _FEMU_BLACK_BOX:
        raise ValueError(f"femu_mode = {mode}, not 1 (black box): the others have no FTL")
    planes = given.whole("pls_per_lun", least=1)
    blocks, pages = given.whole("blks_per_pl", least=2), given.whole("pgs_per_blk", least=1)
    page_bytes = given.whole("secsz", least=512) * given.whole("secs_per_pg", least=1)
    channels, dies = given.whole("nchs", least=1), given.whole("luns_per_ch", least=1)
    physical = channels * dies * planes * blocks * pages * page_bytes
    logical = given.whole("devsz_mb", least=1) * _MIB
    if logical >= physical:
        raise ValueError(f"devsz_mb of {logical // _MIB} MiB, flash of {physical // _MIB} MiB")
    held = int((1 - given.number("gc_thres_pcent_high") / 100) * blocks)
    program = given.whole("pg_wr_lat")
    constants: Constants = {
        "channels": (channels, "nchs"),
        "dies_per_channel": (dies, "luns_per_ch"),
        "blocks_per_die": (planes * blocks, "pls_per_lun x blks_per_pl"),
        "pages_per_block": (pages, "pgs_per_blk"),
        "page_bytes": (page_bytes, "secsz x secs_per_pg"),
        "sector_bytes": (given.whole("secsz"), "secsz"),
        "read_ns": (given.whole("pg_rd_lat"), "pg_rd_lat"),
        "program_ns": (program, "pg_wr_lat"),
        "program_high_ns": (program, "pg_wr_lat"),
        "erase_ns": (given.whole("blk_er_lat"), "blk_er_lat"),
        "channel_bytes_per_s": (_FREE_RATE, "ch_xfer_lat, which FEMU does not use"),
        "link_bytes_per_s": (_FREE_RATE, "none: data is copied in memory"),
        "spare_factor": (1 - (logical + _CAPACITY_ROUNDING) / physical, "devsz_mb of the flash"),
        "gc": ("greedy", "the line with the fewest valid pages"),
        "reserved_blocks": (max(1, held), "(100 - gc_thres_pcent_high) % of the lines"),
        "separate_streams": (False, "host and collection write to one line"),
        "relocation": ("allocator", "pages of a line go to all dies"),
        "state": ("random", "as after a fill and random writes"),
    }
    given.read.add("ch_xfer_lat")
    assumptions = (
        "a block of a die is collected at a time, not a line of all dies",
        "collection begins at gc_thres_pcent_high; from gc_thres_pcent on FEMU also collects lines "
        "with few valid pages",
        "the times of the host and of QEMU are not in the profile",
    )
    return ImportedProfile("FEMU", constants, assumptions, given.unused())


_DIRECTIVE = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif|define)\b\s*(.*)$")
_DEFINITION = re.compile(r"^([A-Za-z_]\w*)\s+(.+)$")
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.Div: lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) else a / b,
    ast.LShift: lambda a, b: a << min(b, 64), ast.RShift: operator.rshift,
}  # fmt: skip
_SIZES = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_CONVENTIONAL = "SSD_TYPE_CONV"
_NVMEVIRT_NAMES = (
    *(f"SSD_TYPE_{kind}" for kind in ("NVM", "CONV", "ZNS", "KV")),
    *(f"CELL_MODE_{kind}" for kind in ("UNKNOWN", "SLC", "MLC", "TLC", "QLC")),
)
"""Names of choices, which are no parameters."""


def _models_of(text: str) -> list[str]:
    return re.findall(r"BASE_SSD\s*==\s*(\w+)", text)


def _model_of(text: str, model: str | None) -> str:
    """Return the SSD of a file of NVMeVirt that was chosen, or is the only one."""
    models = _models_of(text)
    if model is None and len(models) == 1:
        return models[0]
    if model is None:
        raise UsageError(
            "The file describes several SSDs",
            where="--model",
            allowed=", ".join(models),
            action="name one of them with --model",
        )
    if model not in models:
        raise unknown_name("SSD of this file", model, models, where="--model")
    return model


def _nvmevirt(text: str, chosen: str | None, capacity: int | None) -> ImportedProfile:
    model = _model_of(text, chosen)
    given = _Parameters(_c_definitions(text, model))
    if given.text("NS_SSD_TYPE_0") != _CONVENTIONAL:
        kind = given.text("NS_SSD_TYPE_0")
        raise ValueError(f"{model} is of type {kind}; only {_CONVENTIONAL} has a counterpart")

    def number(name: str) -> float:
        return _c_value(given, name, 0)

    def whole(name: str) -> int:
        return int(number(name))

    size = capacity or DEFAULT_CAPACITY
    channels, dies = whole("NAND_CHANNELS"), whole("LUNS_PER_NAND_CH")
    planes, per_plane = max(1, whole("PLNS_PER_LUN")), whole("BLKS_PER_PLN")
    page_bytes, units = whole("ONESHOT_PAGE_SIZE"), channels * dies * planes
    partitions = max(1, whole("SSD_PARTITIONS"))
    if per_plane <= 0 or page_bytes <= 0 or units <= 0:
        raise ValueError("BLKS_PER_PLN, ONESHOT_PAGE_SIZE or NAND_CHANNELS of 0")
    pages = max(1, -(-size // (per_plane * units * page_bytes)))
    percent = int((1 + number("OP_AREA_PERCENT")) * 100)
    bits = {"CELL_MODE_SLC": 1, "CELL_MODE_MLC": 2, "CELL_MODE_TLC": 3}
    cells = bits.get(given.text("CELL_MODE").strip("() "), 1)
    constants: Constants = {
        "channels": (channels, "NAND_CHANNELS"),
        "dies_per_channel": (dies, "LUNS_PER_NAND_CH"),
        "blocks_per_die": (planes * per_plane, "PLNS_PER_LUN x BLKS_PER_PLN"),
        "pages_per_block": (pages, "capacity / blocks / ONESHOT_PAGE_SIZE, rounded up"),
        "page_bytes": (page_bytes, "ONESHOT_PAGE_SIZE"),
        "sector_bytes": (max(512, whole("LBA_SIZE")), "LBA_SIZE"),
        "mapping_unit_bytes": (4096, "the page of NVMeVirt's map"),
        "partial_transfer": (True, "only the pages that are read are transferred"),
        "bits_per_cell": (cells, "CELL_MODE"),
        **_nvmevirt_times(whole),
        "spare_factor": (1 - 100 / percent, "OP_AREA_PERCENT"),
        "reserved_blocks": (2, "gc_thres_lines of conv_ftl.c"),
        "write_cache_bytes": (
            whole("GLOBAL_WB_SIZE") if whole("WRITE_EARLY_COMPLETION") else 0,
            "GLOBAL_WB_SIZE, with WRITE_EARLY_COMPLETION",
        ),
        "relocation": ("allocator", "pages of a line go to all dies"),
    }
    if cells > 1:
        constants["read_high_ns"] = (
            whole("NAND_4KB_READ_LATENCY_MSB"),
            "NAND_4KB_READ_LATENCY_MSB",
        )
    if cells == 3:
        constants["read_middle_ns"] = (
            whole("NAND_4KB_READ_LATENCY_CSB"), "NAND_4KB_READ_LATENCY_CSB"
        )  # fmt: skip
    assumptions = [
        f"a capacity of {size / _SIZES['GB']:g} GiB"
        + ("" if capacity else " (set it with --capacity)"),
        "reads take the time of 4 KiB (NAND_4KB_READ_LATENCY_*), also larger ones",
        "a block of a die is collected at a time, not a line of all dies",
    ]
    if partitions > 1:
        assumptions.append(f"one partition instead of {partitions}: pages go to all channels")
    given.read.update(_models_of(text), _NVMEVIRT_NAMES)
    return ImportedProfile(f"NVMeVirt {model}", constants, tuple(assumptions), given.unused())


def _nvmevirt_times(whole: Callable[[str], int]) -> Constants:
    program = whole("NAND_PROG_LATENCY")
    return {
        "read_ns": (whole("NAND_4KB_READ_LATENCY_LSB"), "NAND_4KB_READ_LATENCY_LSB"),
        "program_ns": (program, "NAND_PROG_LATENCY"),
        "program_high_ns": (program, "NAND_PROG_LATENCY"),
        "erase_ns": (whole("NAND_ERASE_LATENCY"), "NAND_ERASE_LATENCY"),
        "channel_bytes_per_s": (whole("NAND_CHANNEL_BANDWIDTH") * _MIB, "NAND_CHANNEL_BANDWIDTH"),
        "link_bytes_per_s": (whole("PCIE_BANDWIDTH") * _MIB, "PCIE_BANDWIDTH"),
        "command_read_latency_ns": (whole("FW_4KB_READ_LATENCY"), "FW_4KB_READ_LATENCY"),
        "command_write_latency_ns": (
            whole("FW_WBUF_LATENCY0") + whole("FW_WBUF_LATENCY1"),
            "FW_WBUF_LATENCY0 + FW_WBUF_LATENCY1, for 4 KiB",
        ),
    }


def _c_definitions(text: str, model: str) -> dict[str, str]:
    """Return the definitions of a header that hold with BASE_SSD as `model`, as text."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).replace("\\\n", " ")
    found: dict[str, str] = {}
    # Of each nested condition: whether this branch holds, and whether an earlier one did.
    branches: list[tuple[bool, bool]] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line.split("//", 1)[0])
        if directive is None:
            continue
        word, rest = directive[1], directive[2].strip()
        outside = all(holds for holds, _ in branches[:-1])
        if word in ("if", "ifdef", "ifndef"):
            holds = word == "ifndef" or (word == "if" and _c_condition(rest, model))
            branches.append((holds, holds))
        elif word == "elif" and branches:
            before = branches[-1][1]
            holds = not before and _c_condition(rest, model)
            branches[-1] = (holds, before or holds)
        elif word == "else" and branches:
            branches[-1] = (not branches[-1][1], True)
        elif word == "endif" and branches:
            branches.pop()
        elif word == "define" and outside and (not branches or branches[-1][0]):
            definition = _DEFINITION.match(rest)
            if definition:
                found[definition[1]] = definition[2].strip()
    return found


def _c_condition(text: str, model: str) -> bool:
    compared = re.fullmatch(r"\(?\s*BASE_SSD\s*==\s*(\w+)\s*\)?", text)
    return compared[1] == model if compared else text.strip("() ") == "1"


def _c_value(given: _Parameters, name: str, depth: int) -> float:
    """Return the value of a definition: sums, products, shifts, KB(), MB(), GB()."""
    text = given.text(name)
    if depth > _MAX_EXPANSIONS or len(text) > _MAX_EXPRESSION:
        raise ValueError(f"{name} is defined by itself")
    plain = re.sub(r"\b(\d+(?:\.\d+)?)(?:[uU]?[lL]{0,2}|[fF])\b", r"\1", text)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
        found = _node_value(tree, lambda other: _c_value(given, other, depth + 1))
    except (SyntaxError, RecursionError, MemoryError, TypeError):
        raise ValueError(f"{name} = {text[:80]}, not a sum or product of numbers") from None
    if not 0 <= found < 1 << 62:
        raise ValueError(f"{name} = {text[:80]}, out of range")
    return found


def _node_value(node: ast.expr, named: Callable[[str], float]) -> float:
    """Return the value of an expression; TypeError for anything but sums and products."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return named(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_node_value(operand, named)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _SIZES:
            return _node_value(argument, named) * _SIZES[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            one, other = _node_value(left, named), _node_value(right, named)
            if max(abs(one), abs(other)) >= 1 << 64:
                raise ValueError("a number that is out of range")
            result: float = _OPERATORS[type(op)](one, other)
            return result
    raise TypeError


def _ini_parameters(text: str) -> _Parameters:
    parser = configparser.RawConfigParser(
        inline_comment_prefixes=("#", ";"), strict=False, delimiters=("=",)
    )
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(text)
    names = ((section, key) for section in parser.sections() for key in parser[section])
    # The tables of the other interfaces have no effect.
    used = ((s, key) for s, key in names if s not in ("ufs", "sata"))
    return _Parameters({f"{s}.{key}": parser[s][key] or "" for s, key in used})


# Bytes per second of a lane after its line code: 8b/10b, and 128b/130b from generation 3 on.
_PCIE_LANE = {0: 250_000_000, 1: 500_000_000, 2: 984_615_384}
_SIMPLESSD_CELLS = {0: 1, 1: 2, 2: 3}
_PS_PER_NS = 1000


def _simplessd(given: _Parameters) -> ImportedProfile:
    channels = given.whole("pal.Channel", least=1)
    dies = given.whole("pal.Package", least=1) * given.whole("pal.Die", least=1)
    planes = given.whole("pal.Plane", least=1)
    blocks, pages = given.whole("pal.Block", least=2), given.whole("pal.Page", least=1)
    bits = _SIMPLESSD_CELLS.get(given.whole("pal.NANDType"))
    if bits is None:
        raise ValueError(f"pal.NANDType = {given.text('pal.NANDType')}, not 0 to 2")
    policies = {0: "greedy", 1: "cost_benefit", 2: "random", 3: "d_choices"}
    policy = policies.get(given.whole("ftl.EvictPolicy", 0))
    if given.whole("ftl.MappingMode", 0) or policy is None:
        raise ValueError("ftl.MappingMode or ftl.EvictPolicy that a profile does not have")
    if policy == "d_choices":
        policy = f"d_choices:{given.whole('ftl.DChoiceParam', 3, least=1)}"
    constants: Constants = {
        "channels": (channels, "pal Channel"),
        "dies_per_channel": (dies, "pal Package x Die"),
        "blocks_per_die": (planes * blocks, "pal Plane x Block"),
        "pages_per_block": (pages, "pal Page"),
        "page_bytes": (given.whole("pal.PageSize", least=512), "pal PageSize"),
        "sector_bytes": (given.whole("nvme.LBASize", 512, least=512), "nvme LBASize"),
        "bits_per_cell": (bits, "pal NANDType"),
        "erase_ns": (given.whole("pal.Erase") // _PS_PER_NS, "pal Erase [ps]"),
        "channel_bytes_per_s": (
            given.whole("pal.DMASpeed", least=1) * 10**6 * given.whole("pal.DMAWidth", 8) // 8,
            "pal DMASpeed x DMAWidth",
        ),
        "spare_factor": (given.number("ftl.OverProvisioningRatio"), "ftl OverProvisioningRatio"),
        "gc": (policy, "ftl EvictPolicy"),
        "reserved_blocks": (
            max(1, int(given.number("ftl.GCThreshold") * blocks)),
            "ftl GCThreshold x Block",
        ),
        "relocation": ("allocator", "pages of a superblock go to all dies"),
    }
    for kind in ("Read", "Write"):
        key = "read" if kind == "Read" else "program"
        for page, suffix, least in (("LSB", "", 1), ("CSB", "_middle", 3), ("MSB", "_high", 2)):
            time = given.whole(f"pal.{page}{kind}") // _PS_PER_NS
            if bits >= least:
                constants[f"{key}{suffix}_ns"] = (time, f"pal {page}{kind} [ps]")
    if bits == 1:
        constants["program_high_ns"] = constants["program_ns"]
    if planes > 1:
        constants["planes_per_die"] = (planes, "pal Plane")
        if given.is_true("pal.EnableMultiPlaneOperation"):
            constants["multi_plane"] = ("same_page", "pal EnableMultiPlaneOperation")
    assumptions = _simplessd_interface(given, constants)
    return ImportedProfile("SimpleSSD", constants, tuple(assumptions), given.unused())


def _simplessd_interface(given: _Parameters, constants: Constants) -> list[str]:
    generation, lanes = given.whole("nvme.PCIEGeneration", 2), given.whole("nvme.PCIELane", 4)
    if generation not in _PCIE_LANE or not lanes:
        raise ValueError(f"nvme.PCIEGeneration = {generation}, not 0 to 2, or no PCIELane")
    rate = _PCIE_LANE[generation] * lanes
    constants["link_bytes_per_s"] = (rate, "nvme PCIEGeneration, PCIELane, without headers")
    is_cached = given.is_true("icl.EnableWriteCache")
    size = given.whole("icl.CacheSize", 0)
    constants["write_cache_bytes"] = (size if is_cached else 0, "icl CacheSize, EnableWriteCache")
    is_filled = given.number("ftl.FillRatio", 0) > 0
    mode = given.whole("ftl.FillingMode", 0)
    constants["state"] = ("random" if mode else "sequential", "ftl FillingMode")
    assumptions = [
        "the firmware takes no time; SimpleSSD computes it from instructions of its cores [cpu]",
        "reads are not cached",
    ]
    if not is_filled:
        assumptions.append("the device is full, although FillRatio is 0: reads then use the flash")
    return assumptions
