"""The explorer: result folders in a browser, down to every I/O. `uflip explore` starts it.

================  =======================================================================
`server`            a loopback server, the browser, shutdown
`connections`       sockets, and limits for connections, also of the results site
`app`               routes, their parameters, access control
`open_results`      the result folders below the given ones, and open results
`open_run`          an open run: its I/Os, and its blocks in memory
`views`             the list, a result, a run, a comparison, …: as plain data
`api_types`         results, runs, lists and comparisons, as the page receives them
`api_io_types`      pictures, slow I/Os and operations, as the page receives them
`window`            the picture of a part of a run
`slow_ios`          the slowest I/Os, and their common traits
`causal_chain`      the causal chain of a slow I/O in one sentence
`gantt`             the operations of dies and channels
`device_log`        the device log of a simulated device
`sweeps`            sweeps: one number per point and axis
`play`              requests of the Play page
`served_devices`    statistics of devices being served
`static/`           the page: built from `web/` by `make web`, and stored here: users need no Node
================  =======================================================================

Python answers requests of the page with numbers and names; the page draws them. One rule holds for
every picture: the minimum and the maximum of each column are exactly those of its I/Os.
"""
