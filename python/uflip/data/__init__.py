"""Documents: what is written beside the numbers, each of a fixed shape, each with one reader.

=================  ===========================================================================
`reading`          the bytes of a file that anybody may have made
`document`         JSON into typed values, checked as a whole
`device`           what is known about a device, and what it can
`manifest`         everything about a benchmark but the response times
`ledger`           a line for every file of a result folder, each bound to the last
`run`              what is stored with the numbers of a run
`state_record`     in which state a device was left
=================  ===========================================================================
"""
