"""Devices: their names and properties, opening one, and runs on it.

===================  =========================================================
`url`                the forms of a device name
`options`            checks of options before a device is touched
`guard`              refuses devices that must not be written to
`catalogue`          available devices, and their properties before use
`opener`             from a name to an open device
`handle`             an open device: runs, states, snapshots
`management`         trims, and zone commands
`resolve`            patterns and states, resolved for a device
`simulated`          simulated devices: created or restored
`cache`              cache of prepared simulated devices on disk
`identity`           the identity of a device
`serving`            serves a device to other programs as a block device
`virtual`            detects virtual disks
`disturbance`        detects changes of the target, and other users of it
===================  =========================================================
"""
