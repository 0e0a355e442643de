"""The explorer: result folders in a browser, down to every I/O. `uflip explore` starts it.

=============  =======================================================================
`server`       a socket of this machine alone, the browser, the end
`app`          which address answers what, and who is answered
`folders`      which result folders lie below those that were named; nothing else opens
`views`        a list, a result, a comparison: as plain data
`open_run`     a run that is looked at: its I/Os, and what is kept of it in memory
`grid`         response times in brief, fine enough to zoom without reading everything
`window`       what is drawn of a stretch of a run
`inside`       what was recorded inside a simulated device meanwhile
`channel`      what was found of an open-channel device
`playing`      what the page of Play asks for
`slow`         the slowest I/Os, and what they have in common
`static/`      the page: made of `web/` by `make web`, and kept here, so that nobody needs Node
=============  =======================================================================

The page asks, Python answers with numbers and names, and nothing that is drawn is decided here but
this: the least and the most of every column are those of the I/Os in it, exactly.
"""
