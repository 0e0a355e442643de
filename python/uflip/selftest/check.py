"""One check of the self-test, and the row that it gives."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SelfTestRow:
    """What theory expects and what the simulator gives.

    Attributes
    ----------
    name : str
        The quantity, and what was varied.
    device : str
        The simulated device, as `uflip info` and `uflip pattern` take it.
    expected : float
        What the closed form gives.
    measured : float
        What the simulator gives.
    deviation : float
        (measured - expected) / expected.
    tolerance : float
        The largest deviation, either way, that is right.
    within : bool
        Whether the deviation is within the tolerance.
    """

    name: str
    device: str
    expected: float
    measured: float
    deviation: float
    tolerance: float
    within: bool


@dataclass(frozen=True)
class SelfTest:
    """A check that can be made.

    Attributes
    ----------
    name, device, tolerance
        As in `SelfTestRow`.
    measure : callable
        Makes the device of this name and returns (expected, measured).
    """

    name: str
    device: str
    tolerance: float
    measure: Callable[[str], tuple[float, float]]

    def made(self) -> SelfTestRow:
        """Make the check.

        Examples
        --------
        >>> Check("one", "sim:demo", 0.01, lambda device: (1.0, 1.005)).made().within
        True
        """
        expected, measured = self.measure(self.device)
        deviation = measured / expected - 1
        within = abs(deviation) <= self.tolerance
        return SelfTestRow(
            self.name, self.device, expected, measured, deviation, self.tolerance, within
        )
