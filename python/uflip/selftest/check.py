"""A check of the self-test, and its row of results."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SelfTestRow:
    """The expected and the simulated value of a check.

    Attributes
    ----------
    name : str
        The quantity, and what was varied.
    device : str
        The simulated device, as `uflip info` and `uflip pattern` take it.
    expected : float
        Value of the closed form.
    measured : float
        Value of the simulator.
    deviation : float
        (measured - expected) / expected.
    tolerance : float
        The largest allowed deviation, in either direction.
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
    """A check of the self-test.

    Attributes
    ----------
    name, device, tolerance
        As in `SelfTestRow`.
    measure : callable
        Opens the device of this URL and returns (expected, measured).
    """

    name: str
    device: str
    tolerance: float
    measure: Callable[[str], tuple[float, float]]

    def run(self) -> SelfTestRow:
        """Run the check.

        Examples
        --------
        >>> SelfTest("one", "sim:demo", 0.01, lambda device: (1.0, 1.005)).run().within
        True
        """
        expected, measured = self.measure(self.device)
        deviation = measured / expected - 1
        within = abs(deviation) <= self.tolerance
        return SelfTestRow(
            self.name, self.device, expected, measured, deviation, self.tolerance, within
        )
