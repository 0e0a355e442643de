"""What holds for all tests."""

import signal
from collections.abc import Iterator

import pytest

# A process that is started in the background of a shell inherits "ignore" for SIGINT, and so would
# this one and every program that it starts. Ctrl-C is under test here, whoever starts the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep simulated devices in a folder of the tests', never in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UFLIP_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("UFLIP_CACHE_SIZE", raising=False)
        yield
