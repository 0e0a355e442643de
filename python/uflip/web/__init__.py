"""The explorer: result folders in a browser, down to every I/O. `uflip explore` starts it.

=============  =======================================================================
`server`         a loopback server, the browser, shutdown
`app`            routes and access control
`folders`        the result folders below the given ones; nothing else is opened
`views`          a list, a result, a comparison: as plain data
`open_run`       an open run: its I/Os, and its caches in memory
`grid`           response times summarised in blocks, so that zooming reads little
`window`         the picture of a part of a run
`device_log`     the device log of a simulated device
`channel`        the findings about an open-channel device
`play`           requests of the Play page
`slow_ios`       the slowest I/Os, and their common traits
`static/`        the page: built from `web/` by `make web`, and stored here: users need no Node
=============  =======================================================================

Python answers requests of the page with numbers and names; the page draws them. One rule holds for
every picture: the minimum and the maximum of each column are exactly those of its I/Os.
"""
