"""Published values as data: all numbers and statements that reproductions compare with, by paper.

Profiles name by these ids the values that a constant was fitted to (`[sources]`), reproductions
the values that they compare with, and `uflip.reproduce.reproduction` classifies a row by both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from uflip.microbench.open_channel import oc0, oc3
from uflip.reproduce import table3

NUMBER = re.compile(r"(?P<about>(?:about|around|approximately) )?(?P<number>[\d,]*\.?\d+)")


@dataclass(frozen=True)
class Value:
    """One printed number, or one statement in words."""

    id: str  #: Identifier in profiles and reproductions: paper/section/quantity.
    where: str  #: Paper, and table, figure or section.
    device: str  #: The profile that models the device.
    quantity: str  #: The measured quantity, in words.
    printed: str  #: As the paper prints it; words where it prints words.
    unit: str = ""  #: Its unit; "" for a plain ratio, count or word.
    #: Ids of values from which this one follows, by arithmetic or because the paper prints the same
    #: value twice: a constant that was fitted to one of them was fitted to this one as well.
    determined_by: tuple[str, ...] = ()

    @property
    def number(self) -> float | None:
        """Return the printed number; None for words.

        >>> Value("x", "", "", "", "about 3,000").number
        3000.0
        """
        match = NUMBER.fullmatch(self.printed)
        return None if match is None else float(match["number"].replace(",", ""))

    @property
    def about(self) -> bool:
        """Return whether the paper prints "about": the number is less exact than its digits."""
        match = NUMBER.fullmatch(self.printed)
        return match is not None and match["about"] is not None

    @property
    def half_a_digit(self) -> float:
        """Return half a unit of the last printed digit: nearer numbers round to the printed one.

        >>> [Value("x", "", "", "", text).half_a_digit for text in ("9", "0.4", "16.81")]
        [0.5, 0.05, 0.005]
        """
        decimals = self.printed.partition(".")[2]
        return 0.5 * 10.0 ** -len(decimals)


@dataclass(frozen=True)
class Paper:
    """A paper, whose values are written as lines of a table."""

    prefix: str  #: Prefix of the ids of its values.
    name: str  #: Name of the paper, before each section or figure.
    device: str = ""  #: The profile of its device, if it has only one.

    def value(  # noqa: PLR0917 - a line of a table, in the order of its columns
        self,
        name: str,
        where: str,
        quantity: str,
        printed: str,
        unit: str = "",
        determined_by: tuple[str, ...] = (),
    ) -> Value:
        """Make a value of the paper's one device; `name` and `determined_by` without the prefix."""
        return self.value_of(name, where, self.device, quantity, printed, unit, determined_by)

    def value_of(  # noqa: PLR0917 - the same with a column for the device
        self,
        name: str,
        where: str,
        device: str,
        quantity: str,
        printed: str,
        unit: str = "",
        determined_by: tuple[str, ...] = (),
    ) -> Value:
        """Make a value of one of the paper's devices."""
        ids = tuple(f"{self.prefix}/{other}" for other in determined_by)
        location = f"{self.name} {where}"
        return Value(f"{self.prefix}/{name}", location, device, quantity, printed, unit, ids)


# Published values of uFLIP (CIDR 2009): Table 3, figures 3 to 8, and statements about them.


_uflip = Paper("uflip", "uFLIP (2009)").value_of

MTRON, DTI, MEMORIGHT, SAMSUNG = "mtron", "kingston-dti", "memoright", "samsung"

# "The length of the pause when that happens is precisely the time required on average for a random
# write" (§5.2): the column follows from that of random writes.
_FOLLOWS = {"pause": ("RW",)}


def _of_table(row: table3.Published) -> list[Value]:
    def make_value(column: str, quantity: str, printed: str | None, unit: str = "") -> Value:
        follows = _FOLLOWS.get(column, ()) if printed is not None else ()
        return _uflip(
            f"table3/{row.profile}/{column}", "Table 3", row.profile, f"{row.name}: {quantity}",
            printed or "no", unit, _t3(row.profile, *follows),
        )  # fmt: skip

    means = zip(("SR", "RR", "SW", "RW"), row.means, strict=True)
    return [
        *(make_value(pattern, pattern, printed, "ms") for pattern, printed in means),
        make_value("pause", "Pause", row.pause, "ms" if row.pause else ""),
        make_value("locality", "Locality", row.words("Locality")),
        make_value("partitions", "Partitions", row.words("Partitions")),
        make_value("reverse", "Reverse", row.words("Reverse")),
        make_value("in_place", "In-place", row.words("In-place")),
        make_value("large_incr", "Large Incr", row.words("Large Incr")),
    ]


