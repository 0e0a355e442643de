"""Make `docs/reference/cli.md` and the man page from the help texts of the commands.

python tools/gen_cli_reference.py            write both
python tools/gen_cli_reference.py --check    check that both are current; exit 1 if not
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from generated import write_or_check

from uflip.cli.main import GROUPS, HELP, VERBS, cli
from uflip.errors import EXIT_CODES

TOP = Path(__file__).resolve().parent.parent
PAGE = TOP / "docs" / "reference" / "cli.md"
MAN = TOP / "packaging" / "data" / "share" / "man" / "man1" / "uflip.1"
"""A wheel installs it below `share/man` of its environment."""
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


MAN_HEAD = """\
.TH UFLIP 1 "" "uflip" "User Commands"
.SH NAME
uflip \\- measure, explain and simulate flash devices
.SH SYNOPSIS
.B uflip
.I COMMAND
[\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]
.PP
.B uflip
.I COMMAND
.B \\-\\-help
prints the options of a command.
"""
ENVIRONMENT = """\
UFLIP_CACHE_DIR    folder of the device cache
UFLIP_CACHE_SIZE   maximum size of the device cache
UFLIP_PROGRESS     seconds between two lines of progress without a terminal; 0: none
UFLIP_SITE_TOKEN   token of a results site
"""


def help_texts() -> Iterator[tuple[str, str]]:
    """Return every command with its help text, in the order of `uflip --help`."""
    group = click.Context(cli, info_name="uflip", terminal_width=WIDTH, max_content_width=WIDTH)
    yield "uflip", cli.get_help(group)
    for verb in VERBS:
        command = cli.get_command(group, verb)
        if command is None:
            raise SystemExit(f"the command {verb} is listed and does not exist")
        yield from help_of(command, group, verb)


def help_of(command: click.Command, parent: click.Context, name: str) -> Iterator[tuple[str, str]]:
    """Return a command and its subcommands, each with its help text."""
    context = click.Context(
        command, parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            inner = command.get_command(context, each)
            if inner is None:
                raise SystemExit(f"the command {name} {each} is listed and does not exist")
            yield from help_of(inner, context, each)


def page() -> str:
    """Return the page of the documents."""
    parts = [f"## {name}\n\n```text\n{stripped(text)}\n```\n" for name, text in help_texts()]
    return "\n".join([HEAD, *parts])


def man_page() -> str:
    """Return the man page of `uflip`; each command has its options in its own help."""
    devices, steps = HELP.split("\b\n")[1:]
    parts = [MAN_HEAD, *section("DESCRIPTION", devices)]
    for title, verbs in GROUPS.items():
        parts.append(f".SH COMMANDS: {title.upper()}\n")
        parts += [f".TP\n.B {verb}\n{roff(text)}\n" for verb, text in verbs.items()]
    parts += section("EXAMPLES", steps)
    parts.append(".SH EXIT STATUS\n")
    parts += [f".TP\n.B {code}\n{roff(text)}\n" for code, text in EXIT_CODES.values()]
    parts += section("ENVIRONMENT", ENVIRONMENT)
    parts.append(".SH SEE ALSO\n.BR fio (1),\n.BR nvme (1)\n")
    return "".join(parts)


def section(title: str, text: str) -> list[str]:
    """Return a section of the man page whose lines stay as they are."""
    return [f".SH {title}\n.nf\n{roff(stripped(text))}\n.fi\n"]


def stripped(text: str) -> str:
    """Remove blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.splitlines())


def roff(text: str) -> str:
    """Escape a text for roff: backslashes, hyphens, quotes, and dots that would begin a request."""
    for character, escape in (("\\", "\\e"), ("-", "\\-"), ("`", "\\(ga"), ("'", "\\(aq")):
        text = text.replace(character, escape)
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(write_or_check({PAGE: page(), MAN: man_page()}))
