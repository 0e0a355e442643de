"""Options of `prepare`, `plan` and `run` about the state of a device."""

import click

from uflip.benchmark_options import STATES
from uflip.cli.common import FILE_PATH, read_size, together

target_options = together(
    [
        click.option(
            "--target-size",
            metavar="SIZE",
            callback=read_size,
            help="Use only so much of the device, from its beginning.  [default: all of it]",
        ),
        click.option(
            "--record",
            metavar="FILE",
            type=FILE_PATH,
            help="Where the state of the device is noted.  [default: results/states/DEVICE.json]",
        ),
    ]
)

state_option = click.option(
    "--state",
    metavar="|".join(STATES),
    help="State to be enforced where the device is not known to be in it.  "
    "[default: random; for a simulated device that of its profile]",
)
