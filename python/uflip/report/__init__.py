"""Reports of results: a terminal summary, and one self-contained HTML page.

============  ================================================================================
`labels`      titles, axis labels, names of causes and counters, formatted times
`findings`    conclusions from the numbers, one computed sentence per micro-benchmark
`text`        the summary on a terminal
`data`        input of figures beyond the summary: the I/Os of the baseline runs
`figures`     static figures as SVG in the page's light or dark colours
`drive_counters`  counters of a real drive, in words and as tables
`energy`      energy of runs, in words and as tables
`tables`      tables, and key figures: summary, data of the figures, every run, provenance
`inside`      the inferred properties of a device
`key_row`     key characteristics as a row of the paper's Table 3
`blocks`      the building blocks of a page, as values
`page`        the layout, and the templates that make HTML of blocks
`comparison`  results next to each other: on a terminal, and as a page
`html`        the report of a block device: its sections, and the part that notebooks show
============  ================================================================================

Everything is made from the summary document (`uflip show --json`), so that no number in a report
differs from the numbers that a script reads.
"""

from uflip.report.text import next_commands, render

__all__ = ["next_commands", "render"]
