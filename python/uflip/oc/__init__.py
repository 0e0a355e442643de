"""uFLIP-OC: open-channel devices, on which the host places data.

The package is separate from `uflip.microbench`: jobs use physical addresses instead of patterns
over sectors, and a micro-benchmark both plans and measures, because its jobs depend on the
geometry alone.
"""

from uflip.data.spec import Job
from uflip.microbench.open_channel.series import ResponseSeries, mb_per_s
from uflip.oc.device import FlashDevice, open_flash_device

__all__ = ["FlashDevice", "Job", "ResponseSeries", "mb_per_s", "open_flash_device"]
