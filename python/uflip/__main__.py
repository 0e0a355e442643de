"""The command `uflip`, and `python -m uflip`: ready to be ended before anything else is loaded."""

from uflip import ends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command line of this process."""
    ends.install()
    from uflip.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
