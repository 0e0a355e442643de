"""Write amplification of page-mapped devices in steady state, one function per victim policy.

The symbols, everywhere: T blocks of B pages hold U blocks' worth of logical pages; alpha = T/U;
spare factor S_f = 1 - U/T; A = pages programmed / host pages written, at least 1. A block that is
collected with X valid pages makes room for B - X host pages, so A = B/(B - X).

T counts the blocks that are full at the moment a victim is chosen. Blocks that are kept free or
open for writing then do not belong to it: `pool_spare_factor` takes them off. This is where
simulators differ from theory.

**Source**: FIFO: Menon & Stockmeyer (1998), OFC equation (2), Xiang & Kurkoski (arXiv:1110.4245),
Desnoyers (SYSTOR 2012). Greedy: Desnoyers (SYSTOR 2012). d-choices and random: Van Houdt
(SIGMETRICS 2013). Hot and cold pages are in `uflip.models.hot_cold`.
**Faithful**: `fifo`, `greedy_digamma`, `d_choices`, `random` are the published equations, solved to
double precision; each has been derived anew in its notes.
**Simplified**: uniform random single-page writes to every logical page, infinitely many blocks, one
open block for host and relocated pages, no TRIM. Several hundred blocks bring a simulation within
1 %.
**Ambiguous**: greedy collection lets all blocks decay to the same number X of valid pages, which
need not be whole. Continuing the harmonic numbers smoothly to real X (`greedy_digamma`) is too low
for small blocks; letting victims hold the two whole numbers next to X (`greedy`) is the exact
limit, is what d-choices tends to as d grows, and is what simulation shows. A greedy choice among
the w oldest blocks has no closed form here: w = 1 is `fifo`, w = T is `greedy`.
"""

from uflip.models import _checks, _solve


def pool_spare_factor(
    *, physical_blocks: int, pages_per_block: int, logical_pages: float, held_blocks: float
) -> float:
    """Return the spare factor that the formulas of this module mean.

    Parameters
    ----------
    physical_blocks : int
        All blocks of the device or pool.
    pages_per_block : int
        Pages of a block that hold data (one less where a page holds metadata).
    logical_pages : float
        Logical pages of the device or pool.
    held_blocks : float
        Blocks that cannot be victims: kept free, and open for writing.

    Returns
    -------
    float
        1 - U/(T - held), less than the nominal spare factor.

    Raises
    ------
    UsageError
        A value out of range, or no spare left.

    Examples
    --------
    >>> round(pool_spare_factor(
    ...     physical_blocks=4096, pages_per_block=64, logical_pages=3200 * 64, held_blocks=82
    ... ), 4)
    0.2028
    """
    _checks.count("physical_blocks", physical_blocks)
    _checks.count("pages_per_block", pages_per_block)
    _checks.positive(logical_pages=logical_pages)
    _checks.not_negative(held_blocks=held_blocks)
    pages = (physical_blocks - held_blocks) * pages_per_block
    if pages <= logical_pages:
        raise _checks.out_of_range(
            what="no spare capacity is left",
            name="held_blocks",
            got=held_blocks,
            allowed=f"less than {physical_blocks - logical_pages / pages_per_block:.6g}",
            action="hold fewer blocks, or raise the spare factor",
        )
    return 1 - logical_pages / pages


def fifo(*, spare_factor: float) -> float:
    """Return the write amplification of a cyclic buffer (FIFO, LRU), any block size.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T, between 0 and 1.

    Returns
    -------
    float
        A, at least 1.

    Raises
    ------
    UsageError
        A spare factor outside its range.

    Notes
    -----
    The oldest block has seen T B/A host writes since it was filled, and each misses a given page
    with probability 1 - 1/(U B). So the valid share is x = exp(-alpha/A) with A = 1/(1 - x), or
    A = alpha/(alpha + W0(-alpha exp(-alpha))) with Lambert's W.

    Examples
    --------
    >>> [round(fifo(spare_factor=s), 3) for s in (0.07, 0.125, 0.25, 0.6)]
    [7.318, 4.182, 2.201, 1.12]
    """
    _checks.spare_factor(spare_factor)
    return 1 / _solve.invalid_share(turnover=1 / (1 - spare_factor))


def greedy(*, spare_factor: float, pages_per_block: int) -> float:
    """Return the write amplification of greedy collection, exact for infinitely many blocks.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T, between 0 and 1.
    pages_per_block : int
        B, at least 2.

    Returns
    -------
    float
        A, at least 1; exactly 1 from alpha = H(B) on, where blocks empty before they are needed.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    A block with k valid pages loses one with probability k/(U B) at each host write, so in steady
    state as many blocks are in state k as it takes writes to pass it: U A/k. Let victims have m
    valid pages, but a share p of them m - 1 (they were hit once more while they waited). Then
    A = B/(B - m + p) and the blocks add up to T when alpha = A (H(B) - H(m) + p/m), which is linear
    in p. With p = 0 this is Desnoyers' equation; in between it joins the harmonic numbers by
    straight lines. For B to infinity it becomes `fifo`.

    Examples
    --------
    >>> [round(greedy(spare_factor=0.125, pages_per_block=b), 3) for b in (32, 64, 256)]
    [3.75, 3.949, 4.12]
    """
    _checks.spare_factor(spare_factor)
    _checks.count("pages_per_block", pages_per_block, at_least=2)
    block = pages_per_block
    alpha = 1 / (1 - spare_factor)
    tail = 0.0  # H(B) - H(valid)
    for valid in range(block - 1, 0, -1):
        tail += 1 / (valid + 1)
        if block * (tail + 1 / valid) < alpha * (block - valid + 1):
            continue  # not even victims of valid - 1 pages reach this alpha
        fewer = (alpha * (block - valid) - block * tail) / (block / valid - alpha)
        return block / (block - valid + fewer)
    return 1.0


