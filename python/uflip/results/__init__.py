"""Results on disk: a folder that survives a failed run and stays readable for years.

======================  ============================================================================
`writer`                makes a folder; commits runs, ledger lines and manifest in safe order
`reader`                reads a folder back: finished and missing runs, warnings
`integrity`             verifies every file against the ledger
`result_dir`            makes a folder whole or not at all, and locks it
`initial_manifest`      the manifest before the first run, with the host
`causes`                causes of response times: names, colours, meanings
`device_log`            samples and flash operations from inside a simulated device
`die_lanes`             occupants of dies and channels, and who waited for them
`state_record`          records the device state beside the results
`columns`               columns of a trace, whole or a piece at a time
`run_statistics`        statistics and throughput of a run, by mode
`time_rows`             a run over time: rates, percentiles, I/Os in flight
`run_summary`           the summary of a run and its repetitions, and its cache
`stored_inference`      the inference of a folder, cached for its runs
`pyramid`               response times, aggregated at every scale
`statistics/`           the interval of a run and of an experiment, the verdict between two
`steady_state`          steady state of random writes (SNIA)
`startup_check`         runs that measured the start-up, or never left the write cache
`consistency`           whether repeats of a baseline agree within a benchmark
`key_characteristics`   the ten numbers of the paper's Table 3
`summary_document`      the whole folder as one document: `uflip show --json`
`run_warnings`          checks that every run goes through
`rate_limit`            a rate limit, a trend, ticks of a timer of the host
`slow_traits`           traits of slow I/Os, and disturbances by the host
`warnings`              gathers the warnings about runs, with numbers and a next step
`benchmark_warnings`    warnings about device, host, path to the disk, files
`comparability`         decides whether two results may be compared
`comparison`            compares results, experiment by experiment, and gives verdicts
`outputs`               files that users name: replaced only where nothing is lost
`export`                tidy tables for other programs
`fio_job`               runs as fio jobs
`perfetto`              runs as traces for Perfetto
======================  ============================================================================

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
