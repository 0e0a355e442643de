"""The micro-benchmarks of today: questions that uFLIP did not ask, in its style, a file each.

They vary one parameter each of patterns that the engine knows, so that they run on real and on
simulated devices alike, and are planned, stored and shown like the nine of the paper. They are a
suite of their own (`uflip run DEVICE --suite today`) and never stand among these.

====================  ===========================================================================
`queue_depth`         throughput and response time against I/Os under way; where the knee is
`read_under_write`    how slow reads are beside more and more writes
`write_rate`          how slow they are beside writes that arrive at a given rate
`cache_cliff`         how much a burst of writes brings before it meets the flash
`cache_refill`        how long the device must be left alone until it takes such a burst again
`odd_stride`          strides that meet at one channel or bank
`mixed_sizes`         small reads among I/Os that get longer
`steady_state`        what random writes cost when the device does not change any more
`deallocate`          what reads and writes cost after a trim, and the trim itself
`loaded`              what several of them share: how deep a queue, and mixes on two halves
====================  ===========================================================================
"""
