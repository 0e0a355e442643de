"""Results made readable: a terminal summary, and one self-contained page of HTML.

============  ================================================================================
`words`       what each micro-benchmark asks, how its figure is read, how values are written
`findings`    what the numbers of this device say, one computed sentence per micro-benchmark
`text`        the summary on a terminal
`data`        what figures need beyond the summary: the I/Os of the baseline runs
`figures`     static figures as SVG that follows the page's light or dark colours
`tables`      tables: summary, data of the figures, every run, provenance
`tiles`       key figures
`sections`    the sections of the page, `method` the longest of them
`blocks`      what a page is made of, as values
`page`        the layout, and the templates that make HTML of blocks
`comparison`  results side by side: on a terminal, and as a page
`html`        the report of a block device, from its list of sections
============  ================================================================================

Everything is made from the summary document (`uflip show --json`), so that no number in a report
can differ from the numbers that a script reads.
"""

from uflip.report.text import next_commands, render

__all__ = ["next_commands", "render"]
