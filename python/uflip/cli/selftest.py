"""`uflip selftest`: compare the simulator with closed forms, and print the deviations."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from uflip.cli.options import executor_options, json_option, on_executor, quiet_option
from uflip.cli.progress import display, with_time_left
from uflip.cli.terminal import echo, echo_json, echo_table

if TYPE_CHECKING:
    from uflip.selftest import SelfTestRow

# A deviation from theory is a bug in uflip.
EXIT_CODE = 1


EPILOG = """\b
Examples:
  uflip selftest
  uflip selftest --json
"""


@click.command("selftest", epilog=EPILOG)
@executor_options
@quiet_option
@json_option
def command(
    *, jobs: int | None, workers: int | None, scheduler: str | None, quiet: bool, as_json: bool
) -> None:
    """Compare the simulator with theory: write amplification, relocated pages, channel rates.

    Takes less than a minute. Ends with exit code 1 if any row is not within its tolerance.
    """
    from uflip import selftest

    total = len(selftest.checks())
    with (
        on_executor(jobs, workers, scheduler),
        display(total, quiet=quiet or as_json) as sink,
    ):
        sink.draw(0, "")
        rows = selftest.run(with_time_left(sink, total))
    within = all(row.within for row in rows)
    if as_json:
        echo_json({"within": within, "rows": [asdict(row) for row in rows]})
    else:
        _print(rows)
    if not within:
        click.get_current_context().exit(EXIT_CODE)


def _print(rows: "list[SelfTestRow]") -> None:
    cells = [
        (
            row.name,
            f"{row.expected:.4g}",
            f"{row.measured:.4g}",
            f"{round(row.deviation, 4) + 0.0:+.2%}",
            "yes" if row.within else f"NO, {row.tolerance:.0%}",
        )
        for row in rows
    ]
    echo_table(("name", "expected", "measured", "deviation", "within"), cells)
    failed = [row for row in rows if not row.within]
    worst = max(abs(row.deviation) for row in rows)
    if not failed:
        echo(f"\nall {len(rows)} within; largest deviation {worst:.2%}")
        return
    echo(f"\n{len(failed)} of {len(rows)} not within; this is a bug in uflip")
    for row in failed:
        echo(f"  {row.device}")
