"""What data structures cost on a device: predicted from the patterns that were measured on it.

============  ===========================================================================
`pricing`     the price of an I/O of any size, from the means of a benchmark
`workloads`   the five workloads: their formula, and the I/Os that they really do
`predict`     a formula with prices put in
`replay`      the I/Os of a workload on a simulated device, for the error of the formula
============  ===========================================================================

**Source** uFLIP (CIDR 2009) §6: its numbers are meant for the design of algorithms and systems.
"""
