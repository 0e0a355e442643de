"""Results on disk: a folder that survives the run that fails next, and reads back years later.

=================  ===========================================================================
`writer`           creates a folder and commits one run at a time
`files`            writes ledger, manifest and run files, each proven before it has its name
`ledger`           writes the line that proves a file, before the file has its name
`proof`            holds every file against the ledger
`store`            reads a folder back; says what is wrong with it
`provenance`       what is worth knowing about the host
`checks`           questions asked of every run
`warnings`         doubts about the data, as stored values with a next step
`conditions`       doubts about the benchmark as a whole
`comparable`       may two results be compared
`comparison`       results side by side, experiment by experiment
`merged`           repetitions as one: statistics of all their I/Os
`summaries`        keeps what runs say beside them, and finds it again
`pyramid`          response times in brief, at every scale
`summarise`        the whole folder as one document: `uflip show --json`
`export`           tidy tables for other programs
`state_record`     in which state a device was left, beside the results
`lock`             is a writer at work, or was it killed
`atomic`           write, fsync, rename: either the old or the new, never half of it
=================  ===========================================================================

The folder::

    results/demo/
      manifest.json                        written when the folder is made, and again at the end
      ledger.jsonl                         what the others must be, a line each
      runs/0001-baseline-SR-….parquet      every I/O of a finished run, committed before the next
      summaries/…                          what runs say, kept: follows from the run files
"""

from uflip.results.comparability import differences
from uflip.results.provenance import host_provenance
from uflip.results.store import Results, StoredRun
from uflip.results.summarise import summary
from uflip.results.warnings import StoredWarning
from uflip.results.writer import ResultsWriter

__all__ = [
    "Results",
    "ResultsWriter",
    "StoredRun",
    "StoredWarning",
    "differences",
    "host_provenance",
    "summary",
]
