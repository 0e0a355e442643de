"""The command line: one file per verb, each a translation between arguments and functions.

`main` finds a verb by its name and imports its file only then; each file offers its click command
as `command`. What verbs share (option types, output) is in `common`, live progress in `progress`.
"""