def _t3(device: str, *columns: str) -> tuple[str, ...]:
    return tuple(f"table3/{device}/{column}" for column in columns)


def _of_all(device: str) -> list[Value]:
    """Return the values of statements about all devices, for one device."""
    # In pauses a device does the work that random writes wait for otherwise: the total is the same.
    pauses = (*_t3(device, "RW"), *_t3(device, "pause"))
    # Interleaved writers are random writes if there are more of them than the device has streams.
    writers = (*_t3(device, "RW"), *_t3(device, "partitions"))
    # The cost of a command was fitted to reads of 32 KiB; reads of 4 KiB have it for fewer bytes.
    small = (*_t3(device, "SR"), *(("fig6/memoright/latency_SR",) if device == MEMORIGHT else ()))
    statements: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
        ("larger", "§5.3, hint 1", "cost of a KiB, SR of 4 KiB over 32 KiB",
         "larger I/Os are beneficial", small),
        ("mix", "§5.2, hint 6", "dearest mix over its parts", "not significantly", ()),
        ("parallel", "§5.2, hint 7", "reads of 16 processes over one", "no improvement", ()),
        ("degenerate", "§5.2", "16 sequential writers over 16 partitions",
         "degenerate to partitioned writes", writers),
        ("pauses", "§5.2, hint 7", "least time with pauses over without", "the same overall time",
         pauses),
    )  # fmt: skip
    return [
        _uflip(f"hints/{device}/{name}", where, device, f"{device}: {quantity}", printed, "", other)
        for name, where, quantity, printed, other in statements
    ]


def _of_states(device: str) -> list[Value]:
    """Return the values of statements about the stability of two states, for one device."""
    statements = (
        ("stable", "random state: most that a baseline changes by random writes",
         "only sequential writes disturb the state significantly"),
        ("less_stable", "sequential state: most that a baseline changes by them",
         "impact a sequential state much more significantly"),
    )  # fmt: skip
    return [
        _uflip(f"4.1/{device}/{name}", "§4.1", device, f"{device}: {quantity}", printed)
        for name, quantity, printed in statements
    ]


_FIG3, _FIG4, _FIG5, _FIG6 = (
    "fig3/mtron/", "fig4/kingston-dti/", "fig5/mtron/", "fig6/memoright/",
)  # fmt: skip