def greedy_digamma(*, spare_factor: float, pages_per_block: int) -> float:
    """Return the write amplification of greedy collection by Desnoyers' smooth formula.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T, between 0 and 1.
    pages_per_block : int
        B, at least 2.

    Returns
    -------
    float
        A, at least 1.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    alpha = A (H(B) - H(X)), A = B/(B - X), with H continued to real X by the digamma function.
    Equal to `greedy` where X is whole, below it in between: by up to 0.1 % at B = 128, 0.4 % at
    B = 64, 1.1 % at B = 32 and 5 % at B = 8 for spare factors from 0.06 to 0.6. Kept because it is
    the published form.

    Examples
    --------
    >>> [round(greedy_digamma(spare_factor=0.125, pages_per_block=b), 3) for b in (32, 64, 256)]
    [3.734, 3.945, 4.12]
    """
    _checks.spare_factor(spare_factor)
    _checks.count("pages_per_block", pages_per_block, at_least=2)
    block = pages_per_block
    alpha = 1 / (1 - spare_factor)
    full = _solve.harmonic(block)
    if alpha >= full:
        return 1.0

    def shortage(valid: float) -> float:
        return block * (full - _solve.harmonic(valid)) / (block - valid) - alpha

    # Random collection, A = 1/S_f, is worse: it bounds the valid pages of a victim from above.
    valid = _solve.bisect(shortage, 0.0, block * (1 - spare_factor))
    return block / (block - valid)


def random(*, spare_factor: float) -> float:
    """Return the write amplification of collecting blocks at random, any block size.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T, between 0 and 1.

    Returns
    -------
    float
        A = 1/S_f = alpha/(alpha - 1).

    Raises
    ------
    UsageError
        A spare factor outside its range.

    Notes
    -----
    A random victim has as many valid pages as the average block, B U/T. The case d = 1 of Van
    Houdt's d-choices.

    Examples
    --------
    >>> random(spare_factor=0.125)
    8.0
    """
    _checks.spare_factor(spare_factor)
    return 1 / spare_factor


def d_choices(*, spare_factor: float, pages_per_block: int, choices: int) -> float:
    """Return the write amplification of the best of d random blocks.

    Parameters
    ----------
    spare_factor : float
        S_f = 1 - U/T, between 0 and 1.
    pages_per_block : int
        B, at least 2.
    choices : int
        d, at least 1; 1 is `random`, a large d tends to `greedy`.

    Returns
    -------
    float
        A, at least 1.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    Van Houdt's mean field. With S_k the share of blocks with k or more valid pages and E the host
    pages a collection makes room for, state k is left downwards E k (S_k - S_(k+1))/(B rho) times a
    collection (rho = U/T), and entered from below by the victims with fewer than k pages:
    E k (S_k - S_(k+1))/(B rho) = 1 - S_k^d for k = B..1, S_(B+1) = 0. The sum of all S_k is the
    mean number of valid pages, B rho, which fixes E; A = B/E. d must be far below T.

    Examples
    --------
    >>> [
    ...     round(d_choices(spare_factor=0.125, pages_per_block=64, choices=d), 3)
    ...     for d in (1, 2, 10)
    ... ]
    [8.0, 5.533, 4.085]
    """
    _checks.spare_factor(spare_factor)
    _checks.count("pages_per_block", pages_per_block, at_least=2)
    _checks.count("choices", choices)
    if choices == 1:
        return random(spare_factor=spare_factor)
    block = pages_per_block
    valid = block * (1 - spare_factor)

    def surplus(gain: float) -> float:
        share = total = 0.0
        for k in range(block, 0, -1):
            share = _next_share(gain * k / valid, share, choices)
            total += share
        return total - valid

    # The gain of a random victim is the least that two or more choices can have.
    return block / _solve.bisect(surplus, block * spare_factor, block)


def _next_share(rate: float, share_above: float, choices: int) -> float:
    """Return the root s of rate (s - above) = 1 - s^d, by Newton's method from its right.

    The difference of the sides is convex and growing in s, so the steps go down and stop there.
    """
    share = min(1.0, share_above + (1 - share_above**choices) / rate)
    while True:
        power: float = share ** (choices - 1)
        excess = rate * (share - share_above) - 1 + share * power
        lower = share - excess / (rate + choices * power)
        if not lower < share:  # at the root rounding alone decides the last step
            return share
        share = lower
