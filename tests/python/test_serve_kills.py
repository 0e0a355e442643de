"""Is everything that a flush acknowledged in the data file after the server was killed?

A client overwrites blocks with rising numbers and flushes now and then; the server is killed at
some moment. Each block must then hold a number not older than the last flush that was answered.
`make soak` (UFLIP_SOAK=1) tries 200 times.
"""

import os
import random
import struct
from contextlib import suppress
from pathlib import Path

import nbd
import pytest
from nbd import Client, request, serving

TRIALS = 200 if "UFLIP_SOAK" in os.environ else 3
SEED = int(os.environ.get("UFLIP_SEED") or 1)
BLOCKS, BLOCK = 256, 4096
DEVICE = "sim:demo?blocks_per_die=64"


class Written:
    """What was sent and what is sure: block -> number."""

    def __init__(self) -> None:
        self.sent = dict.fromkeys(range(BLOCKS), 0)
        self.sure = dict(self.sent)


def work(client: Client, random_: random.Random, written: Written, requests: int) -> None:
    """Write, flush, and write durably; returns early when the server is gone."""
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        for number in range(1, requests + 1):
            block = random_.randrange(BLOCKS)
            durable = random_.random() < 0.1
            written.sent[block] = number
            data = struct.pack(">Q", number) * (BLOCK // 8)
            acknowledged = dict(written.sent)
            assert client.write(block * BLOCK, data, nbd.FUA if durable else 0) == 0
            if durable:
                written.sure[block] = number
            elif random_.random() < 0.1:
                assert client.do(nbd.FLUSH) == 0
                written.sure = acknowledged


@pytest.mark.parametrize("trial", range(TRIALS))
def test_nothing_that_was_flushed_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: int
) -> None:
    monkeypatch.chdir(tmp_path)
    random_ = random.Random(f"{SEED} {trial}")
    written = Written()
    with serving(DEVICE, "--speed", "0", "--data", "disk") as process, Client("s") as client:
        client.go()
        work(client, random_, written, random_.randint(1, 400))
        # Something is under way when it is killed.
        for _ in range(random_.randint(0, 20)):
            block = random_.randrange(BLOCKS)
            written.sent[block] = 10_000
            data = struct.pack(">Q", 10_000) * (BLOCK // 8)
            client.send(request(nbd.WRITE, block * BLOCK, BLOCK), data)
        process.kill()
        process.wait()
    content = Path("disk").read_bytes()
    for block, sure in written.sure.items():
        numbers = struct.unpack_from(f">{BLOCK // 8}Q", content, block * BLOCK)
        # A write that was not acknowledged may be there in part.
        assert all(sure <= number <= written.sent[block] for number in numbers), (
            f"UFLIP_SEED={SEED}, trial {trial}, block {block}: {set(numbers)}, sure was {sure}"
        )
