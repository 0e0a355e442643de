"""`uflip completion`: the script that completes commands in a shell, and what it proposes."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from uflip.cli.terminal import echo
from uflip.errors import UflipError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

SHELLS = ("bash", "zsh", "fish")
EPILOG = """\b
Examples:
  uflip completion bash > ~/.local/share/bash-completion/completions/uflip
  uflip completion zsh > ~/.zfunc/_uflip
  uflip completion fish > ~/.config/fish/completions/uflip.fish
"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", metavar="|".join(SHELLS), type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, devices, patterns, micro-benchmarks, figures and reproductions.
    """
    from uflip.cli.main import COMPLETION, cli

    script = get_completion_class(shell)
    assert script is not None, "click has one for each of SHELLS"
    source = script(cli, {}, "uflip", COMPLETION).source()
    if shell == "bash":
        # bash divides words at colons by default, and `sim:demo` is one word.
        source = f"COMP_WORDBREAKS=${{COMP_WORDBREAKS//:}}\n{source}"
    echo(source)


def propose_devices(
    _context: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Propose simulated devices, free block devices, and profile files after `sim:`."""
    from uflip.device.catalogue import known_devices

    start, _, path = incomplete.partition(":")
    if start in ("file", "sim") and (start == "file" or "/" in path or path.endswith(".")):
        return _paths(f"{start}:", path, suffix=".toml" if start == "sim" else "")
    try:
        devices = known_devices()
    except UflipError:
        devices = []
    names = [CompletionItem(each["url"], help=each["description"]) for each in devices]
    return [each for each in (*names, CompletionItem("file:")) if each.value.startswith(incomplete)]


def _paths(prefix: str, typed: str, suffix: str) -> list[CompletionItem]:
    folder = Path(typed).parent if typed and not typed.endswith("/") else Path(typed or ".")
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    base = typed[: typed.rfind("/") + 1]
    names = [
        f"{base}{each.name}{'/' if each.is_dir() else ''}"
        for each in entries
        if each.is_dir() or each.name.endswith(suffix)
    ]
    return [CompletionItem(prefix + name) for name in names if name.startswith(typed)]


def propose_micro_benchmarks(
    _context: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Propose micro-benchmarks, after the last comma of a list."""
    from uflip.microbench import MICRO_BENCHMARKS

    before, comma, _ = incomplete.rpartition(",")
    return matching((before + comma + name for name in MICRO_BENCHMARKS), incomplete)


def alternatives_of(form: str) -> "Completer | None":
    """Return a completer for an option whose help shows all its values, as in `SR|RR|SW|RW`."""
    if "|" not in form or not all(word.replace("-", "").isalnum() for word in form.split("|")):
        return None
    return lambda _context, _param, incomplete: matching(form.split("|"), incomplete)


def matching(names: "Iterable[str]", incomplete: str) -> list[CompletionItem]:
    """Return the proposals that begin with the typed text."""
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
