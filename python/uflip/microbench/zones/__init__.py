"""Micro-benchmarks of zones: the questions of uFLIP-OC about LUNs and channels, for zones.

They need a zoned device (NVMe ZNS, or any other that Linux calls zoned). Before each run the zones
that it writes are reset, those that it only reads are filled, and no other is left open or closed
(`Device.prepare_zones`), so that runs are independent. They are a separate suite
(`uflip run DEVICE --suite zones`).

====================  ===========================================================================
`zone_parallelism`    writes to an increasing number of zones at once
`zone_append`         an increasing number of appends in flight to one zone, against single writes
`zone_distance`       reads of a zone while another is written, at increasing distance
`zone_reset`          cost of a reset, by the written share of the zone
`zone_finish`         cost of a finish, by the written share of the zone
`zone_wear`           effect of resets on a zone, by their number
`partly_written`      shared by reset and finish
`zone_layout`         shared: sizes of zones, and reasons to skip a run
====================  ===========================================================================
"""
