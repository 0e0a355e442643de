"""Write amplification: bytes programmed divided by bytes that the host wrote.

A write of 512 bytes that programs a page of 16 KiB has a write amplification of 32. Counted in
pages it would be 1: one page written, one programmed. The counters of the device stay in pages. The
closed forms of `uflip.models` count pages too, but for writes of whole pages, where both are equal.
OFC (§V.C) counts only the extra pages, which gives a value that is smaller by one.
"""

from collections.abc import Mapping


def write_amplification(
    counters: Mapping[str, int] | None, page_bytes: int | None, host_bytes: int
) -> float | None:
    """Return bytes programmed, for any reason, divided by bytes that the host wrote.

    Parameters
    ----------
    counters : mapping or None
        Counters of the device; `pages_programmed` is used.
    page_bytes : int or None
        Unit of the counters [bytes]: a flash page, or a smaller mapping unit.
    host_bytes : int
        Bytes that the host wrote in the same time.

    Returns
    -------
    float or None
        None if the host wrote nothing, or the number of programmed pages is unknown.

    Examples
    --------
    >>> write_amplification({"pages_programmed": 10}, 16384, 10 * 512)
    32.0
    """
    programmed = (counters or {}).get("pages_programmed")
    if programmed is None or page_bytes is None or not host_bytes:
        return None
    return float(programmed * page_bytes / host_bytes)