UFLIP_2009 = (
    *(value for row in table3.TABLE for value in _of_table(row)),
    # §4.1. A device out of the box was never written to.
    _uflip("4.1/samsung/fresh", "§4.1", SAMSUNG, "16 KB random write out of the box", "around 1",
           "ms"),
    _uflip("4.1/samsung/decrease", "§4.1", SAMSUNG, "the same after random writes, over it",
           "almost an order of magnitude", "", ("4.1/samsung/fresh", *_t3(SAMSUNG, "RW"))),
    *(value for device in (MTRON, SAMSUNG, DTI, "demo") for value in _of_states(device)),
    # §4.2 and figure 3. The mean of a short run is low because of its start-up.
    _uflip(_FIG3 + "start_up", "§5.1, figure 3", MTRON, "start-up", "about 125", "I/Os"),
    _uflip(
        _FIG3 + "cheap", "§4.2, figure 3", MTRON, "cheap writes", "0.4", "ms", _t3(MTRON, "SW")
    ),
    _uflip(_FIG3 + "expensive", "§4.2, figure 3", MTRON, "expensive writes", "27", "ms"),
    _uflip(
        _FIG3 + "mean", "figure 3", MTRON, "mean of the running phase", "9", "ms", _t3(MTRON, "RW")
    ),
    _uflip(
        _FIG3 + "short_mean", "§4.2", MTRON, "mean of the first 512 below it", "about 25", "%",
        ("fig3/mtron/start_up", "fig3/mtron/cheap", *_t3(MTRON, "RW")),
    ),
    # Figure 4.
    _uflip(_FIG4 + "period", "§5.1, figure 4", DTI, "period", "about 128", "I/Os"),
    _uflip(_FIG4 + "slow", "figure 4", DTI, "slow write of each period", "about 40", "ms"),
    _uflip(_FIG4 + "mean", "figure 4", DTI, "mean", "2.9", "ms", _t3(DTI, "SW")),
    # Figure 5: these reads take their own time and that of the merges in the background.
    _uflip(_FIG5 + "reads", "§5.1, figure 5", MTRON, "reads that feel the writes", "about 3,000",
           "I/Os"),
    _uflip(
        _FIG5 + "seconds", "§5.1, figure 5", MTRON, "how long", "about 2.5", "s",
        ("fig5/mtron/reads", "fig3/mtron/start_up", *_t3(MTRON, "SR", "RW")),
    ),
    # Figure 6.
    _uflip(_FIG6 + "latency_SR", "§5.2, figure 6", MEMORIGHT, "latency of SR", "about 70", "µs"),
    _uflip(_FIG6 + "latency_SW", "§5.2, figure 6", MEMORIGHT, "latency of SW", "about 70", "µs"),
    _uflip(_FIG6 + "latency_RR", "§5.2, figure 6", MEMORIGHT, "latency of RR", "about 115", "µs"),
    _uflip(_FIG6 + "slow", "§5.2, figure 6", MEMORIGHT, "slow random writes", "tens of ms"),
    _uflip(
        _FIG6 + "RW", "§5.2, figure 6", MEMORIGHT, "random writes of 32 KiB", "at least 5", "ms",
        _t3(MEMORIGHT, "RW"),
    ),
    _uflip(
        _FIG6 + "small", "§5.2, figure 6", MEMORIGHT, "random writes of 16 KiB over 4 KiB",
        "about 4",
    ),
    # Figure 7.
    _uflip(
        "fig7/kingston-dti/SW", "§5.2, figure 7", DTI, "cost of a KiB, SW of 4 KiB over 32 KiB",
        "significantly higher",
    ),
    _uflip(
        "fig7/kingston-dti/RW", "§5.2, figure 7", DTI, "random writes of 32 KiB", "around 260",
        "ms", _t3(DTI, "RW"),
    ),
    _uflip(
        "fig7/kingston-dti/constant", "§5.2, figure 7", DTI,
        "random writes, slowest size over fastest", "rather constant",
    ),
    # Figure 8, which Table 3 sums up.
    *(
        value
        for device in ("samsung", "memoright", "mtron")
        for value in (
            _uflip(
                f"fig8/{device}/small", "§5.2, figure 8", device, f"{device}: up to 4 MiB, over SW",
                "nearly the same", "", _t3(device, "locality"),
            ),
            _uflip(
                f"fig8/{device}/large", "§5.2, figure 8", device, f"{device}: 2 GiB over the same",
                "far more", "", _t3(device, "SW", "RW"),
            ),
        )
    ),
    # §5.2 "Other Results" and §5.3, of all devices.
    *(value for row in table3.TABLE for value in _of_all(row.profile)),
    # Statements of the text without a figure.
    _uflip("5.1/memoright/start_up", "§5.1", MEMORIGHT, "start-up of random writes", "30", "I/Os"),
    *(
        _uflip(f"5.1/{row.profile}/no_start_up", "§5.1", row.profile,
               f"{row.profile}: start-up of random writes", "none")
        for row in table3.TABLE if row.profile not in {MEMORIGHT, MTRON}
    ),
    *(
        _uflip(f"5.1/{row.profile}/no_lingering", "§5.1", row.profile,
               f"{row.profile}: reads after random writes over those before", "as before")
        for row in table3.TABLE if row.profile != MTRON
    ),
    # Nothing follows from Table 3, whose areas are those of random writes.
    *(
        _uflip(f"5.2/{row.profile}/sequential_locality", "§5.2", row.profile,
               f"{row.profile}: sequential writes within 4 to 16 MiB", "not affected")
        for row in table3.TABLE
    ),
    *(
        _uflip(f"5.3/{row.profile}/many_partitions", "§5.3, hint 5", row.profile,
               f"{row.profile}: 128 partitions over random writes", "degrades to random writes")
        for row in table3.TABLE
    ),
    *(
        _uflip(f"5.2/{device}/bursts", "§5.2", device,
               f"{device}: longest total time of bursts over shortest", "a similar effect", "",
               (*_t3(device, "RW"), *_t3(device, "pause")))
        for device in (MEMORIGHT, MTRON)
    ),
    _uflip("5.1/memoright/random_state", "§5.1", MEMORIGHT, "time to write a random state", "5",
           "hours"),
    _uflip("5.2/samsung/unaligned", "§5.2", SAMSUNG, "random writes off the 16 KB", "32", "ms"),
)  # fmt: skip


