"""File status: the verification result of a file in a result folder."""

from dataclasses import dataclass
from typing import Literal

State = Literal["proven", "unproven", "impossible", "damaged", "foreign", "missing"]
PROVEN: State = "proven"
UNPROVEN: State = "unproven"
STATES: dict[str, str] = {
    "proven": "unchanged since it was written: its digest is in the ledger",
    "unproven": "readable and plausible, but without a digest that proves it unchanged",
    "impossible": "unchanged since it was written, but no device can have these response times",
    "damaged": "changed since it was written",
    "foreign": "from another run or folder, or of no run of the plan",
    "missing": "written, but missing now",
}
"""State of a file -> its explanation."""


@dataclass(frozen=True)
class FileStatus:
    """The verification result of a file.

    Attributes
    ----------
    file : str
        Its name in the folder.
    state : str
        One of `STATES`.
    bytes : int
        Its length; 0 if it is missing.
    reason : str
        The fault, if there is one.
    costs : str
        The data that the fault loses.
    run : str or None
        The run that it contains.
    """

    file: str
    state: State
    bytes: int = 0
    reason: str = ""
    costs: str = ""
    run: str | None = None

    @property
    def usable(self) -> bool:
        """Return whether its content may be shown."""
        return self.state in (PROVEN, UNPROVEN)
