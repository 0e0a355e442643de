"""What a benchmark can be asked for by name, and what it is without being asked.

A module of its own that imports nothing: the options of the command line name these, and a target
that must not be written to is refused before plans and numbers are loaded.
"""

SUITES = ("uflip", "today", "zones")
"""`uflip`: the micro-benchmarks of the papers; `today`: questions that came later; `zones`: those
of zoned devices."""

SUITE = "uflip"

SCALES = ("quick", "standard")
"""`standard` is the paper's; `quick` thins ranges and counts to about a minute on a real file."""

SCALE = "standard"

SEED = 1

MOST_REPETITIONS = 100
"""Intervals over repetitions need a handful, and what would need more stays unknown."""

METHODS = ("auto", "startup", "paper")
"""`auto`: each run ends when its mean is known; `startup`: a fixed number of I/Os after the
start-up that the baselines show (§4.2); `paper`: fixed IOCount and IOIgnore (§5.1)."""

STATES = ("random", "sequential", "as-is")
"""`as-is` enforces nothing: the device is measured as it was found."""

MOST_IOS = 1 << 32
"""I/Os of a pattern, all its processes together."""

MOST_AT_ONCE = 1024
"""I/Os that may be under way when power is cut."""

MOST_WARM_UP = 1000.0
"""So many times its size a device is written to before a run of a sweep at most: steady states are
reached after a few, and what is beyond takes days."""
