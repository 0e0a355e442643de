"""Published values of uFLIP-OC (APSys 2017): Tables 2 and 3, figures 2 to 5."""

from uflip.microbench.open_channel import oc0, oc3
from uflip.reproduce.published.value import Paper, Value

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
)  # fmt: skip
