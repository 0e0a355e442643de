"""Compare what a benchmark reports of a simulated device with runs that are long enough.

`long_run`    the reference: a pattern on a fresh device until its mean does not change any more
`claims`      the claims and headlines of a result, and which run decides each
`table`       devices, scales and suites: results are made, claims compared, rows printed

A simulated device can be asked the same question for as long as it takes, from the same state. So
every number that uflip reports of it can be checked, and `python -m uflip.accuracy` does so: the
table of docs/reference/accuracy.md.
"""
