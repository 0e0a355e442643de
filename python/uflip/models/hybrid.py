"""FAST, data blocks with a page-mapped log for all: the cost of its merges under random writes.

Data blocks hold each page at its own offset; overwrites go to a few log blocks. D data blocks of B
pages; T_r, T_w, T_e to read a page, program a page, erase a block. One merge of a data block copies
its newest pages to a fresh block (or to the log block) and erases the old one.

**Source**: Myers & Sinclair, "Measuring Solid-State Drive Behavior" (2010), section 6.2; FAST: Lee
et al. (ACM TECS 6(3), 2007). The steady state of FAST, with N_data and N_valid "left to derive" in
that report, is derived here. The time of one merge is in `merges.py`, BAST in `bast.py`.
**Faithful**: the kinds of merges, and the pages and blocks that each copies and erases.
**Simplified**: uniform random single-page writes, no time for mapping, commands or transfers; many
more data blocks than pages in a block (FAST simulated at D = 4096, B = 64: mean within 0.05 %; at
D = 256, B = 16 within 0.5 %; at D = 64, B = 8 within 1.5 %). A few per mille of the zero-page
merges take place inside a full merge, whose victim holds a page of the sequential log's owner; they
are counted twice.
**Ambiguous**: a write to the owner of the sequential log that is not the next page is read as a
partial merge that takes the new page along, as FlashSim does. A merge is charged to the write that
waits for it.

FAST keeps one sequential and R = logs - 1 random log blocks, which are used and reclaimed in a
ring. The life of a data block, in log writes to it (its first one makes it dirty)::

    clean ──first log write──▶ dirty ──(age x)──▶ oldest log page is reclaimed: full merge ─▶ clean
                                 └──── page 0 is written ────▶ zero-page merge ────▶ clean

with x = (R - 1/2) B/D, since a page stays until R - 1 to R blocks more have been filled.
"""

import math

from uflip.models import _checks
from uflip.models.merges import FastCost, fast_cost

# Rounds of the fixed point in `fast_flashsim2010`. It has settled to the last bits after 10 with
# few log blocks and after 40 with as many log blocks as data blocks.
_ROUNDS = 60


def fast(
    *,
    data_blocks: int,
    log_blocks: int,
    pages_per_block: int,
    read_ns: float,
    program_ns: float,
    erase_ns: float,
    utilisation: float = 1.0,
) -> FastCost:
    """Return the steady state of correct FAST under uniform random writes.

    Parameters
    ----------
    data_blocks : int
        D, data blocks that the writes go to (the address space).
    log_blocks : int
        Log blocks, the sequential one included: 2 to data_blocks.
    pages_per_block : int
        B, at least 4.
    read_ns, program_ns, erase_ns : float
        T_r, T_w, T_e [ns].
    utilisation : float, optional
        Share u of the pages that hold data, spread at random; the writes go to these pages. At
        least 8 pages a block. After n writes from empty, `valid_pages_after` / B.

    Returns
    -------
    FastCost
        Merges, times, write amplification.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    One unit of time is one log write to the data block. In it, each used page (and so page 0) is
    written z = 1/(u (B - 1)) times. A dirty block is merged when its oldest log page is reclaimed,
    at age x, unless page 0 was written before, which has probability 1 - exp(-z x). If that oldest
    page was written again meanwhile, probability 1 - s, s = exp(-z x), the next page's turn comes
    a little later: the rate at which merges come after x is h = s + (1 - s)(1 - exp(-x))/x in place
    of 1, the rate at which clean blocks become dirty. From the renewal argument, for a block with
    page 0 in use

        F(z) = exp(-z x) h / ((1 - exp(-z x)) (z + h)/z + exp(-z x))

    full merges in a unit of time, F(0) for one without, and N_data = B (u F(z) + (1 - u) F(0)),
    less x/(1 + x)^2 (1 - u)/(u (B - 1)) of it because blocks differ in how many pages they use.
    Without zero-page merges and rewritten pages this is B/(1 + x). Log writes are (B - 1)/B of the
    writes, less the 1/(D + B) that fall on the owner of the sequential log.

    Compared with a discrete simulation of D = 4096, B = 64, 2 to 2048 log blocks: N_data and the
    mean within 0.05 %; with u = 0.25 to 0.7 within 0.3 %.

    Examples
    --------
    Myers & Sinclair's Table 1 (1 GB) had their FAST kept every page:

    >>> cost = fast(data_blocks=4096, log_blocks=128, pages_per_block=64,
    ...             read_ns=25_250, program_ns=101_250, erase_ns=1_500_000)
    >>> round(cost.data_blocks_per_full_merge, 2), round(cost.write_amplification, 1)
    (20.93, 22.6)
    >>> [round(t / 1e6, 2) for t in (cost.zero_merge_ns, cost.full_merge_ns, cost.mean_write_ns)]
    [9.47, 202.33, 3.36]
    """
    _check_geometry(data_blocks, log_blocks, pages_per_block)
    block, used = pages_per_block, utilisation
    if not 0 < used <= 1 or (used < 1 and used * block < 8):
        raise _checks.out_of_range(
            what="utilisation is outside the range of the model",
            name="utilisation",
            got=used,
            allowed=f"{min(1.0, 8 / block):.4g} to 1 (8 pages of a block or more)",
            action="give the share of pages that hold data; for fewer pages simulate",
        )
    age = _log_age(data_blocks, log_blocks, block)
    rewrite_rate = 1 / (used * (block - 1))
    unwritten = math.exp(-rewrite_rate * age)
    rate = unwritten + (1 - unwritten) * -math.expm1(-age) / age

    def merges(zero_writes: float) -> float:
        alive = math.exp(-zero_writes * age)
        dirty = age if zero_writes == 0 else -math.expm1(-zero_writes * age) / zero_writes
        return alive * rate / (dirty * (zero_writes + rate) + alive)

    with_page_0, without = used * merges(rewrite_rate), (1 - used) * merges(0.0)
    unequal = age / (1 + age) ** 2 * (1 - used) * rewrite_rate
    return fast_cost(
        data_blocks_per_full_merge=block * (with_page_0 + without) * (1 - unequal),
        zero_merge_valid_pages=used * (block - 1),
        # Page 0, and the others: a little more than average, because blocks that use more pages
        # are merged more often (as 1/(1 + x) of their number).
        full_merge_valid_pages=with_page_0 / (with_page_0 + without)
        + used * (block - 1)
        + (1 - used) / (1 + age),
        log_share=_log_share(data_blocks, block),
        pages_per_block=block,
        times_ns=(read_ns, program_ns, erase_ns),
    )


