"""Documents stored beside the numbers: each has a fixed shape and one reader.

=================  ===========================================================================
`bounded_read`     reads the bytes of an untrusted file
`document`         JSON into typed values, checked as a whole
`device`           properties and capabilities of a device
`manifest`         everything about a benchmark but the response times
`ledger`           a line for every file of a result folder, each linked to the one before
`run`              metadata stored with the numbers of a run
`state_record`     the state of a device after its last run
=================  ===========================================================================
"""
