"""Options of `prepare`, `plan` and `run` about the state of a device."""

import click

from uflip.benchmark_options import STATES
from uflip.cli.common import FILE_PATH, combine_options, read_size

target_options = combine_options(
    [
        click.option(
            "--target-size",
            metavar="SIZE",
            callback=read_size,
            help="Use only this much of the device, from its beginning.  [default: all of it]",
        ),
        click.option(
            "--record",
            metavar="FILE",
            type=FILE_PATH,
            help="File that records the device's state.  [default: results/states/DEVICE.json]",
        ),
    ]
)

state_option = click.option(
    "--state",
    metavar="|".join(STATES),
    help="State to enforce, unless the device is known to be in it.  "
    "[default: random; for a simulated device that of its profile]",
)
