"""Allowed values and defaults of the options of a benchmark.

This module imports nothing: the command line uses these names in its options, and it refuses a
protected target before plans and numpy are loaded.
"""

SUITES = ("uflip", "today", "iq", "zones", "streams", "inside")
"""`uflip`: the micro-benchmarks of the papers; `today`: later questions; `iq`: write amplification
and latency under load; `zones`: zoned devices; `streams`: write streams and placement handles;
`inside`: probes of what is inside a device."""

SUITE = "uflip"

SCALES = ("quick", "standard")
"""`standard` is the paper's; `quick` reduces ranges and counts to a few minutes on a real file."""

SCALE = "standard"

SEED = 1

MAX_REPETITIONS = 100
"""A handful suffices for intervals over repetitions; where 100 do not suffice, more do not help."""

METHODS = ("auto", "startup", "paper")
"""`auto`: each run ends when its mean is known well enough; `startup`: a fixed number of I/Os after
the start-up that the baselines show (§4.2); `paper`: fixed IOCount and IOIgnore (§5.1)."""

STATES = ("random", "sequential", "empty", "as-is")
"""`empty` deallocates everything, as on a new device; `as-is` enforces no state: the device is
measured as it is."""

MAX_IOS = 1 << 32
"""Maximum number of I/Os of a pattern, all its processes together."""

MAX_IOS_IN_FLIGHT = 1024
"""Maximum number of I/Os in flight at a power cut."""

MAX_WARM_UP = 1000.0
"""Maximum warm-up before a run of a sweep, in multiples of the device size. Steady states are
reached after a few; more takes days."""
