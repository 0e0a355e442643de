"""Write the output of long-running commands into a page, so that no numbers are copied by hand.

python tools/doc_tables.py PAGE... [--only WORD]    runs them and renews the pages

A page marks the output of a command:

    <!-- python -m uflip.proof --only detection -->
    ...
    <!-- end -->

Examples that run in seconds are exact and tested (`tools/doc_examples.py`); these commands take
minutes. `--only` renews the output of commands with this word.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKED = re.compile(r"(<!-- (python .*?) -->\n)(.*?)<!-- end -->", re.S)


def commands_of(text: str) -> list[str]:
    """Return the commands whose output a page contains, in order."""
    return [found[1] for found in MARKED.findall(text)]


def printed_by(command: str) -> str:
    """Run a command of the repository, and return its output."""
    first, *rest = shlex.split(command)
    assert first == "python", command
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    command_line = [sys.executable, *rest]
    done = subprocess.run(
        command_line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"`{command}` ended with {done.returncode}; the page is as it was")
    return done.stdout.strip("\n")


def renewed(text: str, only: str) -> str:
    """Return a page with the current output of its commands."""

    def replaced(found: re.Match[str]) -> str:
        command = found[2]
        if only not in command:
            return found[0]
        print(command, flush=True)
        return f"{found[1]}{printed_by(command)}\n<!-- end -->"

    return MARKED.sub(replaced, text)


def main() -> None:
    """Renew all named pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--only", default="", metavar="WORD", help="commands with this word")
    given = parser.parse_args()
    for page in given.pages:
        text = page.read_text(encoding="utf-8")
        if not commands_of(text):
            sys.exit(f"{page}: no command of this page prints anything into it")
        page.write_text(renewed(text, given.only), encoding="utf-8")


if __name__ == "__main__":
    main()
