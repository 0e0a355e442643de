"""Play: change a simulated device in the explorer, and run something on it at once.

==========  ==========================================================================
`form`      editable keys and possible runs of a device; a request, checked against limits
`player`    the subprocess that makes the runs: `python -m uflip.play.player`
`remedies`  changes of a device that would have avoided a slow I/O
`stage`     scheduling: one run at a time, with limits; storage of the latest results
==========  ==========================================================================

A run produces an ordinary result folder, which is shown and compared like any other. It is removed
when the explorer ends.
"""