# Published values of Myers & Sinclair (2010): figures 1 to 4, and the write cliff.


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


# Published values of OFC (IBM RZ 3795, 2011): its text and figures 5 to 7.


_ofc = Paper("ofc", "OFC (2011)", device="ofc").value

OFC_2011 = (
    # The six numbers to which constants were fitted, and the same in MB/s.
    _ofc("raw_reads", "§III", "raw reads, no processing (§III)", "30", "kIOPS"),
    _ofc("sequential_reads", "§V.F", "sequential reads (§V.F)", "27", "kIOPS"),
    _ofc("clean_writes", "§V.F", "sequential writes, clean device (§V.F)", "18", "kIOPS"),
    _ofc("random_reads", "§V.F", "random reads (§V.F)", "24", "kIOPS"),
    _ofc("erasing_writes", "§V.F", "sequential writes, blocks erased (§V.F)", "17", "kIOPS"),
    _ofc("drop_30_pages", "§V.B", "drop from 0 to 30 relocated pages (§V.B)", "50", "%"),
    _ofc("reads_mb", "abstract", "sequential reads", "115", "MB/s", ("sequential_reads",)),
    _ofc("writes_mb", "abstract", "sequential writes", "72", "MB/s", ("erasing_writes",)),
    # Device A of figure 4 has no profile of its own; `uflip.reproduce.ofc_wear` has its constants.
    _ofc("fig1/better", "Figure 1", "median page over worst page, at the rated erases",
           "many pages are significantly better"),
    _ofc("fig4/half", "Figure 4", "usable pages at four times the rated erases", "half"),
    # No constant was fitted to the values below, but to values from which some of them follow.
    _ofc("raw_writes", "§III", "raw writes, no processing (§III)", "20", "kIOPS"),
    _ofc("random_writes_30", "§V.C", "random writes, 30 % spare", "6", "kIOPS"),
    _ofc("random_writes_45", "§V.D", "random writes, 45 % spare", "8.5", "kIOPS"),
    # Between no pages and 30 any falling, convex curve comes to 8.5 to 9.35.
    _ofc("relocating_27", "§V.D", "random writes at 27 relocated pages", "8.5", "kIOPS",
           ("erasing_writes", "drop_30_pages")),
    _ofc("random_writes_60", "§V.C", "random writes, 60 % spare", "13", "kIOPS"),
    _ofc(
        "ratio_60_30", "§V.C", "random writes, 60 % over 30 % spare", "more than 2", "",
        ("random_writes_30", "random_writes_60"),
    ),
    _ofc("pages_30", "§V.C", "relocated pages, 30 % spare", "45", "pages"),
    _ofc("pages_45", "§V.D", "relocated pages, 45 % spare", "27", "pages"),
    _ofc("pages_60", "§V.C", "relocated pages, 60 % spare", "15", "pages"),
    _ofc("amplification_45", "§V.D", "relocated pages per host page, 45 % spare", "0.5"),
    _ofc("level_after", "§V.D", "time until the rate stays at its level", "a few minutes",
           "minutes"),
    _ofc("stable", "§V.D", "largest over smallest minute after that", "stable", "%"),
    _ofc("mix_falls", "§V.E", "largest rise from one share of writes to the next",
           "the rate drops", "kIOPS"),
    _ofc("mix_below", "§V.E", "with relocation over erases only: largest ratio at any mix",
           "below 1"),
    _ofc("sixteen_channels", "§VI", "sequential reads, 16 channels over 4", "can be handled"),
    _ofc("freed_alone", "§VI", "pages freed with 25 % relocated, host at rest, over writes",
           "sufficient"),
    _ofc("freed_beside", "§VI", "writes with 25 % relocated over those with none",
           "not sufficient"),
    # Both ends of both curves are printed.
    _ofc(
        "mix_drop", "§V.E", "drop from reads to writes alone: with relocation over erases only",
        "above 1", "", ("random_writes_45", "erasing_writes", "random_reads"),
    ),
    # 24 of 27.
    _ofc("step_3_below_2", "§V.F", "#3 below #2", "11", "%",
           ("sequential_reads", "random_reads")),
    _ofc("step_4_first", "§V.F", "#4 random writes, first second over steady", "initially high"),
    _ofc("step_4_slowest", "§V.F", "#4 random writes, slowest second", "5", "kIOPS"),
    _ofc("step_5", "§V.F", "#5 sequential reads of randomly written pages over #2", "lower"),
    _ofc("step_6", "§V.F", "#6 random reads, first seconds over #5", "the same level"),
    _ofc("step_6_rises", "§V.F", "#6 random reads, last second above the first", "increases",
           "%"),
    _ofc("step_7", "§V.F", "#7 sequential writes, first seconds over steady #4", "similar"),
    _ofc("step_7_steady", "§V.F", "#7 sequential writes, steady over #1", "the same value"),
    _ofc("step_8", "§V.F", "#8 sequential reads over #2", "similar"),
    _ofc("step_9", "§V.F", "#9 random reads over #3", "similar"),
)  # fmt: skip


