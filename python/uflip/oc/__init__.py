"""uFLIP-OC: open-channel devices, whose host places data itself.

A package of its own beside `uflip.microbench`: jobs go over physical addresses instead of patterns
over sectors, and a micro-benchmark measures as well as it lays out, because what it does next
depends on the geometry alone.
"""

from uflip.data.spec import Job
from uflip.microbench.open_channel.series import ResponseSeries, mb_per_s
from uflip.oc.device import FlashDevice, open_flash_device

__all__ = ["FlashDevice", "Job", "ResponseSeries", "mb_per_s", "open_flash_device"]
