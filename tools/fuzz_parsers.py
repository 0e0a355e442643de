"""Fuzz a parser of the Python package with libFuzzer, with coverage of uflip's code (atheris).

    python tools/fuzz_parsers.py manifest FOLDER [options of libFuzzer]
    python tools/fuzz_parsers.py --list

FOLDER is the corpus: valid documents first, and the inputs that libFuzzer finds.
"""

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

with atheris.instrument_imports(include=["uflip"]):
    import parsers


def main(arguments: list[str]) -> None:
    """Fuzz until libFuzzer ends the process."""
    if arguments == ["--list"]:
        print(*parsers.TARGETS)
        return
    name, folder, *options = arguments
    corpus = Path(folder)
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for number, content in enumerate(parsers.documents(Path(scratch))[name]):
            (corpus / f"document-{number}").write_bytes(content)

    def one(data: bytes) -> None:
        parsers.expect_no_internal_error(parsers.TARGETS[name], data)

    atheris.Setup([sys.argv[0], *options, folder], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
