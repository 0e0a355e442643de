"""Published values of Myers & Sinclair (2010): figures 1 to 4, and the write cliff."""

from uflip.reproduce.published.value import Paper

KINGSTON, INTEL, FAST = "kingston-snv125", "intel-x25m", "fast-1gb"

_ms = Paper("ms", "Myers & Sinclair (2010)").value_of

_1, _2, _3, _4 = "§5.1, figure 1", "§5.1, figure 2", "§5.2, figure 3", "§6, figure 4"
_7 = "§7"

MYERS_SINCLAIR_2010 = (
    _ms("fig1/start_up", _1, KINGSTON, "writes before the great failure", "45,000"),
    _ms(
        "fig1/all_fast", _1, KINGSTON, "writes of the start-up below 0.3 ms", "all are fast", "%",
        ("fig2/below_300us",),
    ),
    _ms("fig2/below_300us", _2, KINGSTON, "writes below 0.3 ms", "97", "%"),
    _ms("fig2/small", _2, KINGSTON, "small peaks", "approximately 15", "ms"),
    _ms("fig2/middle", _2, KINGSTON, "middle peaks", "around 400", "ms"),
    _ms("fig2/highest", _2, KINGSTON, "highest peaks, mostly", "around 800", "ms"),
    _ms("fig2/longest", _2, KINGSTON, "highest peaks, rarely", "1200", "ms"),
    _ms("fig2/rarely", _2, KINGSTON, "share of the longest in the highest peaks", "rarely", "%"),
    _ms("fig2/mean", _2, KINGSTON, "mean write", "13", "ms"),
    _ms("fig3/below_300us", _3, INTEL, "writes below 0.3 ms", "15", "%"),
    _ms("fig3/above_1500us", _3, INTEL, "writes above 1.5 ms", "33", "%"),
    _ms("fig3/peaks", _3, INTEL, "peaks near 150 ms", "approximately 150", "ms"),
    _ms("fig3/between", _3, INTEL, "writes between them", "529"),
    _ms("fig3/longest", _3, INTEL, "peaks above 200 ms", "above 200", "ms"),
    _ms("fig3/between_longest", _3, INTEL, "writes between those", "2182"),
    # The mean follows from its classes and stops.
    _ms(
        "fig3/mean", _3, INTEL, "mean write", "1.5", "ms",
        ("fig3/below_300us", "fig3/above_1500us", "fig3/peaks", "fig3/between", "fig3/longest",
         "fig3/between_longest"),
    ),
    # The statement of the conclusion is that of figure 1.
    _ms(
        "cliff/early", _7, KINGSTON, "writes before the cliff", "fewer than 50000", "",
        ("fig1/start_up",),
    ),
    _ms(
        "cliff/early_fresh", _7, KINGSTON, "writes before the cliff, fresh from the factory",
        "fewer than 50000", "", ("fig1/start_up",),
    ),
    _ms(
        "cliff/not_filled", _7, KINGSTON, "of the drive written before the cliff, fresh",
        "not all of it", "%", ("fig1/start_up",),
    ),
    _ms(
        "cliff/intel", _3, INTEL, "mean of the first 5,000 writes, fresh, over the steady state",
        "no distinct start-up",
    ),
    # Equations (1) and (3) compute the peaks from constants that were read off the simulation.
    _ms("fig4/zero", _4, FAST, "zero-page merge", "5.548", "ms", ("fig4/n_valid",)),
    _ms("fig4/full", _4, FAST, "full merge", "356.572", "ms", ("fig4/n_valid", "fig4/n_data")),
    _ms("fig4/n_valid", _4, FAST, "N_valid", "32", "pages"),
    _ms("fig4/n_data", _4, FAST, "N_data", "64", "blocks"),
)  # fmt: skip