# Published values of uFLIP-OC (APSys 2017): Tables 2 and 3, figures 2 to 5.


_oc = Paper("oc", "uFLIP-OC (2017)", device="dfc").value


def _table(
    table: str, where: str, over: str, rates: dict[str, dict[int, str]], *, factors: bool
) -> list[Value]:
    """Rates of a table, or factors of its scaling, which follow from its rates."""
    values = []
    for kind, by_degree in rates.items():
        for degree, printed in by_degree.items():
            name = f"{table}/{kind}/{degree}".replace(" ", "_").replace(",", "")
            if factors:
                quantity = f"{kind}, scaling factor at {degree} {over}"
                values.append(_oc(f"{name}/factor", where, quantity, printed))
            else:
                number = over if degree > 1 else over[:-1]
                values.append(_oc(name, where, f"{kind}, {degree} {number}", printed, "MB/s"))
    return values


TABLE_2: dict[str, dict[int, str]] = {
    "writes, a thread per LUN": {1: "16.81", 2: "27.22", 4: "37.85"},
    "writes, one thread": {1: "16.81", 2: "23.47", 4: "33.45"},
    "reads, a thread per LUN": {1: "37.09", 2: "49.77", 4: "49.73"},
    "reads, one thread": {1: "37.09", 2: "37.09", 4: "37.09"},
}
"""[MB/s]; the last row from the text."""

FACTORS_2: dict[str, dict[int, str]] = {
    "writes, a thread per LUN": {2: "1.62", 4: "2.25"},
    "writes, one thread": {2: "1.40", 4: "1.99"},
    "reads, a thread per LUN": {2: "1.34", 4: "1.34"},
}

TABLE_3: dict[str, dict[int, str]] = {
    "writes, vectors": {1: "44.37", 2: "80.35", 4: "117.84", 8: "128.59"},
    "writes, threads": {1: "45.86", 2: "94.37", 4: "119.90", 8: "127.23"},
}
"""[MB/s]"""

FACTORS_3: dict[str, dict[int, str]] = {
    "writes, vectors": {2: "1.81", 4: "2.66", 8: "2.90"},
    "writes, threads": {2: "2.06", 4: "2.61", 8: "2.77"},
}

ALL_LUNS = {"writes": "300", "reads": "400"}
"""With 32 threads [MB/s], in the text."""

ONE_LUN = {
    "writes": "table2/writes_a_thread_per_LUN/1",
    "reads": "table2/reads_a_thread_per_LUN/1",
}
MIXES = tuple(mix for mix in oc0.MIXES if len(set(mix)) > 1)
SHARES = tuple(share for share, mix in oc3.shares(8).items() if len(set(mix)) > 1)
_F2, _F3, _F4, _F5 = (
    "Figure 2, §5.1.1", "Figure 3, §5.1.2", "Figure 4, §5.1.3", "Figure 5, §5.2.2",
)  # fmt: skip

