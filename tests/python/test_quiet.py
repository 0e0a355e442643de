"""Does --quiet mean the same for all verbs: results, and nothing else?"""

from pathlib import Path

import click
import pytest
from command_line import uflip

from uflip.cli.main import VERBS, cli
from uflip.cli.options import quiet_option

SMALL_SIM = "sim:demo?blocks_per_die=64"
RUN = (SMALL_SIM, "--scale", "quick", "--only", "order", "--state", "as-is")

LOG = Path(__file__).parents[2] / "crates" / "foreign" / "tests" / "data" / "fio-3.33_lat.1.log"

# The words of a command -> the beginnings of the lines that --quiet omits.
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
    ("why", str(LOG)): (),
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
    ("infer", SMALL_SIM): (),
    ("reproduce", "ofc-fig5a"): (),
}
# What takes long, and whose only word besides is that of the display; what needs a recording, a
# client or a site, and is tried where these are.
NOT_TRIED = {"infer", "selftest", "reproduce", "replay", "serve", "submit", "site"}


def quiet_commands() -> dict[str, click.Option]:
    """The option of every command that has it."""
    options = {}
    context = click.Context(cli)
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None
        inner = getattr(command, "commands", {"": command})
        for name, each in inner.items():
            for option in each.params:
                if "--quiet" in option.opts:
                    options[f"{verb} {name}".strip()] = option
    return options


def test_quiet_option_is_identical_everywhere() -> None:
    """One text and one flag, and every command that has it is tried here."""

    @quiet_option
    def nothing() -> None:
        pass

    (expected,) = nothing.__click_params__  # type: ignore[attr-defined]
    options = quiet_commands()
    assert {(option.help, tuple(option.opts)) for option in options.values()} == {
        (expected.help, tuple(expected.opts))
    }
    tried = {" ".join(words[: 2 if words[0] in {"oc", "site"} else 1]) for words in COMMANDS}
    assert tried == set(options)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quiet") / "results"
    assert uflip("run", *RUN, "--out", folder).code == 0
    return folder


@pytest.mark.parametrize("words", [each for each in COMMANDS if each[0] not in NOT_TRIED], ids=str)
def test_quiet_prints_results_only(
    words: tuple[str, ...], results: Path, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workdir / "results").symlink_to(results)
    monkeypatch.setenv("UFLIP_PROGRESS", "0.000001")

    def done(name: str, *options: str) -> tuple[list[str], str]:
        outcome = uflip(*(word.replace("{new}", name) for word in words), *options)
        assert outcome.code == 0, outcome.err
        # The elapsed time is not a result.
        return [line.partition(" · in ")[0] for line in outcome.out.splitlines()], outcome.err

    full, _ = done("loud")
    brief, err = done("soft", "--quiet")
    assert err == ""
    assert done("json", "--json")[1] == ""
    notes = tuple(note.replace("{new}", "loud") for note in COMMANDS[words])
    left_out = [line for line in full if line not in brief]
    assert all(line.startswith(notes or "never") for line in left_out), left_out
    assert [line for line in brief if line not in full] == []
    for note in filter(None, notes):
        assert not any(line.startswith(note) for line in brief)
        assert any(line.startswith(note) for line in full)
