"""Power cuts of a simulated device."""

from uflip import _native
from uflip.benchmark_options import MAX_IOS_IN_FLIGHT
from uflip.data.power import PowerLoss, read_power_loss
from uflip.data.spec import Spec, text_of
from uflip.native_wait import OnProgress, run_native
from uflip.units import parse_count, parse_duration


class LosesPower:
    """The power cuts of a `Device`."""

    durability: str
    _state_name: str | None

    def _opened(self) -> _native.Device:
        raise NotImplementedError

    def cut_power(
        self,
        after_ns: int = 0,
        spec: Spec | None = None,
        queue_depth: int = 1,
        on_progress: OnProgress | None = None,
    ) -> PowerLoss:
        """Cut the power of a simulated device while it works, and let it recover.

        Its profile needs the table `[power_loss]`: `sim:demo?power_loss_protection=false` and
        `spare_read_bytes=16` add it. Writes have the durability of the device.

        Parameters
        ----------
        after_ns : int
            Time before the power cut, with the pattern or idle [ns].
        spec : Spec, optional
            The load of the host until then: any pattern for `run`; its I/Os follow each other, and
            after it the device idles.
        queue_depth : int
            Number of I/Os in flight.
        on_progress : callable, optional
            Called about ten times a second, while it recovers too, with (I/Os made, I/Os of the
            pattern, 0).

        Returns
        -------
        PowerLoss
            Lost data, pages read for recovery, and the time until the device was ready again.

        Raises
        ------
        UsageError
            If the device is not simulated, or does not track the content of its flash; for an
            invalid time or depth.
        """
        after = parse_duration(after_ns, "after_ns")
        depth = parse_count(queue_depth, "queue_depth", 1, MAX_IOS_IN_FLIGHT)
        self._state_name = None
        text = None if spec is None else text_of(spec)
        arguments = (after, text, self.durability, depth)
        report = run_native(lambda: self._opened().cut_power(*arguments), on_progress)
        return read_power_loss(report)
