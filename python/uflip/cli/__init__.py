"""The command line: one module per verb, which translates arguments into function calls.

`main` finds a verb by its name and imports its module only then; each module defines its click
command as `command`. Shared option types and output are in `common`, live progress in `progress`.
"""
