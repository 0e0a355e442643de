"""OFC's traffic generator: one-page requests with a bound on how many are outstanding.

A request that completes is followed by the next at once, so that a fixed number of requests is
outstanding at any time. With n of them that is n processes of one request each::

    random        every process draws from the whole device
    sequential    process p takes pages p, p + n, p + 2n, ...: together one stream

**Source**: OFC (2011) §V.A: "the number of requests outstanding at any point in time is limited"; a
pseudo-random generator; pages of the host's block size.
**Faithful**: a bound on all requests together; uniform random addresses with replacement; a new
request as soon as one completes.
**Simplified**: a sequential stream is dealt out to the processes beforehand. While one waits for a
die the others go on, so its pages arrive late, and the order of the stream is not quite kept until
the next run begins; one queue for all would keep it. Up to 2n - 1 pages at the end of the device
are left out, so that every process has as many. A mix follows its ratio in turn, where OFC draws.
**Ambiguous**: the bound is not printed; see `uflip.reproduce.ofc.OUTSTANDING`. OFC's generator
(Super Fast Hash) gives reads the same addresses as writes, in the same order, which shows at the
end of step 6 of its figure 7; ours are independent.
"""

from collections.abc import Iterator

from uflip.spec import Spec, basic, mix, parallel

RUN_IOS = 500_000
"""A longer window is made of runs of so many I/Os, because a run keeps a record of each."""

STREAM_IOS = 60_000
"""The same for a sequential stream: its processes start a run side by side."""


def random(mode: str, *, page_bytes: int, outstanding: int, ios: int, seed: int) -> Iterator[Spec]:
    """Make random one-page requests over the whole device, one run after another.

    Parameters
    ----------
    mode : str
        "read" or "write".
    page_bytes : int
        Size of a request [bytes].
    outstanding : int
        Requests under way at any time.
    ios : int
        Requests in all; rounded down to whole rounds of `outstanding`.
    seed : int
        The first run draws from this seed, the next one from the seed after it.

    Examples
    --------
    >>> [run] = random("read", page_bytes=4096, outstanding=3, ios=10, seed=1)
    >>> len(run["patterns"]), run["patterns"][0]["io_count"], run["seed"]
    (3, 3, 1)
    """
    for number, part in enumerate(_parts(ios, RUN_IOS)):
        if part >= outstanding:
            process = basic(mode, "random", io_size=page_bytes, io_count=part // outstanding)
            yield parallel(*[process] * outstanding, seed=seed + number)


def sequential(
    mode: str,
    *,
    logical_pages: int,
    page_bytes: int,
    outstanding: int,
    ios: int,
    run_ios: int = STREAM_IOS,
) -> Iterator[Spec]:
    """Make one stream of one-page requests that goes round the device, one run after another.

    Parameters
    ----------
    mode : str
        "read" or "write".
    logical_pages : int
        Pages of the device, more than twice `outstanding`.
    page_bytes, outstanding, ios
        As for `random`.
    run_ios : int
        Requests of a run; a run ends early where the device does.

    Examples
    --------
    >>> runs = list(
    ...     sequential("read", logical_pages=20, page_bytes=1, outstanding=4, ios=24, run_ios=8)
    ... )
    >>> [[process["target_offset"] for process in run["patterns"]] for run in runs[:2]]
    [[0, 1, 2, 3], [8, 9, 10, 11]]
    >>> [run["patterns"][0]["io_count"] for run in runs]
    [2, 2, 2]
    """
    pages = (logical_pages // outstanding - 1) * outstanding
    first = 0
    while ios >= outstanding:
        rounds = min(run_ios, pages - first, ios) // outstanding
        yield parallel(
            *[
                basic(
                    mode,
                    "ordered",
                    incr=outstanding,
                    io_size=page_bytes,
                    target_offset=(first + process) * page_bytes,
                    target_size=rounds * outstanding * page_bytes,
                    io_count=rounds,
                )
                for process in range(outstanding)
            ]
        )
        ios -= rounds * outstanding
        first += rounds * outstanding
        if pages - first < outstanding:
            first = 0


def mixed(
    reads: int, writes: int, *, page_bytes: int, outstanding: int, ios: int, seed: int
) -> Spec:
    """Make random reads and writes in a ratio, of which one side is 1, as a single run.

    Parameters
    ----------
    reads, writes : int
        So many of each in turn; one of the two is 1.
    page_bytes, outstanding, ios, seed
        As for `random`.

    Examples
    --------
    >>> run = mixed(3, 1, page_bytes=4096, outstanding=2, ios=80, seed=1)
    >>> run["patterns"][0]["ratio"], run["patterns"][0]["io_count"]
    (3, 10)
    """
    read, write = (basic(mode, "random", io_size=page_bytes) for mode in ("read", "write"))
    often, rare, ratio = (read, write, reads) if writes == 1 else (write, read, writes)
    rounds = ios // outstanding // (ratio + 1)
    return parallel(*[mix(often, rare, ratio, io_count=rounds)] * outstanding, seed=seed)


def _parts(whole: int, part: int) -> Iterator[int]:
    """Cut a whole into parts; the last one is what remains."""
    yield from [part] * (whole // part)
    if whole % part:
        yield whole % part
