"""Devices: their names and properties, opening one, and runs on it.

===================  =========================================================
`url`                the forms of a device name
`guard`              checks of options; refuses devices that must not be written to
`catalogue`          available devices, their properties before use, their profiles
`opener`             from a name to an open device
`handle`             an open device: runs, states, zones, power cuts
`io_list`            a list of I/Os that a device replays
`resolve`            patterns and states, resolved for a device
`identity`           the same device and medium, and not used by others
`counters`           the counters that a drive reports: bytes written, temperature, wear
`power`              power meters of the host, and power states of NVMe drives
`host_load`          counters of the host, sampled beside runs
`disk`               the disk below a target, and the limits of this process
`cache`              cache of prepared simulated devices on disk
`serving`            serves a device to other programs as a block device
===================  =========================================================
"""
