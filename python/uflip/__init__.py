"""uflip: measure flash devices, explain them, simulate them.

The command line is `uflip` (`uflip.cli`). As a library:

>>> import uflip
>>> with uflip.open_device("null") as device:
...     trace = device.run(uflip.baseline("RR", io_size="4k", io_count=100))
>>> len(trace)
100
"""

from uflip._native import __version__
from uflip.catalogue import inspect_device, known_devices
from uflip.errors import UflipError
from uflip.run import Device, open_device
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
