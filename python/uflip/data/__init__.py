"""Documents: what is written beside the numbers, each of a fixed shape, each with one reader.

=================  ===========================================================================
`reading`          the bytes of a file that anybody may have made
=================  ===========================================================================
"""
