"""The self-test: the simulator against closed forms that it knows nothing of.

What the simulator counts and times comes from moving pages one by one; what theory says comes from
`uflip.models`. Both are right only if they agree. Three groups of checks, a file each, in the list
below; each check has a device of its own and can be repeated by hand from its name.
"""

from collections.abc import Callable

from uflip.executors import OnStep, ignore, on_all
from uflip.selftest import amplification, channels, relocation
from uflip.selftest.check import SelfTest, SelfTestRow

GROUPS: dict[str, Callable[[], list[SelfTest]]] = {
    "write amplification of victim policies": amplification.checks,
    "relocated pages of the cyclic buffer": relocation.checks,
    "rate of flash channels": channels.checks,
}
"""What a group of checks is about -> its checks, in the order in which they are made."""


def checks() -> list[SelfTest]:
    """Return all checks, in order."""
    return [check for group in GROUPS.values() for check in group()]


def run(on_step: OnStep = ignore) -> list[SelfTestRow]:
    """Make all checks, on all cores.

    Parameters
    ----------
    on_step : callable, optional
        Called with (checks made, name of the last one).

    Returns
    -------
    list of Row
        In the order of `checks`; the simulator is as it should be if all are `within`.
    """
    return on_all(SelfTest.made, checks(), on_step, lambda check: check.name)


__all__ = ["GROUPS", "SelfTest", "SelfTestRow", "checks", "run"]
