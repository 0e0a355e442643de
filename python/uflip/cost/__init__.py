"""Costs of data structures on a device, predicted from its measured patterns.

============  ===========================================================================
`workloads`   the five workloads: their formula, and their actual I/Os
`predict`     a formula evaluated with the measured prices of I/Os
`replay`      the I/Os of a workload on a simulated device, for the error of the formula
============  ===========================================================================

**Source** uFLIP (CIDR 2009) §6: its numbers are meant for the design of algorithms and systems.
"""
