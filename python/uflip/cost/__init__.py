"""Costs of data structures on a device, predicted from its measured patterns.

============  ===========================================================================
`workloads`   the five workloads: their formula, their actual I/Os, and the price of an I/O
`predict`     a formula evaluated with prices
`replay`      the I/Os of a workload on a simulated device, for the error of the formula
============  ===========================================================================

**Source** uFLIP (CIDR 2009) §6: its numbers are meant for the design of algorithms and systems.
"""
