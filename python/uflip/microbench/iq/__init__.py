"""The questions of SSD-iq: write amplification under skew, and latency under load.

Haas, Lee, Bonnet, Leis (*SSD-iq: Uncovering the Hidden Side of SSD Performance*, PVLDB 2025)
measure how much a drive writes internally for each byte of the host, and how long reads take
meanwhile. Each micro-benchmark writes 4 KiB at a time with a deep queue until the device does not
change any more. They are a separate suite (`uflip run DEVICE --suite iq`).

====================  ===========================================================================
`skew`                random writes by Zipf's law, by its exponent
`hot_zone`            most writes go to a small part of the device, by their share
`read_only`           a share of the device is only read: writes go to the rest
`fill_level`          a share of the device is discarded: writes go to the rest
`zone_size`           zones that are written in order and discarded, by their size
`open_zones`          the same, by the number of zones that are written in turn
`content`             data that can be compressed, and duplicates, by their share
`offered_load`        reads and writes that arrive at a given rate, up to the knee
`initial_state`       writes and a load on an empty, a sequential and a random device
`long_writes`         shared: size, depth and length of the writes, and the finding
====================  ===========================================================================
"""
