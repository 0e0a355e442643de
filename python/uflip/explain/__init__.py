"""Explanation of a log or trace: what its response times show, each statement with its evidence.

::

    FILE ─▶ io_log ─▶ levels, rhythm, cliff, slow_ios, nearest_device ─▶ explanation ─▶ picture

================  ===========================================================================
`io_log`          the I/Os of any file that the recogniser reads
`finding`         a statement: found, absent or undecided, with numbers
`levels`          levels, start-up and period
`cliff`           bytes written until the rate falls
`slow_set`        which I/Os are slow
`rhythm`          even distances of slow I/Os
`slow_ios`        what slow I/Os have in common, and causes that the simulator recorded
`nearest_device`  the simulated device that behaves most like it
`explanation`     all of them
`picture`         a figure of them
================  ===========================================================================
"""
