"""uflip: measure flash devices, explain them, simulate them.

The command line is `uflip` (`uflip.cli`). As a library, `uflip.api` has a function for each verb:

>>> import uflip
>>> uflip.plan("sim:demo", scale="quick", only=["order"]).repetitions
1

and a device can be driven run by run:

>>> with uflip.open_device("null") as device:
...     trace = device.run(uflip.baseline("RR", io_size="4k", io_count=100))
>>> len(trace)
100

Public names are imported on first use: the command line must be able to answer Ctrl-C before numpy
and the native module are loaded.
"""

from importlib import import_module

TYPE_CHECKING = False  # importing `typing` would double the time until a signal can be answered
if TYPE_CHECKING:
    from typing import Any

    from uflip._native import __version__
    from uflip.analysis import analyse
    from uflip.api import compare, load, pattern, plan, replay, resume, run
    from uflip.device.catalogue import inspect_device, known_devices
    from uflip.device.handle import Device
    from uflip.device.opener import open_device
    from uflip.errors import UflipError
    from uflip.result import Result
    from uflip.spec import baseline, basic, mix, parallel
    from uflip.sweeping import sweep
    from uflip.trace import Trace

__all__ = [
    "Device",
    "Result",
    "Trace",
    "UflipError",
    "__version__",
    "analyse",
    "baseline",
    "basic",
    "compare",
    "inspect_device",
    "known_devices",
    "load",
    "mix",
    "open_device",
    "parallel",
    "pattern",
    "plan",
    "replay",
    "resume",
    "run",
    "sweep",
]

_HOMES = {
    "Result": "result",
    "Trace": "trace",
    "analyse": "analysis",
    "compare": "api",
    "load": "api",
    "pattern": "api",
    "plan": "api",
    "replay": "api",
    "resume": "api",
    "run": "api",
    "sweep": "sweeping",
    "__version__": "_native",
    "inspect_device": "device.catalogue",
    "known_devices": "device.catalogue",
    "UflipError": "errors",
    "Device": "device.handle",
    "open_device": "device.opener",
    "baseline": "spec",
    "basic": "spec",
    "mix": "spec",
    "parallel": "spec",
}


def __getattr__(name: str) -> "Any":
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'uflip' has no attribute {name!r}")
    return getattr(import_module(f"uflip.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
