"""What holds for all tests."""

import signal

# A process that is started in the background of a shell inherits "ignore" for SIGINT, and so would
# this one and every program that it starts. Ctrl-C is under test here, whoever starts the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
