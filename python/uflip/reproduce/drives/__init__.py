"""Real drives of today, simulated: constants fitted to some rows of a table, and all rows beside.

`tables`        the tables of measurements, as observations of phases
`single_table`  all measurements of a drive in a single table
`workload`      a phase as a workload; the phases to which constants are fitted
`line_device`   write amplification of a workload on a simulated drive of lines
`drive_model`   the constants of a drive, and the rate that follows from write amplification
`fit`           the constants of a drive from its calibration rows
`loaded_response`  response times under load, by a closed form
`write_waits`   waits of writes for space in the write buffer, by a closed form
`knees`         offered rates at which writes begin to wait
`drive_profile`  a fitted drive as the profile of a simulated device
`comparison`    all rows: fitted or predicted, deviation, and two null models beside them
"""
