"""uflip: measure flash devices, explain them, simulate them.

The command line is `uflip` (`uflip.cli`). As a library:

>>> import uflip
>>> with uflip.open_device("null") as device:
...     trace = device.run(uflip.baseline("RR", io_size="4k", io_count=100))
>>> len(trace)
100

What is named here is imported when it is asked for: the command line must be able to answer Ctrl-C
before numbers and native code are loaded.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` itself takes as long as all else until a signal can be answered
if TYPE_CHECKING:
    from typing import Any

    from uflip._native import __version__
    from uflip.device.catalogue import inspect_device, known_devices
    from uflip.device.opened import Device
    from uflip.device.opening import open_device
    from uflip.errors import UflipError
    from uflip.spec import baseline, basic, mix, parallel

__all__ = [
    "Device",
    "UflipError",
    "__version__",
    "baseline",
    "basic",
    "inspect_device",
    "known_devices",
    "mix",
    "open_device",
    "parallel",
]

_HOMES = {
    "__version__": "_native",
    "inspect_device": "device.catalogue",
    "known_devices": "device.catalogue",
    "UflipError": "errors",
    "Device": "device.opened",
    "open_device": "device.opening",
    "baseline": "spec",
    "basic": "spec",
    "mix": "spec",
    "parallel": "spec",
}


def __getattr__(name: str) -> "Any":
    """Import what is asked for by its name."""
    if name not in _HOMES:
        raise AttributeError(f"module 'uflip' has no attribute {name!r}")
    return getattr(import_module(f"uflip.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List what can be asked for."""
    return sorted({*globals(), *__all__})
