"""Micro-benchmarks of zones: what uFLIP-OC asks of LUNs and channels, asked of zones, a file each.

They need a device that is written in zones (NVMe ZNS, or any other that Linux calls zoned). Before
each run the zones that it writes are reset, those that it only reads are filled, and no other is
left open or closed (`Device.prepare_zones`), so that no run depends on another. They are a suite of
their own (`uflip run DEVICE --suite zones`).

====================  ===========================================================================
`zone_parallelism`    writes to more and more zones at once
`zone_append`         more and more appends under way to one zone, against writes one at a time
`zone_distance`       reads of a zone while another is written that is further and further away
`zone_reset`          what a reset costs, by how much of the zone was written
`zone_finish`         what a finish costs, by how much of the zone was written
`zone_wear`           what resets do to a zone, by how often it was reset
`written`             what reset and finish share
`laid_out`            what they share: sizes of zones, and why a device cannot do one
====================  ===========================================================================
"""
