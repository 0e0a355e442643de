"""Result folders of either benchmark: as a summary, as text, as a page.

uFLIP measures block devices, uFLIP-OC measures open-channel devices, where the host places data.
Both use the same folder format; this module selects the reader.
"""

from pathlib import Path

from uflip.data.summary import Summary
from uflip.results import Results, outputs
from uflip.results import summary as pattern_summary


def summary(results: Results) -> Summary:
    """Summarise a result folder, of a block device or an open-channel device.

    Raises ResultsError if a run file is damaged.
    """
    if results.is_open_channel:
        from uflip.oc.result_dir import OpenChannelResult

        return OpenChannelResult(results).summary()
    return pattern_summary(results)


def text(results: Results, document: Summary, *, full: bool = False) -> str:
    """Return a result folder as text for a terminal.

    `results`: the folder. `document`: its summary; its texts are printed unchanged. `full`: print
    one row per run, for a benchmark of patterns.
    """
    if results.is_open_channel:
        from uflip.oc.result_dir import OpenChannelResult
        from uflip.oc.text import text_of

        return text_of(OpenChannelResult(results), document)
    from uflip.report.text import render

    return render(document, full=full)


def write_report(results: Results, out: Path, *, force: bool = False) -> int:
    """Write the report of a result folder.

    `results`: a folder, finished or not. `out`: the HTML file; an older report of this name is
    replaced, in one step. `force`: replace any regular file of this name. Returns the size of the
    file [bytes]. Raises ResultsError if a run file is damaged, or the report cannot be written.
    Raises RefusedError if something else has this name. Raises UnavailableError if matplotlib or
    Jinja is not installed.
    """
    target = outputs.check(out, outputs.REPORT, force=force)
    return outputs.write(target, _page(results).encode(errors="replace"))


def _page(results: Results) -> str:
    if results.is_open_channel:
        from uflip.oc.page import page_of
        from uflip.oc.result_dir import OpenChannelResult

        return page_of(OpenChannelResult(results))
    from uflip.report.data import baseline_traces
    from uflip.report.html import build_page
    from uflip.results.stored_inference import read_inference

    inference = read_inference(results)
    return build_page(pattern_summary(results), baseline_traces(results), inference)