UFLIP_OC_2017 = (
    *_table("table2", "Table 2", "LUNs", TABLE_2, factors=False),
    *_table("table2", "Table 2", "LUNs", FACTORS_2, factors=True),
    *_table("table3", "Table 3", "channels", TABLE_3, factors=False),
    *_table("table3", "Table 3", "channels", FACTORS_3, factors=True),
    *(
        _oc(f"table3/32_threads/{word}", "§5.2.2", f"{word}, 32 threads", printed, "MB/s")
        for word, printed in ALL_LUNS.items()
    ),
    _oc("fig2/high_pages", _F2, "100 % writes, share from 2.2 to 3.0 ms", "a band"),
    _oc("fig2/low_pages", _F2, "100 % writes, share from 1.0 to 1.3 ms", "a band"),
    _oc("fig2/third", _F2, "100 % writes, share around 0.8 ms", "a third band"),
    _oc(
        "fig2/outside", _F2, "100 % writes, share outside of the bands", "none named", "",
        ("fig2/high_pages", "fig2/low_pages", "fig2/third"),
    ),
    _oc("fig2/stable", _F2, "100 % reads, 99th over 1st percentile", "stable"),
    # A page of both planes at the rate of one LUN takes 0.88 ms.
    _oc(
        "fig2/median", _F2, "100 % reads, median", "much above 0.15 ms", "ms", (ONE_LUN["reads"],)
    ),
    *(
        _oc(f"fig2/{mix}", _F2, f"{mix}, share of writes around 0.8 ms",
               "any mix reinforces the third band")
        for mix in MIXES
    ),
    _oc("fig2/slowest_write", _F2, "slowest write from 50 % reads on", "stable below 1.0 ms",
           "ms"),
    _oc("fig2/slowest_read", _F2, "slowest read at 50 % reads", "can reach above 4 ms", "ms"),
    # The rates of one LUN again, rounded.
    _oc("fig3/writes", _F3, "writes, one LUN", "16", "MB/s", (ONE_LUN["writes"],)),
    _oc("fig3/reads", _F3, "reads, one LUN", "38", "MB/s", (ONE_LUN["reads"],)),
    _oc("fig3/writes_spread", _F3, "writes, spread over LUNs", "little"),
    _oc("fig3/reads_spread", _F3, "reads, spread over LUNs", "little"),
    _oc("fig4/first_failure", _F4, "first failing read", "5,872", "erases"),
    _oc(
        "fig4/earliest", _F4, "first failing read, earliest of the seeds",
        "well beyond the rated 3,000", "erases", ("fig4/first_failure",),
    ),
    _oc("fig4/tenth", _F4, "a tenth of the reads fails", "17,000", "erases"),
    _oc("fig4/erase_steps", _F4, "different erase times in 17,000 cycles",
           "a stepwise increase"),
    _oc("fig4/erase_growth", _F4, "erase after 17,000 cycles over the first",
           "increases regularly"),
    _oc("fig4/write_time", _F4, "change of the mean write time", "constant"),
    _oc("fig4/failed_writes", _F4, "failed writes", "failures are only identified on reads"),
    *(
        _oc(
            f"fig5/{share.split()[0]}", _F5,
            f"reads at {share}, 99th percentile over that of reads alone",
            "low, stable, unaffected by writes",
        )
        for share in SHARES
    ),
    _oc("fig5/predictable", _F5, "writes alone, standard deviation over that at 50 % writes",
           "much less predictable"),
    _oc("fig5/throughput", _F5, "writes alone, mean over that at 50 % writes",
           "throughput is not affected"),
    _oc("contract/request_scale", "§6", "verdict: request scale", "comes at a price"),
    _oc("contract/locality", "§6", "verdict: locality", "does not apply"),
    _oc("contract/sequentiality", "§6", "verdict: sequentiality", "holds and is trivial"),
    _oc("contract/death_time", "§6", "verdict: death time", "is the host's own decision"),
    _oc("contract/lifetime", "§6", "verdict: lifetime", "is the host's own decision"),
)  # fmt: skip


PUBLISHED: dict[str, Value] = {
    value.id: value for value in (*UFLIP_2009, *MYERS_SINCLAIR_2010, *OFC_2011, *UFLIP_OC_2017)
}
"""Id -> value."""


def with_determining_values(value_id: str) -> set[str]:
    """Return the ids of a value and of all values from which it follows.

    >>> sorted(with_determining_values("ofc/reads_mb"))
    ['ofc/reads_mb', 'ofc/sequential_reads']
    """
    return set(_walk(value_id, set()))


def _walk(value_id: str, visited: set[str]) -> Iterator[str]:
    if value_id in visited:
        return
    visited.add(value_id)
    yield value_id
    for other in PUBLISHED[value_id].determined_by:
        yield from _walk(other, visited)
