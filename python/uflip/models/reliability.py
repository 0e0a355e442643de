"""Read retries of flash that wears out, in closed form.

**Source**: bit errors fall independently on the bits of a codeword, so that their number is
binomial (Lin & Costello, Error Control Coding), as `crates/sim/src/flash/reliability.rs` has it.
**Faithful**: the law of wear, a codeword that fails with more errors than are corrected, a page
that is read again when any of its codewords fails, with fewer errors each time.
**Simplified**: all pages are alike, and data has no age.
**Ambiguous**: nothing.
"""

import math
from collections.abc import Callable


def wear_law(fresh: float, rated: float, exponent: float) -> Callable[[float], float]:
    """Return the power law of wear: the raw bit error rate by the share of the rated erases.

    Parameters
    ----------
    fresh, rated : float
        Raw bit error rate of a new block and of one at its rated erases.
    exponent : float
        Of the law.

    Examples
    --------
    >>> wear_law(1e-6, 1e-3, 1.0)(1.0)
    0.001
    """
    return lambda life: fresh + (rated - fresh) * life**exponent


def uncorrectable(rber: float, *, page_bytes: int, codeword_bytes: int, correctable: int) -> float:
    """Return the probability that a page read cannot be corrected.

    Parameters
    ----------
    rber : float
        Raw bit error rate.
    page_bytes : int
        Of the page [bytes].
    codeword_bytes : int
        Data of a codeword of a binary BCH code [bytes]; besides, for each bit that it corrects, it
        has as many parity bits as its length needs binary digits.
    correctable : int
        Wrong bits of a codeword that are corrected.

    Examples
    --------
    >>> uncorrectable(0.0, page_bytes=4096, codeword_bytes=512, correctable=12)
    0.0
    """
    data = 8 * codeword_bytes
    digits = next(m for m in range(1, 64) if 2**m > data + m * correctable)
    bits = data + digits * correctable
    corrected = math.fsum(
        math.comb(bits, wrong) * rber**wrong * (1 - rber) ** (bits - wrong)
        for wrong in range(correctable + 1)
    )
    return float(1 - min(1.0, corrected) ** -(-page_bytes // codeword_bytes))


def mean_retries(
    rber: float, *, max_retries: int, gain: float, failing: Callable[[float], float]
) -> float:
    """Return the mean number of times that a page is read again.

    Parameters
    ----------
    rber : float
        Raw bit error rate of the first read.
    max_retries : int
        Maximum number of repeated reads.
    gain : float
        Rate of a repeated read, times that of the one before.
    failing : callable
        Chance that a read at a rate fails. What failed at a lower rate fails at a higher one.

    Examples
    --------
    >>> mean_retries(0.5, max_retries=2, gain=0.5, failing=lambda rate: rate)
    0.75
    """
    return math.fsum(failing(rber * gain**number) for number in range(max_retries))
