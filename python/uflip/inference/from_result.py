"""The observations of a stored result: a benchmark of the suite `inside`."""

from uflip.errors import ResultsError
from uflip.inference.observations import Observations, RunKey, collect
from uflip.inference.probes import SUITE
from uflip.microbench import varied_micro_benchmarks
from uflip.results import Results

# Without these nothing can be inferred.
NEEDED = ("read_size", "write_size")


def read_observations(results: Results) -> Observations:
    """Return the observations of a result.

    Raises
    ------
    ResultsError
        If the result lacks the runs that every inference needs, or a run is damaged.
    """
    names = varied_micro_benchmarks(SUITE)
    runs = [run for run in results.runs if run.micro_benchmark in names and not run.is_job]
    made = {run.micro_benchmark for run in runs}
    if missing := [name for name in NEEDED if name not in made]:
        interrupted = results.status != "complete" and made
        raise ResultsError(
            "The result lacks runs that an inference needs",
            where=str(results.path),
            got=f"no {', no '.join(missing)}",
            allowed="a result of `uflip infer DEVICE`, or of `uflip run DEVICE --suite inside`",
            action=f"make the missing runs: uflip run --resume {results.path}"
            if interrupted
            else "measure the device: uflip infer DEVICE",
        )
    info = results.manifest.device
    return collect(
        info.capacity_bytes,
        info.sector_bytes,
        (
            (RunKey(run.micro_benchmark, run.pattern, int(run.value or 0)), run.spec, run.trace())
            for run in runs
        ),
    )
