"""Published values of uFLIP (CIDR 2009): Table 3, figures 3 to 8, and statements about them."""

from uflip.reproduce import table3
from uflip.reproduce.published.value import Paper, Value

_value = Paper("uflip", "uFLIP (2009)").value_of

MTRON, DTI, MEMORIGHT, SAMSUNG = "mtron", "kingston-dti", "memoright", "samsung"

# "The length of the pause when that happens is precisely the time required on average for a random
# write" (§5.2): the column follows from that of random writes.
_FOLLOWS = {"pause": ("RW",)}


def _of_table(row: table3.Published) -> list[Value]:
    def make_value(column: str, quantity: str, printed: str | None, unit: str = "") -> Value:
        follows = _FOLLOWS.get(column, ()) if printed is not None else ()
        return _value(
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
        _value(f"hints/{device}/{name}", where, device, f"{device}: {quantity}", printed, "", other)
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
        _value(f"4.1/{device}/{name}", "§4.1", device, f"{device}: {quantity}", printed)
        for name, quantity, printed in statements
    ]


_FIG3, _FIG4, _FIG5, _FIG6 = (
    "fig3/mtron/", "fig4/kingston-dti/", "fig5/mtron/", "fig6/memoright/",
)  # fmt: skip

UFLIP_2009 = (
    *(value for row in table3.TABLE for value in _of_table(row)),
    # §4.1. A device out of the box was never written to.
    _value("4.1/samsung/fresh", "§4.1", SAMSUNG, "16 KB random write out of the box", "around 1",
           "ms"),
    _value("4.1/samsung/decrease", "§4.1", SAMSUNG, "the same after random writes, over it",
           "almost an order of magnitude", "", ("4.1/samsung/fresh", *_t3(SAMSUNG, "RW"))),
    *(value for device in (MTRON, SAMSUNG, DTI, "demo") for value in _of_states(device)),
    # §4.2 and figure 3. The mean of a short run is low because of its start-up.
    _value(_FIG3 + "start_up", "§5.1, figure 3", MTRON, "start-up", "about 125", "I/Os"),
    _value(
        _FIG3 + "cheap", "§4.2, figure 3", MTRON, "cheap writes", "0.4", "ms", _t3(MTRON, "SW")
    ),
    _value(_FIG3 + "expensive", "§4.2, figure 3", MTRON, "expensive writes", "27", "ms"),
    _value(
        _FIG3 + "mean", "figure 3", MTRON, "mean of the running phase", "9", "ms", _t3(MTRON, "RW")
    ),
    _value(
        _FIG3 + "short_mean", "§4.2", MTRON, "mean of the first 512 below it", "about 25", "%",
        ("fig3/mtron/start_up", "fig3/mtron/cheap", *_t3(MTRON, "RW")),
    ),
    # Figure 4.
    _value(_FIG4 + "period", "§5.1, figure 4", DTI, "period", "about 128", "I/Os"),
    _value(_FIG4 + "slow", "figure 4", DTI, "slow write of each period", "about 40", "ms"),
    _value(_FIG4 + "mean", "figure 4", DTI, "mean", "2.9", "ms", _t3(DTI, "SW")),
    # Figure 5: these reads take their own time and that of the merges in the background.
    _value(_FIG5 + "reads", "§5.1, figure 5", MTRON, "reads that feel the writes", "about 3,000",
           "I/Os"),
    _value(
        _FIG5 + "seconds", "§5.1, figure 5", MTRON, "how long", "about 2.5", "s",
        ("fig5/mtron/reads", "fig3/mtron/start_up", *_t3(MTRON, "SR", "RW")),
    ),
    # Figure 6.
    _value(_FIG6 + "latency_SR", "§5.2, figure 6", MEMORIGHT, "latency of SR", "about 70", "µs"),
    _value(_FIG6 + "latency_SW", "§5.2, figure 6", MEMORIGHT, "latency of SW", "about 70", "µs"),
    _value(_FIG6 + "latency_RR", "§5.2, figure 6", MEMORIGHT, "latency of RR", "about 115", "µs"),
    _value(_FIG6 + "slow", "§5.2, figure 6", MEMORIGHT, "slow random writes", "tens of ms"),
    _value(
        _FIG6 + "RW", "§5.2, figure 6", MEMORIGHT, "random writes of 32 KiB", "at least 5", "ms",
        _t3(MEMORIGHT, "RW"),
    ),
    _value(
        _FIG6 + "small", "§5.2, figure 6", MEMORIGHT, "random writes of 16 KiB over 4 KiB",
        "about 4",
    ),
    # Figure 7.
    _value(
        "fig7/kingston-dti/SW", "§5.2, figure 7", DTI, "cost of a KiB, SW of 4 KiB over 32 KiB",
        "significantly higher",
    ),
    _value(
        "fig7/kingston-dti/RW", "§5.2, figure 7", DTI, "random writes of 32 KiB", "around 260",
        "ms", _t3(DTI, "RW"),
    ),
    _value(
        "fig7/kingston-dti/constant", "§5.2, figure 7", DTI,
        "random writes, slowest size over fastest", "rather constant",
    ),
    # Figure 8, which Table 3 sums up.
    *(
        value
        for device in ("samsung", "memoright", "mtron")
        for value in (
            _value(
                f"fig8/{device}/small", "§5.2, figure 8", device, f"{device}: up to 4 MiB, over SW",
                "nearly the same", "", _t3(device, "locality"),
            ),
            _value(
                f"fig8/{device}/large", "§5.2, figure 8", device, f"{device}: 2 GiB over the same",
                "far more", "", _t3(device, "SW", "RW"),
            ),
        )
    ),
    # §5.2 "Other Results" and §5.3, of all devices.
    *(value for row in table3.TABLE for value in _of_all(row.profile)),
    # Statements of the text without a figure.
    _value("5.1/memoright/start_up", "§5.1", MEMORIGHT, "start-up of random writes", "30", "I/Os"),
    _value("5.1/no_start_up", "§5.1", "", "start-up of all but Memoright and Mtron", "none"),
    _value("5.1/no_lingering", "§5.1", "", "reads after random writes, all but Mtron", "as before"),
    _value("5.2/samsung/unaligned", "§5.2", SAMSUNG, "random writes off the 16 KB", "32", "ms"),
)  # fmt: skip
