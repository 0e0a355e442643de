"""Files of jobs over physical addresses: read and check their logs."""

from collections.abc import Sequence
from pathlib import Path

from uflip import _native
from uflip.data.document import decode
from uflip.data.run import KIND
from uflip.data.spec import Spec, spec_hook
from uflip.errors import UflipError, native_errors


def read_log(path: Path, expected: tuple[int, str] | None = None) -> _native.FlashTrace:
    """Read the log of a job.

    Raises
    ------
    ResultsError
        If the file is damaged, or differs from `expected` (length [bytes], digest).
    """
    with native_errors():
        log = _native.read_flash_trace(str(path), expected)
    decode(path, KIND, log.job_json.encode(), Spec, dec_hook=spec_hook)
    return log


def check_logs(paths: Sequence[str]) -> list[str | None]:
    """Return why each file is not a valid log of a job; None for a valid one."""
    return [_problem(Path(path)) for path in paths]


def _problem(path: Path) -> str | None:
    try:
        read_log(path)
    except UflipError as error:
        return error.got or error.what
    return None
