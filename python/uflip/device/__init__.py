"""Devices: what they are called, what is known of them, opening one, and runs on it.

==============  ==============================================================
`url`           the forms of a name
`options`       what can be checked before a device is touched
`guard`         what must not be written to is refused first
`catalogue`     which devices there are, and what is known of one before use
`opening`       from a name to an open device
`opened`        an open device: runs, states, snapshots
`managing`      trims, and commands to zones
`resolving`     patterns and states as a device would take them
`simulated`     simulated devices: made or restored
`cache`         those that were made before, kept on disk
`identity`      what makes two descriptions descriptions of one device
`serving`       as a block device of its own, for other programs
`virtual`       is a disk a disk
`disturbance`   is the target still what it was, and was anybody else there
==============  ==============================================================
"""