def fast_flashsim2010(
    *,
    data_blocks: int,
    log_blocks: int,
    pages_per_block: int,
    read_ns: float,
    program_ns: float,
    erase_ns: float,
) -> FastCost:
    """Return the steady state of FAST as FlashSim had it in 2010, with the pages it loses.

    Parameters
    ----------
    data_blocks : int
        D, data blocks that the writes go to.
    log_blocks : int
        Log blocks, the sequential one included: 2 to data_blocks.
    pages_per_block : int
        B, at least 4.
    read_ns, program_ns, erase_ns : float
        T_r, T_w, T_e [ns].

    Returns
    -------
    FastCost
        Merges, times, write amplification (of a device that loses data).

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    That code asks for the state of a page through an unsigned 16-bit variable, so that "invalid"
    (-1) comes back as 65535 and matches no case: a merge copies the pages that are valid in the
    data block, and omits those whose newest version is in the log. Their slots are free after
    the merge; the log entries stay, and each costs a merge when its log block is reclaimed.

    A slot goes valid -> invalid (written to the log) -> free (block merged) -> valid (written in
    place). With v, i, f the shares of the M = B - 1 slots after page 0, time in writes to a slot,
    and w the share of valid slots that an old log entry still names (a write then goes to the log
    but leaves the slot valid): f = v (1 - w), v + i + f = 1. A block is merged by each log entry
    as it is reclaimed, g = M v (1 - w) a unit of time at age a = (R - 1/2) B/(D M (1 - f)), and by
    the write to page 0, 1 a unit; so M i = g/(1 + g) (1 - exp(-(1 + g) a)). And with b = a - M i/g,
    w/(1 - w) = b - 1 + exp(-b). The three are iterated to their fixed point.

    N_data = B f/(1 - f) (entries that were not replaced); N_valid = M v for a zero-page merge and
    1 + (M - 1) v for a full one (page 0; and the slot that brought the block there is not valid).
    Few log blocks: v = 1/2, N_valid = B/2 = 32, N_data = B = 64, Myers & Sinclair's very numbers.

    Simulated, D = 4096, B = 64: means within 0.05 % up to D/32 log blocks, 0.3 % up to D/8.

    Examples
    --------
    >>> cost = fast_flashsim2010(data_blocks=4096, log_blocks=128, pages_per_block=64,
    ...                          read_ns=25_250, program_ns=101_250, erase_ns=1_500_000)
    >>> [round(t / 1e6, 1) for t in (cost.zero_merge_ns, cost.full_merge_ns, cost.mean_write_ns)]
    [5.4, 343.9, 2.9]
    >>> round(cost.zero_merge_valid_pages, 1), round(cost.full_merge_valid_pages, 1)
    (31.1, 31.6)
    """
    _check_geometry(data_blocks, log_blocks, pages_per_block)
    slots = pages_per_block - 1
    age_in_log_writes = _log_age(data_blocks, log_blocks, pages_per_block)
    valid, named = 0.5, 0.0
    for _ in range(_ROUNDS):
        free = valid * (1 - named)
        reclaims = slots * free
        age = age_in_log_writes / (slots * (1 - free))
        invalid = reclaims / (1 + reclaims) * -math.expm1(-(1 + reclaims) * age)
        since = age - invalid / reclaims
        odds = since + math.expm1(-since)
        named = odds / (1 + odds)
        valid = (1 - invalid / slots) / (2 - named)
    free = valid * (1 - named)
    return fast_cost(
        data_blocks_per_full_merge=pages_per_block * free / (1 - free),
        zero_merge_valid_pages=slots * valid,
        full_merge_valid_pages=1 + (slots - 1) * valid,
        log_share=_log_share(data_blocks, pages_per_block) * (1 - free),
        pages_per_block=pages_per_block,
        times_ns=(read_ns, program_ns, erase_ns),
    )


def _check_geometry(data_blocks: int, log_blocks: int, pages_per_block: int) -> None:
    _checks.count("data_blocks", data_blocks)
    _checks.count("log_blocks", log_blocks, at_least=2, at_most=data_blocks)
    _checks.count("pages_per_block", pages_per_block, at_least=4)


def _log_age(data_blocks: int, log_blocks: int, pages_per_block: int) -> float:
    """Return the age at which a log page is reclaimed, x [log writes to each data block]."""
    return (log_blocks - 1.5) * pages_per_block / data_blocks


def _log_share(data_blocks: int, pages_per_block: int) -> float:
    """Return the share of writes that are neither to page 0 nor to the sequential log's owner."""
    return (1 - 1 / pages_per_block) * (1 - 1 / (data_blocks + pages_per_block))
