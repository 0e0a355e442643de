"""The command `uflip`, and `python -m uflip`: ready to be ended before anything else is loaded."""

import os

from uflip import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command line of this process."""
    signals.install()
    # numpy's algebra has a thread for every processor, each of which spins for a while for work
    # that never comes: beside a measurement, and in every process that is started.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from uflip.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
