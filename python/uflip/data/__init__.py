"""Documents stored beside the numbers, or printed: each has a fixed shape and one reader.

================  ============================================================================
`document`        files into typed values: bounded, of one version, checked as a whole; texts
`spec`            the request for one run: a pattern, a mix, parallel patterns, a replay, a job
`locations`       locations of a pattern and their parameters, as Rust reports them
`device`          properties and capabilities of a device; its zones; a power loss; reports; twins
`counters`        counters of real drives, and their change during a run
`energy`          energy of runs: counters, samples of power meters
`host_load`       disturbances by the host during a run
`manifest`        everything about a benchmark but the response times
`ledger`          a line for every file of a result folder, each linked to the one before
`run`             metadata stored with the numbers of a run; a single run as a document
`run_summary`     cached statistics of runs
`inference`       cached properties of a device, as `uflip infer` found them
`summary`         a result folder as one document: `uflip show --json`
`plan`            the keys of a plan file
`state_record`    the state of a device after its last run
`multi_device`    the devices of one benchmark, and their folders
`sweep`           the design and the points of a sweep
================  ============================================================================
"""
