"""The request for a benchmark: how the device is opened, and which plan it gets."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

from uflip.benchmark.estimate import QUICK_NS, Reduction, fit_to_budget, within_limits
from uflip.benchmark.events import OnEvent
from uflip.benchmark.plan import Choices, Plan, make_plan, method_for, overwrites_for
from uflip.benchmark.plan_file import check_plan_device, read_plan
from uflip.benchmark.prepare import known_state, open_watched, record_of, used_bytes
from uflip.benchmark.state import default_state, plan_state
from uflip.benchmark_options import SCALE, SEED, SUITE
from uflip.data.device import OPEN_CHANNEL, DeviceInfo
from uflip.device.catalogue import inspect_device
from uflip.device.guard import DATA, IO_TIMEOUT_NS, check_simulated, check_target_allowed
from uflip.device.handle import Device
from uflip.device.identity import model_identity
from uflip.device.opener import interface_of
from uflip.device.url import parse_url
from uflip.durability import durability_or_default
from uflip.errors import DeviceError, UsageError
from uflip.microbench.experiment import BASELINE_IO_SIZE
from uflip.units import format_size

PLAN_SETTINGS = (
    "suite", "scale", "only", "seed", "io_size", "pause_ns", "repetitions", "method", "state",
    "target_size", "durability", "budget_ns",
)  # fmt: skip
"""Fields of a request that a plan file contains."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRequest:
    """A request for a benchmark; None leaves the choice to the method."""

    device: str  #: Its name, as in `uflip.device.url`.
    #: Options of the plan, see `uflip.benchmark.Choices`.
    suite: str | None = None
    scale: str | None = None
    only: Sequence[str] | None = None
    seed: int | None = None
    io_size: int | None = None
    pause_ns: int | None = None
    repetitions: int | None = None
    method: str | None = None
    #: State to be enforced, and the used part of the device.
    state: str | None = None
    target_size: int | None = None
    #: Runs beyond these limits are skipped [bytes, ns].
    max_bytes_written: int | None = None
    max_time_ns: int | None = None
    #: Time for the state and all runs: the plan is reduced to it, see `estimate` [ns].
    budget_ns: int | None = None
    plan_file: Path | None = None  #: The plan, instead of all of these but the limits.
    record: Path | None = None  #: Path of the state record.
    #: As for `uflip.open_device`.
    size: int | None = None
    buffered: bool = False
    durability: str | None = None
    data: str = DATA[0]
    destroy: str | None = None
    io_timeout_ns: int = IO_TIMEOUT_NS
    completion: str | None = None
    power: str | None = None
    sacrifice: str | None = None  #: CHANNEL:LUN:BLOCK of an open-channel device, to be worn out.
    live_ns: int | None = None  #: Interval of the rows in `LiveRows` [ns]; None: no such events.
    inside: bool = False  #: Whether a device log is recorded with each run of a simulated device.

    def __post_init__(self) -> None:
        """Refuse options that conflict with the plan file."""
        if self.plan_file is None:
            return
        for name in PLAN_SETTINGS:
            if getattr(self, name) is not None:
                option = f"--{name.removesuffix('_ns').replace('_', '-')}"
                raise UsageError(
                    "The plan file contains this setting",
                    where=option,
                    got=f"{option} with --plan {self.plan_file}",
                    action="edit the file, or omit one of the two",
                )

    @property
    def is_open_channel(self) -> bool:
        """Whether the device is an open-channel one, and its benchmark uFLIP-OC."""
        target = parse_url(self.device)
        return target.kind == "sim" and interface_of(target) == OPEN_CHANNEL

    def check_jobs(self) -> None:
        """Refuse options that do not apply to an open-channel device."""
        applies = {"device", "scale", "only", "sacrifice", "inside"}
        for field in fields(self):
            if field.name not in applies and getattr(self, field.name) != field.default:
                name = field.name.removesuffix("_ns").removesuffix("_file").replace("_", "-")
                raise UsageError(
                    "This option does not apply to an open-channel device",
                    where=f"--{name}",
                    got=str(getattr(self, field.name)),
                    allowed="--scale, --only, --sacrifice, --inside, --out",
                    action="omit it: jobs follow from the geometry and the scale",
                )

    def check(self) -> None:
        """Refuse a device that must not be written to, before anything else is checked."""
        if self.inside:
            check_simulated(self.device)
        check_target_allowed(
            self.device,
            size=self.size,
            buffered=self.buffered,
            data=self.data,
            destroy=self.destroy,
            completion=self.completion,
            power=self.power,
        )

    def inspect(self) -> DeviceInfo:
        """Describe the device as it will be; the device is not touched."""
        return inspect_device(self.device, size=self.size, buffered=self.buffered)

    def open(
        self, info: DeviceInfo, durability: str, on_event: OnEvent, *, writable: bool = True
    ) -> Device:
        """Open the device, by default for writing."""
        opened = open_watched(
            self.device,
            info,
            on_event,
            size=self.size,
            buffered=self.buffered,
            data=self.data,
            destroy=self.destroy,
            durability=durability,
            io_timeout_ns=self.io_timeout_ns,
            completion=self.completion,
            power=self.power,
            writable=writable,
        )
        opened.looks_inside, opened.live_ns = self.inside, self.live_ns
        return opened

    def resolved_durability(self) -> str:
        """Return the durability of writes without a plan file."""
        return durability_or_default(self.durability, buffered=self.buffered)

    def plan(self, info: DeviceInfo) -> Plan:
        """Make or read the plan for a device. The device is not touched."""
        if self.plan_file is not None:
            plan = read_plan(self.plan_file, info)
        else:
            plan = self._plan_within_budget(info)
        return within_limits(plan, self.max_bytes_written, self.max_time_ns)

    def _plan_within_budget(self, info: DeviceInfo) -> Plan:
        """Return the plan, reduced to the budget; a quick plan uses a part of a large device."""

        def make(reduction: Reduction) -> Plan:
            changes = {name: value for name, value in vars(reduction).items() if value is not None}
            return replace(self, **changes)._whole_plan(info)

        if self.budget_ns is not None:
            settings = ("target_size", "repetitions", "scale")
            fixed = [name for name in settings if getattr(self, name) is not None]
            return fit_to_budget(
                make, partial(self.preparation_ns, info), self.budget_ns, fixed=fixed
            )
        if self.scale == "quick" and self.target_size is None and info.real and not info.zoned:
            return fit_to_budget(
                make, partial(self.preparation_ns, info), QUICK_NS, only_target=True
            )
        return self._whole_plan(info)

    def _whole_plan(self, info: DeviceInfo) -> Plan:
        scale = SCALE if self.scale is None else self.scale
        seed = SEED if self.seed is None else self.seed
        return make_plan(info, scale, seed, self._choices(info))

    def preparation_ns(self, info: DeviceInfo, plan: Plan) -> int:
        """Return the time until the device is in the state of a plan; 0 if it is already [ns].

        A plan without runs is refused, before its state is enforced.
        """
        if plan.state is None or not plan.runs or self.is_in_state(info, plan):
            return 0
        return plan.state.time_ns

    def is_in_state(self, info: DeviceInfo, plan: Plan) -> bool:
        """Return whether the device is known to be in the state of a plan."""
        return known_state(info, plan.state, record_of(info, self.device, self.record)) is not None

    def finalize_plan(self, plan: Plan, info: DeviceInfo) -> Plan:
        """Return the plan for the device, now that it is open."""
        if model_identity(info) != model_identity(plan.device):
            raise DeviceError(
                "The device changed during the start",
                where=info.url,
                got=f"{format_size(info.capacity_bytes)} in sectors of {info.sector_bytes} B",
                allowed="the device that the plan was made for",
                action="check which other process uses it, and repeat the command",
            )
        if self.plan_file is not None:
            # The content of a file is known only when it is open.
            check_plan_device(self.plan_file, info)
        return replace(plan, device=info)

    def _choices(self, info: DeviceInfo) -> Choices:
        state = default_state(info) if self.state is None else self.state
        record = record_of(info, self.device, self.record)
        # A wrong state or target is an error of the plan, not of the record.
        has_state = record is not None and record.state is not None
        scale = SCALE if self.scale is None else self.scale
        overwrite_count = overwrites_for(method_for(scale, self.method))
        enforcement = (
            plan_state(info, state, self.target_size, overwrites=overwrite_count)
            if has_state
            else None
        )
        return Choices(
            suite=SUITE if self.suite is None else self.suite,
            only=None if self.only is None else tuple(self.only),
            io_size=BASELINE_IO_SIZE if self.io_size is None else self.io_size,
            pause_ns=self.pause_ns,
            target_size=self.target_size,
            state=state,
            repetitions=self.repetitions,
            method=self.method,
            durability=self.resolved_durability(),
            used_bytes=used_bytes(enforcement, record),
        )
