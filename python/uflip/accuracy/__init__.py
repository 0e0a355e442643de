"""Accuracy: compare the reported numbers of simulated devices with sufficiently long runs.

`long_run`    the reference: a pattern on a fresh device until its mean has settled
`claims`      the claims and headlines of a result, and the run that decides each
`table`       devices, scales and suites: makes results, compares claims, prints rows

A simulated device can repeat a measurement from the same state for any length. So every number that
uflip reports about it can be checked, and `python -m uflip.accuracy` does so: the table of
docs/reference/accuracy.md.
"""
