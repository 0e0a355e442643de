"""Optional libraries: the error for a missing one names a command that installs it here."""

import sys
from importlib import metadata
from pathlib import Path

from uflip.errors import UnavailableError


def missing_extra(extra: str, what: str, *, where: str = "", instead: str = "") -> UnavailableError:
    """Return the error for a missing library of an extra of `pyproject.toml`.

    `what` needs it; `instead` is what works without it.
    """
    libraries = libraries_of(extra)
    return UnavailableError(
        what,
        where=where,
        got="a Python environment without it",
        allowed=", ".join(libraries),
        action="; ".join(filter(None, (install_command(extra, libraries), instead))),
    )


def libraries_of(extra: str) -> list[str]:
    """Return the requirements of an extra, as `name>=version`."""
    try:
        required = metadata.requires("uflip") or []
    except metadata.PackageNotFoundError:  # modules on the path, without an installation
        return [extra]
    marks = (f"extra == '{extra}'", f'extra == "{extra}"')
    return [each.split(";")[0].strip() for each in required if each.endswith(marks)]


def install_command(extra: str, libraries: list[str]) -> str:
    """Return the command that adds an extra to this installation.

    The package name alone is enough only for a package of an index: from a checkout or a wheel
    file, the libraries themselves are installed.
    """
    words = " ".join(f"'{each}'" for each in libraries)
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject uflip {words}"
    if (prefix / "uv-receipt.toml").exists():
        return "uv tool install uflip " + " ".join(f"--with '{each}'" for each in libraries)
    if is_from_index():
        return f"pip install 'uflip[{extra}]'"
    return f"{sys.executable} -m pip install {words}"


def is_from_index() -> bool:
    """Return whether the package was installed by its name, not from a checkout or a file."""
    try:
        return metadata.distribution("uflip").read_text("direct_url.json") is None
    except metadata.PackageNotFoundError:
        return False
