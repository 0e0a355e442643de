"""Errors with four parts (what, where, got and allowed, what to do) and their exit codes.

Every failure that a user can meet is a `UflipError`. Its class is the kind of the failure, which
fixes the exit code of the command line: a script can distinguish a refusal from a broken disk.
`EXIT_CODES` is the only list of them; the help text and the documentation are generated from it.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypedDict

from uflip import _native


class ErrorDocument(TypedDict):
    """An error as `--json` prints it."""

    kind: str
    what: str
    where: str
    got: str
    allowed: str
    action: str
    exit_code: int


class UflipError(Exception):
    """A failure with a description and an action.

    Parameters
    ----------
    what : str
        What failed, in one sentence without a full stop.
    where : str
        The option, path, URL or key concerned.
    got : str
        The value that was given or found.
    allowed : str
        The allowed values.
    action : str
        The next step for the user.

    Examples
    --------
    >>> print(UsageError("The ratio of a mix is at least 1", where="--ratio", got="0"))
    The ratio of a mix is at least 1
      where    --ratio
      got      0
    """

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(
        self, what: str, where: str = "", got: str = "", allowed: str = "", action: str = ""
    ) -> None:
        # All five go to Exception.args, in order: this keeps the error picklable.
        super().__init__(what, where, got, allowed, action)
        self.what = what
        self.where = where
        self.got = got
        self.allowed = allowed
        self.action = action

    def parts(self) -> dict[str, str]:
        """Return the parts by name, empty ones included, as `--json` prints them."""
        return {
            "kind": self.kind,
            "what": self.what,
            "where": self.where,
            "got": self.got,
            "allowed": self.allowed,
            "action": self.action,
        }

    def __str__(self) -> str:
        rows = (
            ("where", self.where),
            ("got", self.got),
            ("allowed", self.allowed),
            ("do", self.action),
        )
        lines = [self.what]
        for label, text in rows:
            if text:
                # Show leading and trailing blanks; further lines keep their column.
                value = text if text == text.strip() else repr(text)
                lines.append(f"  {label:<8} " + value.replace("\n", "\n" + " " * 11))
        return "\n".join(lines)


class UsageError(UflipError):
    """The request itself is wrong: a bad value, an unknown name, incompatible options."""

    kind = "usage"
    exit_code = 2


class RefusedError(UflipError):
    """The request is valid, but could destroy data."""

    kind = "refused"
    exit_code = 3


class DeviceError(UflipError):
    """The device cannot be opened, or an I/O on it failed."""

    kind = "device"
    exit_code = 4


class ResultsError(UflipError):
    """A result folder cannot be written, or cannot be read back."""

    kind = "results"
    exit_code = 5


class UnavailableError(UflipError):
    """An optional library, or a feature of this kernel or file system, is missing."""

    kind = "unavailable"
    exit_code = 6


class SlowerError(UflipError):
    """A comparison found an experiment slower than the accepted limit."""

    kind = "slower"
    exit_code = 7


class InterruptedRun(UflipError):  # noqa: N818 -- an interruption is a request, not an error
    """The user stopped the work (Ctrl-C)."""

    kind = "interrupted"
    exit_code = 130


class TerminatedRun(InterruptedRun):
    """The process received SIGTERM."""

    kind = "terminated"
    exit_code = 143


class HungUpRun(InterruptedRun):
    """The terminal of the process was closed (SIGHUP)."""

    kind = "hung_up"
    exit_code = 129


EXIT_CODES: dict[str, tuple[int, str]] = {
    "ok": (0, "success"),
    "internal": (1, "a bug in uflip; please report it"),
    "usage": (2, "the command is wrong: unknown name, bad value, options that do not fit"),
    "refused": (3, "refused, because it could destroy data; nothing was touched"),
    "device": (4, "the device cannot be opened, or an I/O failed"),
    "results": (5, "the result folder exists already, cannot be written, or cannot be read"),
    "unavailable": (6, "an optional library, a feature of the system, or memory is missing"),
    "slower": (7, "a comparison found an experiment slower than the accepted limit"),
    "hung_up": (129, "stopped by SIGHUP; finished runs stay readable"),
    "interrupted": (130, "stopped with Ctrl-C; finished runs stay readable"),
    "terminated": (143, "stopped by SIGTERM; finished runs stay readable"),
}
"""Name of the kind -> (exit code, meaning)."""

ANY_NAME = "use one of the allowed names"
"""What to do about an unknown name that resembles no known one."""

MAX_SUGGESTIONS = 3

_KINDS: dict[str, type[UflipError]] = {
    cls.kind: cls
    for cls in (
        UflipError,
        UsageError,
        RefusedError,
        DeviceError,
        ResultsError,
        UnavailableError,
        SlowerError,
        InterruptedRun,
        TerminatedRun,
        HungUpRun,
    )
}


def from_native(error: _native.NativeError) -> UflipError:
    """Turn an error of the native part into the class of its kind.

    `error`: a `NativeError`, whose args are (kind, what, where, got, allowed, action). An error
    of an unknown kind becomes a plain `UflipError` (internal).
    """
    kind, *parts = (str(part) for part in error.args) if error.args else ("internal", str(error))
    converted = _KINDS.get(kind, UflipError)(*parts[:5])
    if converted.action == ANY_NAME:
        converted.action = suggested(converted.got.strip("'"), converted.allowed.split(", "))
    return converted


def interrupted_by(signal_number: int | None, error: UflipError) -> UflipError:
    """Return an interruption as the class of the signal that caused it; the text stays.

    Examples
    --------
    >>> interrupted_by(15, InterruptedRun("Interrupted")).exit_code
    143
    """
    code = 128 + (signal_number or 2)
    cls = next((cls for cls in _KINDS.values() if cls.exit_code == code), InterruptedRun)
    return cls(*error.args)


@contextmanager
def native_errors() -> Iterator[None]:
    """Convert errors of native calls to `UflipError`.

    Raises UflipError of the class that belongs to the kind of the native error.
    """
    try:
        yield
    except _native.NativeError as error:
        raise from_native(error) from None


def wrong_argument(what: str, where: str, got: object, makers: str) -> UsageError:
    """Return the error for an argument that is not a pattern made by the functions `makers`.

    Examples
    --------
    >>> print(wrong_argument("A mix needs two basic patterns", "mix", "RW", "uflip.basic"))
    A mix needs two basic patterns
      where    mix
      got      'RW'
      allowed  a pattern made by uflip.basic
      do       make a pattern first
    """
    is_sequence = isinstance(got, list | tuple)
    action = "pass them as separate arguments" if is_sequence else "make a pattern first"
    return UsageError(what, where, repr(got), f"a pattern made by {makers}", action=action)


def suggested(got: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: the known ones that it begins, or the nearest.

    Examples
    --------
    >>> suggested("rw", ["SR", "RW"]), suggested("spare", ["gc", "spare_factor", "spare_bytes"])
    ('did you mean RW?', 'did you mean spare_factor or spare_bytes?')
    """
    folded = {name.casefold(): name for name in known}
    word = got.casefold()
    close = [folded[name] for name in folded if word and name.startswith(word)]
    if not 0 < len(close) <= MAX_SUGGESTIONS:
        close = [folded[name] for name in difflib.get_close_matches(word, folded, n=1)]
    return f"did you mean {' or '.join(close)}?" if close else ANY_NAME


def unknown_name(
    kind_of_thing: str, got: str, known: Iterable[str], where: str = "", suggestion: str = ""
) -> UsageError:
    """Return the error for an unknown name, with all names and the nearest one.

    `kind_of_thing`: what the name stands for: "profile", "micro-benchmark", .... `got`: the name
    that was given. `known`: the names that exist. `where`: the option or place that contains the
    name. `suggestion`: the name to suggest; by default the nearest known one.

    Examples
    --------
    >>> print(unknown_name("pattern", "RWW", ["SR", "RR", "SW", "RW"], where="--pattern"))
    Unknown pattern
      where    --pattern
      got      'RWW'
      allowed  SR, RR, SW, RW
      do       did you mean RW?
    """
    names = list(known)
    return UsageError(
        f"Unknown {kind_of_thing}",
        where=where,
        # From Python the value can be of any type.
        got=f"'{got}'" if isinstance(got, str) else repr(got),
        allowed=", ".join(names) if names else "(no names exist)",
        action=f"did you mean {suggestion}?" if suggestion else suggested(str(got), names),
    )
