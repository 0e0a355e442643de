"""The self-test: the simulator against independent closed forms.

The counters and times of the simulator come from moving pages one by one; the expected values come
from `uflip.models`. Both are right only if they agree. The list below has three groups of checks, a
file each; each check has a device of its own, whose URL lets a user repeat it by hand.
"""

from collections.abc import Callable

from uflip.executors import OnStep, ignore, on_all
from uflip.selftest import amplification, channels, relocation
from uflip.selftest.check import SelfTest, SelfTestRow

GROUPS: dict[str, Callable[[], list[SelfTest]]] = {
    "write amplification of victim policies": amplification.amplification_checks,
    "relocated pages of the cyclic buffer": relocation.relocation_checks,
    "rate of flash channels": channels.channel_checks,
}
"""Subject of a group -> its checks, in the order of execution."""


def checks() -> list[SelfTest]:
    """Return all checks, in order."""
    return [check for group in GROUPS.values() for check in group()]


def run(on_step: OnStep = ignore) -> list[SelfTestRow]:
    """Run all checks, on all cores.

    Parameters
    ----------
    on_step : callable, optional
        Called with (checks finished, name of the last one).

    Returns
    -------
    list of SelfTestRow
        In the order of `checks`; the simulator is correct if all are `within`.
    """
    return on_all(SelfTest.run, checks(), on_step, lambda check: check.name)


__all__ = ["GROUPS", "SelfTest", "SelfTestRow", "checks", "run"]
