"""Saving a simulated device to a file: a block device or an open-channel device."""

from pathlib import Path

from uflip import _native
from uflip.device.url import check_snapshot_name
from uflip.native_wait import COMPUTE_CANCEL_TIMEOUT_S, run_native


class Saved:
    """The method of `Device` and `FlashDevice` that saves it to a file."""

    def _opened(self) -> _native.Device | _native.FlashDevice:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write a simulated device with its whole state to a new file.

        `open_device("sim:" + path)`, or `open_flash_device` for an open-channel device, opens it
        again; it then continues as this one would.

        Parameters
        ----------
        path : str or Path
            Ends in ".snapshot"; the name must not exist.

        Raises
        ------
        UsageError
            If the device is not simulated, or the name has another ending.
        ResultsError
            If the file exists, or cannot be written.
        """
        check_snapshot_name(path)
        run_native(
            lambda: self._opened().save(str(path)), cancel_timeout_s=COMPUTE_CANCEL_TIMEOUT_S
        )
