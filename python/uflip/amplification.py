"""Write amplification: bytes programmed over bytes that the host wrote, as the field defines it.

A write of 512 bytes that programs a page of 16 KiB amplifies 32 times. In pages it would show as 1:
one page was written and one programmed. Pages stay what they are, counters of the device. The
closed forms of `uflip.models` are in pages, of writes of whole pages, where both are the same; OFC
(§V.C) counts only the extra pages, which is one less.
"""

from collections.abc import Mapping


def write_amplification(
    counters: Mapping[str, int] | None, page_bytes: int | None, host_bytes: int
) -> float | None:
    """Return bytes programmed, for whatever reason, over bytes that the host wrote.

    Parameters
    ----------
    counters : mapping or None
        What the device counted; `pages_programmed` is used.
    page_bytes : int or None
        What counters count in [bytes]: a flash page, or a mapping unit smaller than that.
    host_bytes : int
        What the host wrote in the same time [bytes].

    Returns
    -------
    float or None
        None where the host wrote nothing, or what was programmed is unknown.

    Examples
    --------
    >>> write_amplification({"pages_programmed": 10}, 16384, 10 * 512)
    32.0
    """
    programmed = (counters or {}).get("pages_programmed")
    if programmed is None or page_bytes is None or not host_bytes:
        return None
    return float(programmed * page_bytes / host_bytes)
