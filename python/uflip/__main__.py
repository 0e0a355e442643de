"""The command `uflip` and `python -m uflip`: install the signal handlers, then load the rest."""

import os

from uflip import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command line of this process."""
    signals.install()
    # OpenBLAS would start a spinning thread per processor in every process, which disturbs
    # measurements.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from uflip.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
