"""The command line: one module per verb, which translates arguments into function calls.

`main` finds a verb by its name and imports its module only then; each module defines its click
command as `command`. Shared options are in `options`, output in `terminal`, live progress in
`progress`.
"""
