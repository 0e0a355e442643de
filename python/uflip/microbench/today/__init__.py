"""Newer micro-benchmarks: questions beyond uFLIP, in its style, a file each.

They vary one parameter each of patterns of the engine, so that they run on real and on simulated
devices, and are planned, stored and shown like the nine of the paper. They are a separate suite
(`uflip run DEVICE --suite today`).

====================  ===========================================================================
`queue_depth`         throughput and response time against the queue depth; the knee
`read_under_write`    latency of reads during an increasing share of writes
`write_rate`          latency of reads while writes arrive at a given rate
`cache_cliff`         size of a burst of writes that a cache absorbs
`cache_refill`        idle time until the device absorbs such a burst again
`odd_stride`          strides that conflict on one channel or bank
`mixed_sizes`         small reads among I/Os of increasing length
`steady_state`        cost of random writes in steady state
`deallocate`          cost of reads and writes after a trim, and of the trim itself
`loaded`              shared: the queue depth, and mixes on two halves
====================  ===========================================================================
"""
