"""Results on disk: a folder that survives a failed run and stays readable for years.

=================  ===========================================================================
`writer`           creates a folder and commits one run at a time
`files`            writes ledger, manifest and run files; records each digest before the rename
`ledger`           appends the line with a file's digest, before the file has its name
`integrity`        verifies every file against the ledger
`store`            reads a folder back and reports damage
`provenance`       describes the host
`run_warnings`     checks that every run goes through
`warnings`         warnings about the data, as stored values with a next step
`benchmark_warnings`  warnings about the benchmark as a whole
`comparability`    decides whether two results may be compared
`comparison`       compares results, experiment by experiment
`merged_statistics`  statistics of all I/Os of all repetitions
`summary_cache`    caches the statistics of runs beside them
`pyramid`          response times, aggregated at every scale
`summarise`        the whole folder as one document: `uflip show --json`
`export`           tidy tables for other programs
`state_record`     records the device state beside the results
`lock`             detects a running or a killed writer
=================  ===========================================================================

The folder::

    results/demo/
      manifest.json                        written when the folder is made, and again at the end
      ledger.jsonl                         digests of the other files, a line each
      runs/0001-baseline-SR-….parquet      every I/O of a finished run, committed before the next
      summaries/…                          cached statistics, derived from the run files
"""

from uflip.data.manifest import StoredWarning
from uflip.results.comparability import differences
from uflip.results.initial_manifest import host_provenance
from uflip.results.reader import Results, StoredRun
from uflip.results.summary_document import summary
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
