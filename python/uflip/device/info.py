"""What is known about a device: plain data, which goes into every manifest."""

from typing import Any

DeviceInfo = dict[str, Any]
"""What is known about a device: url, kind, capacity_bytes, sector_bytes, clock, ..."""
