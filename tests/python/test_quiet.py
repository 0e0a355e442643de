"""Does --quiet mean the same for all verbs: results, and nothing else?"""

from pathlib import Path

import click
import pytest
from command_line import uflip

from uflip.cli.common import quiet_option
from uflip.cli.main import VERBS, cli

SMALL_SIM = "sim:demo?blocks_per_die=64"
RUN = (SMALL_SIM, "--scale", "quick", "--only", "order", "--state", "as-is")

LOG = Path(__file__).parents[2] / "crates" / "foreign" / "tests" / "data" / "fio-3.33_lat.1.log"

# The words of a command -> how the lines begin that --quiet leaves out.
COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("run", *RUN, "--out", "{new}"): ("Results are in", "  uflip ", ""),
    ("pattern", SMALL_SIM, "--pattern", "RW", "--io-count", "100"): (),
    ("sweep", SMALL_SIM, "--vary", "gc=greedy,cyclic", "--pattern", "RW", "--untimed"): (),
    ("prepare", "null", "--state", "sequential"): ("null is in state",),
    ("prepare", "null", "--dry-run"): ("random state over", "wear:"),
    ("deallocate", "sim:demo", "--target-size", "1MiB"): ("1 MiB of sim:demo are",),
    ("export", "results", "-o", "{new}"): ("{new}:",),
    ("report", "results", "-o", "{new}.html"): ("{new}",),
    ("verify", "results"): (),
    ("oc", "run", "sim:dfc", "--scale", "quick", "--only", "oc0", "--out", "{new}"): (
        "Results are in",
        "  uflip ",
        "",
    ),
    ("oc", "pattern", "sim:dfc", "--pages", "16"): (),
    ("replay", "trace.csv", "sim:demo"): (),
    ("import", "fio-log", str(LOG), "--out", "{new}"): ("Results are in", "  uflip ", ""),
    ("serve", "sim:demo"): (),
    ("submit", "results", "http://127.0.0.1:9"): (),
    ("site", "seed", "{new}"): (),
    ("selftest",): (),
    ("reproduce", "ofc-fig5a"): (),
}
# What takes long, and whose only word besides is that of the display; what needs a recording, a
# client or a site, and is tried where these are.
NOT_TRIED = {"selftest", "reproduce", "replay", "serve", "submit", "site"}


def quiet_commands() -> dict[str, click.Option]:
    """The option of every command that has it."""
    found = {}
    context = click.Context(cli)
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        inner = getattr(command, "commands", {"": command})
        for name, each in inner.items():
            for option in each.params:
                if "--quiet" in option.opts:
                    found[f"{verb} {name}".strip()] = option
    return found


def test_the_option_is_one() -> None:
    """One text and one flag, and every command that has it is tried here."""

    @quiet_option
    def nothing() -> None:
        pass

    (wanted,) = nothing.__click_params__  # type: ignore[attr-defined]
    found = quiet_commands()
    assert {(option.help, tuple(option.opts)) for option in found.values()} == {
        (wanted.help, tuple(wanted.opts))
    }
    tried = {" ".join(words[: 2 if words[0] in {"oc", "site"} else 1]) for words in COMMANDS}
    assert tried == set(found)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quiet") / "results"
    assert uflip("run", *RUN, "--out", folder).code == 0
    return folder


@pytest.mark.parametrize("words", [each for each in COMMANDS if each[0] not in NOT_TRIED], ids=str)
def test_quiet_leaves_out_what_was_not_found(
    words: tuple[str, ...], results: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "results").symlink_to(results)
    monkeypatch.setenv("UFLIP_PROGRESS", "0.000001")

    def done(name: str, *options: str) -> tuple[list[str], str]:
        given = uflip(*(word.replace("{new}", name) for word in words), *options)
        assert given.code == 0, given.err
        # How long it took is no result.
        return [line.partition(" · in ")[0] for line in given.out.splitlines()], given.err

    said, _ = done("loud")
    kept, err = done("soft", "--quiet")
    assert err == ""
    assert done("json", "--json")[1] == ""
    notes = tuple(note.replace("{new}", "loud") for note in COMMANDS[words])
    left_out = [line for line in said if line not in kept]
    assert all(line.startswith(notes or "never") for line in left_out), left_out
    assert [line for line in kept if line not in said] == []
    for note in filter(None, notes):
        assert not any(line.startswith(note) for line in kept)
        assert any(line.startswith(note) for line in said)
