"""OFC's traffic generator: one-page requests with a limit of outstanding ones.

A request that completes is followed by the next of the same sequence at once, so that a fixed
number of requests is outstanding at any time: the queue depth of a pattern.

**Source**: OFC (2011) §V.A: "the number of requests outstanding at any point in time is limited"; a
pseudo-random generator; pages of the host's block size.
**Faithful**: a bound on all requests together; uniform random addresses with replacement; a new
request as soon as one completes; a mix draws for each request whether it reads or writes.
**Simplified**: a long window is made of runs, and the queue runs empty between two of them: once in
half a million requests, and once a round of a sequential stream.
**Ambiguous**: the bound is not printed; see `uflip.reproduce.ofc.OUTSTANDING`. OFC's generator
(Super Fast Hash) gives reads the same addresses as writes, in the same order, which shows at the
end of step 6 of its figure 7; ours are independent.
"""

from collections.abc import Iterator

from uflip.spec import Spec, basic, mix

RUN_IOS = 500_000
"""I/Os of a run: longer windows consist of several runs, because a run records each I/O."""


def random(mode: str, *, page_bytes: int, outstanding: int, ios: int, seed: int) -> Iterator[Spec]:
    """Make random one-page requests over the whole device, one run after another.

    Parameters
    ----------
    mode : str
        "read" or "write".
    page_bytes : int
        Size of a request [bytes].
    outstanding : int
        Requests in flight.
    ios : int
        Total number of requests.
    seed : int
        The first run draws from this seed, the next one from the seed after it.

    Examples
    --------
    >>> [run] = random("read", page_bytes=4096, outstanding=3, ios=10, seed=1)
    >>> run.queue_depth, run.io_count, run.seed
    (3, 10, 1)
    """
    for number, part in enumerate(_parts(ios, RUN_IOS)):
        yield basic(
            mode,
            "random",
            io_size=page_bytes,
            io_count=part,
            queue_depth=outstanding,
            seed=seed + number,
        )


def sequential(
    mode: str,
    *,
    logical_pages: int,
    page_bytes: int,
    outstanding: int,
    ios: int,
    run_ios: int = RUN_IOS,
) -> Iterator[Spec]:
    """Make a sequential stream of one-page requests that wraps round the device, run after run.

    Parameters
    ----------
    mode : str
        "read" or "write".
    logical_pages : int
        Pages of the device.
    page_bytes, outstanding, ios
        As for `random`.
    run_ios : int
        Requests of a run; a run ends early at the end of the device.

    Examples
    --------
    >>> runs = list(
    ...     sequential("read", logical_pages=20, page_bytes=1, outstanding=4, ios=24, run_ios=8)
    ... )
    >>> [(run.target_offset, run.io_count) for run in runs]
    [(0, 8), (8, 8), (16, 4), (0, 4)]
    """
    first = 0
    while ios > 0:
        part = min(run_ios, logical_pages - first, ios)
        yield basic(
            mode,
            "sequential",
            io_size=page_bytes,
            target_offset=first * page_bytes,
            target_size=part * page_bytes,
            io_count=part,
            queue_depth=outstanding,
        )
        ios -= part
        first = (first + part) % logical_pages


def mixed(read_percent: int, *, page_bytes: int, outstanding: int, ios: int, seed: int) -> Spec:
    """Make a single run of random reads and writes, in which each request draws its kind.

    Parameters
    ----------
    read_percent : int
        The probability of a read, 1 to 99 [%].
    page_bytes, outstanding, ios, seed
        As for `random`.

    Examples
    --------
    >>> run = mixed(75, page_bytes=4096, outstanding=2, ios=80, seed=1)
    >>> run.first.mode, run.first_percent, run.io_count
    ('read', 75, 80)
    """
    read, write = (basic(mode, "random", io_size=page_bytes) for mode in ("read", "write"))
    return mix(
        read, write, first_percent=read_percent, io_count=ios, queue_depth=outstanding, seed=seed
    )


def _parts(whole: int, part: int) -> Iterator[int]:
    """Divide a number into parts; the last one is the remainder."""
    yield from [part] * (whole // part)
    if whole % part:
        yield whole % part
