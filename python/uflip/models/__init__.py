"""The papers' closed forms: what a flash device should do, as pure functions of numbers.

========================  =====================================================================
`channel`                 data rate of a flash channel, with and without die interleaving (OFC)
`relocation`              valid pages in a collected block against the spare factor (OFC)
`write_amplification`     page-mapped devices: FIFO, greedy, d-choices, random
`hot_cold`                the same where some pages are written more often, mixed or separated
`bast`                    block-mapped devices with log blocks that belong to data blocks (BAST)
`merges`                  Myers & Sinclair's equations: what one merge of FAST takes
`hybrid`                  block-mapped devices with a shared log: FAST
========================  =====================================================================

A leaf: nothing here knows a run, a trace or a device, and nothing is drawn at random. Everything is
keyword-only, takes plain numbers whose unit is the last word of the name, and raises
`uflip.errors.UsageError` for a value outside its range.
"""

from uflip.models import (
    bast,
    channel,
    hot_cold,
    hybrid,
    merges,
    relocation,
    write_amplification,
)

__all__ = ["bast", "channel", "hot_cold", "hybrid", "merges", "relocation", "write_amplification"]
