"""Properties of a device, inferred from the probes of the suite `inside`, and its twin.

=====================  =======================================================================
`observations`         the response times of every run of the probes
`probes`               the probes on an open device
`from_result`          the observations of a stored result
`from_table`           properties of a drive from a table of its rates and write amplification
`estimate`             an estimated property, its interval, or why it is not identified
`structure`            mapping unit, page, dies, channels
`page_types`           kinds of pages, and reads without their differences
`times`                command, host link, cells, channel, program
`channels`             channels and transfers that only simulations show
`collection`           block, erase time, spare space, victim policy
`suspension`           programs that stop for a read
`write_cache`          size and policy of the write cache
`slc_cache`            size and programs of the SLC cache, and reads beyond it
`map_cache`            the part of the map in memory
`family`               the FTL family of a device that merges blocks
`twin`                 a profile whose every key has its source
`infer`                all of these in order, and the predictive check
`check`                patterns that no probe uses, on a device and its twin
=====================  =======================================================================
"""
