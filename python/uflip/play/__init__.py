"""Play: a simulated device is changed, and something is run on it there and then.

============  ===========================================================================
`form`        what can be changed of a device, and what can be run on it, as plain data
`wanted`      what somebody asked for, read and held against what is allowed here
`player`      a process of its own that makes the runs: `python -m uflip.play.player`
`stage`       who may run when: one at a time, so long, so large; what is kept of it
============  ===========================================================================

What is made is a result folder like any other: it is looked at, compared and counted by what looks
at all of them. It goes when the explorer ends.
"""
