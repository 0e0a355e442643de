"""Make `docs/reference/cli.md` from the help texts of the commands, so that the two cannot differ.

python tools/gen_cli_reference.py            write the page
python tools/gen_cli_reference.py --check    check that the page is current; exit 1 if not
"""

import sys
from pathlib import Path

import click
from generated import write_or_check

from uflip.cli.main import VERBS, cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
# The width of help in a terminal of 80 columns, independent of the current terminal.
WIDTH = 80

HEAD = """\
# Command line

This page is made from `uflip --help` and the help of each command by
`python tools/gen_cli_reference.py`; a test fails when it is not current. Do not edit it.

Sizes are read as fio reads them: `512`, `4k`, `32KiB`, `1g`, all powers of 1024. Durations need
their unit: `100us`, `1.5ms`, `2s`. Counts may have k, M or G, which are thousands, millions and
billions: `--io-count 100k`. The exit codes of commands are in [exit codes](exit-codes.md), their
JSON documents in [results](results-format.md).
"""


def page() -> str:
    """Return the whole page."""
    group = click.Context(cli, info_name="uflip", terminal_width=WIDTH, max_content_width=WIDTH)
    parts = [HEAD, section("uflip", cli.get_help(group))]
    for verb in VERBS:
        command = cli.get_command(group, verb)
        if command is None:
            raise SystemExit(f"the command {verb} is listed and does not exist")
        parts += sections(command, group, verb)
    return "\n".join(parts)


def sections(command: click.Command, parent: click.Context, name: str) -> list[str]:
    """Return the sections of a command, and of its subcommands."""
    context = click.Context(
        command, parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH
    )
    parts = [section(context.command_path, command.get_help(context))]
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is None:
                raise SystemExit(f"the command {name} {each} is listed and does not exist")
            parts += sections(inner, context, each)
    return parts


def section(name: str, text: str) -> str:
    """Return a heading and the help text below it."""
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {name}\n\n```text\n{lines}\n```\n"


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page()}))
