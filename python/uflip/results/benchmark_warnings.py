"""Warnings about a benchmark as a whole: device, host, files, interference between runs.

`uflip.results.warnings` gathers those about single runs.
"""

from collections.abc import Sequence
from dataclasses import asdict

from uflip.data.device import DeviceInfo
from uflip.data.manifest import UNKNOWN_STATE, DeviceState, Host, WarningRecord
from uflip.data.phases import Interference
from uflip.results.convergence import MARKS
from uflip.results.environment_warnings import ENVIRONMENT_CODES
from uflip.results.integrity import UNPROVEN, FolderVerification
from uflip.results.run_warnings import CHECKS
from uflip.results.warnings import StoredWarning

# Half of the processors are busy: the submitting thread may have to share one.
BUSY_LOAD_PER_CPU = 0.5
# NVMe's Percentage Used at the end of the life that the vendor rates.
RATED_PERCENT = 100


def interference_warnings(interference: Interference | None) -> list[StoredWarning]:
    """Return warnings about the pause between runs (uFLIP §4.3).

    Parameters
    ----------
    interference
        `interference` of the manifest.
    """
    if interference is None or interference["over"]:
        return []
    return [
        StoredWarning(
            "pause_too_short",
            "After random writes, even the last sequential reads were slower than those before: "
            "the time for which a run affects the next one is unknown",
            {
                "reads_affected": interference["reads_affected"],
                "lingering_ns": interference["lingering_ns"],
                "pause_ns": interference["pause_ns"],
            },
            "repeat with a longer pause (--pause), or in the standard scale, which reads longer",
        )
    ]


def condition_warnings(device: DeviceInfo, host: Host, state: DeviceState) -> list[StoredWarning]:
    """Return warnings that concern every run: device state, how it was opened, load of the host.

    Parameters
    ----------
    device, host, state
        The values of the manifest.
    """
    warnings: list[StoredWarning] = []
    used = device.details.wear.percentage_used if device.details.wear else None
    if used is not None and used > RATED_PERCENT:
        warnings.append(
            StoredWarning(
                "beyond_endurance",
                f"The device reports that {used:.4g} % of its rated endurance is used",
                {"percentage_used": used},
                "read retries, failed programs and fewer spare blocks may affect these results: "
                "they do not represent a less worn device",
            )
        )
    if not device.real:
        return warnings
    if state.state_id is None:
        warnings.append(StoredWarning("state_not_enforced", *_state_warning_parts(state)))
    if device.buffered:
        warnings.append(
            StoredWarning(
                "buffered_io",
                "The I/Os went through the page cache: response times include cache hits in memory",
                {"io": device.io},
                "measure without --buffered, on a file system that supports O_DIRECT; only "
                "--durability fua or flush:N ensures that writes reach the device",
            )
        )
    if device.data == "zeros":
        warnings.append(
            StoredWarning(
                "compressible_data",
                "All data written was zeros, which some devices compress or do not store at all",
                {"data": "zeros"},
                "measure with --data random, unless compression is the object of the study",
            )
        )
    allocated = device.details.allocated_bytes
    if allocated is not None and allocated < device.capacity_bytes:
        warnings.append(
            StoredWarning(
                "sparse_file",
                "The file had holes when the benchmark began: reads of them never reach the device",
                {"allocated_bytes": allocated, "capacity_bytes": device.capacity_bytes},
                "write the whole file once before, or let --size create it",
            )
        )
    if (backend := host.virtual_disk) is not None:
        warnings.append(
            StoredWarning(
                "virtual_disk",
                f"The disk is virtual: {backend}",
                {"virtual_disk": backend},
                "the results include caches, limits and other guests of its host: they describe "
                "what the host offers now; repeat them at another time, and compare only with "
                "runs on the same kind of disk",
            )
        )
    load, cpus = host.load_average_1min, host.cpus_usable or host.cpus
    if load is not None and cpus and load > BUSY_LOAD_PER_CPU * cpus:
        warnings.append(
            StoredWarning(
                "busy_host",
                f"The host was busy when the benchmark began: load {load:g} on {cpus} processors",
                {"load_average_1min": load, "cpus": cpus},
                "repeat on an idle host; delays of the host appear as response times",
            )
        )
    return warnings


def _state_warning_parts(state: DeviceState) -> tuple[str, dict[str, object], str]:
    """Return message, numbers (none) and advice for a state that was not enforced."""
    comparable = "compare only with runs on a device that was filled in the same way"
    if state == UNKNOWN_STATE:
        cause = "The initial state of the device is unknown: earlier writes"
        return f"{cause} affect its response times", {}, comparable
    return (
        "The device was not preconditioned: earlier writes affect its response times",
        {},
        "use `uflip prepare` before (`uflip run` does it itself, except with --state as-is); until "
        f"then {comparable}",
    )


def file_warnings(verification: FolderVerification) -> list[StoredWarning]:
    """Return warnings about damaged files and about files that cannot be verified.

    Parameters
    ----------
    verification
        The verification of the folder.
    """
    warnings = []
    if verification.lost:
        named = "; ".join(f"{each.file}: {each.reason}" for each in verification.lost[:3])
        more = f" and {len(verification.lost) - 3} more" if len(verification.lost) > 3 else ""
        warnings.append(
            StoredWarning(
                "damaged",
                f"{len(verification.lost)} of {len(verification.verdicts)} files are damaged or "
                f"missing, and are left out ({named}{more})",
                {"files": [asdict(each) for each in verification.lost]},
                "`uflip run --resume FOLDER` measures lost runs again; `uflip verify FOLDER` lists "
                "the status of each file",
            )
        )
    unproven = [each for each in verification.verdicts if each.state == UNPROVEN]
    if unproven:
        warnings.append(
            StoredWarning(
                "unproven",
                f"{len(unproven)} of {len(verification.verdicts)} files cannot be verified "
                f"({unproven[0].reason})",
                {"files": [each.file for each in unproven]},
                "the files are readable and consistent; folders before format version 3 have no "
                "digests, in later ones the ledger is damaged or missing",
            )
        )
    return warnings


# Warnings that follow from data and conditions: a resumed benchmark computes them again.
CONDITIONS = (
    "pause_too_short",
    "beyond_endurance",
    "state_not_enforced",
    "buffered_io",
    "compressible_data",
    "sparse_file",
    "busy_host",
    "virtual_disk",
    "out_of_time",
)


def plan_warnings(warnings: Sequence[WarningRecord]) -> list[WarningRecord]:
    """Return the stored warnings that existed before the first run."""
    recomputed = {
        *MARKS,
        "rate_limited",
        "drift",
        "repetitions_disagree",
        "consistency",
        *CONDITIONS,
        *ENVIRONMENT_CODES,
        *(check.code for check in CHECKS),
    }
    return [warning for warning in warnings if warning.code not in recomputed]
