"""Management commands of a device: deallocation and zone commands."""

from uflip.data.document import plain
from uflip.data.spec import Spec, text_of
from uflip.data.zones import Zone, ZoneReport, read_zones
from uflip.device.powercut import LosesPower
from uflip.errors import UsageError, native_errors
from uflip.native_wait import run_native
from uflip.units import parse_count

COMMANDS = ("reset", "finish", "open", "close")
"""Zone commands without data."""


class Managed(LosesPower):
    """The management commands of a `Device`."""

    url: str

    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        """Deallocate a range of the device: its data is lost.

        A discard, a hole in a file, a trim over NBD; on a simulated device whole flash pages.

        Parameters
        ----------
        offset_bytes, size_bytes : int
            The range [bytes], whole sectors.

        Raises
        ------
        UflipError
            If the range is outside the device, the device does not support it, or is read-only.
        """
        offset = parse_count(offset_bytes, "offset_bytes")
        size = parse_count(size_bytes, "size_bytes")
        self._state_name = None
        with native_errors():
            self._opened().trim(offset, size)

    def zones(self) -> ZoneReport:
        """Return the current zones of the device.

        Returns
        -------
        ZoneReport

        Raises
        ------
        UsageError
            If the device has no zones.
        DeviceError
            If the zones cannot be read.

        Examples
        --------
        >>> from uflip.device.opener import open_device
        >>> with open_device("sim:zns") as device:
        ...     device.append(3, 8192), device.append(3, 4096), device.zones().zones[3].state
        ((301989888, 4060), (301998080, 2780), 'implicitly_open')
        """
        with native_errors():
            text = self._opened().zones_json()
        if text is None:
            raise UsageError(
                "The device has no zones",
                where=self.url,
                allowed="a simulated device with zones (sim:zns), or a zoned block device",
                action="see `uflip info DEVICE`",
            )
        return read_zones(text)

    def zone(self, number: int) -> Zone:
        """Return one zone; see `zones`.

        Raises
        ------
        UsageError
            If it is not the number of a zone.
        """
        number = parse_count(number, "number of a zone", -(2**63))
        zones = self.zones().zones
        if not 0 <= number < len(zones):
            raise UsageError(
                "The device has no such zone",
                where=self.url,
                got=str(number),
                allowed=f"0 to {len(zones) - 1}",
                action="`uflip zones DEVICE` lists them",
            )
        return zones[number]

    def append(self, number: int, size_bytes: int) -> tuple[int, int]:
        """Append to a zone: the device chooses the address of the data.

        Parameters
        ----------
        number : int
            Number of the zone.
        size_bytes : int
            Size of the data [bytes], whole sectors.

        Returns
        -------
        tuple of int
            Address of the data on the device [bytes], and the response time [ns].

        Raises
        ------
        UflipError
            If the zone refuses it; Linux does not support zone append on block devices.
        """
        zone, size = self.zone(number), parse_count(size_bytes, "size_bytes")
        response_ns = self._command("append", zone.start_bytes, size)
        return zone.write_pointer_bytes, response_ns

    def manage_zone(self, command: str, number: int) -> int:
        """Reset, finish, open or close a zone.

        Parameters
        ----------
        command : str
            One of `COMMANDS`. A reset deletes the data of the zone.
        number : int
            Number of the zone.

        Returns
        -------
        int
            The response time [ns].

        Raises
        ------
        UflipError
            For an unknown zone or command, or if the state of the zone does not permit it.
        """
        if command not in COMMANDS:
            raise UsageError(
                "Unknown zone command",
                got=command,
                allowed=", ".join(COMMANDS),
                action="name one of these",
            )
        return self._command(command, self.zone(number).start_bytes, self.zones().zone_bytes)

    def _command(self, command: str, offset_bytes: int, size_bytes: int) -> int:
        self._state_name = None
        with native_errors():
            return self._opened().zone_command(command, offset_bytes, size_bytes)

    def prepare_zones(self, spec: Spec) -> None:
        """Bring the zones of a pattern into the state that it needs; their data is lost.

        Zones that it writes are reset, zones that it only reads are filled, and no other zone is
        left open or closed. On a simulated device that takes no time.

        Parameters
        ----------
        spec : Spec
            The specification for `run`.

        Raises
        ------
        UflipError
            If the device has no zones, or refuses.
        """
        self._state_name = None
        run_native(lambda: self._opened().prepare_zones(text_of(spec)))


def zone_rows(report: ZoneReport) -> list[dict[str, object]]:
    """Return each zone with its number, as plain data."""
    return [{"zone": number, **plain(zone)} for number, zone in enumerate(report.zones)]
