"""Write the output of long-running commands into a page, so that no numbers are copied by hand.

python tools/doc_tables.py PAGE... [--only WORD]    runs them and renews the pages

A page marks the output of a command:

    <!-- python benches/method_proof.py --only detection -->
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
    return [match[1] for match in MARKED.findall(text)]


def output_of(command: str) -> str:
    """Run a command of the repository, and return its output."""
    first, *arguments = shlex.split(command)
    assert first == "python", command
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    command_line = [sys.executable, *arguments]
    process = subprocess.run(
        command_line, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if process.returncode:
        sys.exit(f"`{command}` ended with {process.returncode}; the page is unchanged")
    return process.stdout.strip("\n")


def renew(text: str, only: str) -> str:
    """Return a page with the current output of its commands."""

    def replace(match: re.Match[str]) -> str:
        command = match[2]
        if only not in command:
            return match[0]
        print(command, flush=True)
        return f"{match[1]}{output_of(command)}\n<!-- end -->"

    return MARKED.sub(replace, text)


def main() -> None:
    """Renew all named pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    parser.add_argument("--only", default="", metavar="WORD", help="commands with this word")
    args = parser.parse_args()
    for page in args.pages:
        text = page.read_text(encoding="utf-8")
        if not commands_of(text):
            sys.exit(f"{page}: the page has no marked command")
        page.write_text(renew(text, args.only), encoding="utf-8")


if __name__ == "__main__":
    main()
