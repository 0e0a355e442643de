"""The inference of a result folder, cached beside its summaries, for its run files only."""

import contextlib

import msgspec

from uflip.data import inference
from uflip.data.inference import StoredInference
from uflip.data.run_summary import SummarySource
from uflip.results.reader import Results
from uflip.safe_files import write_file


def store_inference(results: Results, stored: StoredInference) -> None:
    """Cache an inference; a folder that cannot be written is left as it is."""
    path = results.path / inference.FILE
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_file(path, msgspec.json.encode(stored), durable=False)


def read_inference(results: Results) -> StoredInference | None:
    """Return the cached inference of these run files; None if it was not made."""
    stored = inference.read(results.path / inference.FILE)
    return stored if stored is not None and stored.sources == sources_of(results) else None


def sources_of(results: Results) -> tuple[SummarySource, ...]:
    """Return the run files of a folder, with their lengths and digests."""
    return tuple(
        SummarySource(run.id, *run.expected) for run in results.runs if run.expected is not None
    )
