"""Check the subjects of recent commits: `area: imperative`, at most 72 characters.

Commits up to the one that introduced this file are not checked. A clone without history, or a
folder without git, has nothing to check and passes.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 72
SUBJECT = re.compile(r"[a-z0-9_./,+-]+: [a-z`0-9]")
# `cargo fmt`, and subjects that git writes.
PLAIN = re.compile(r"cargo fmt$|Revert \"|fixup! |squash! ")


def problem_of(subject: str) -> str | None:
    """Return what is wrong with a subject, or None."""
    if len(subject) > LONGEST:
        return f"{len(subject)} characters, at most {LONGEST} allowed"
    if not SUBJECT.match(subject) and not PLAIN.match(subject):
        return "not of the form `area: imperative`"
    return None


def subjects() -> list[str]:
    """Return the subjects of the commits since this file was added, newest first."""

    def git(*arguments: str) -> list[str]:
        process = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
        return process.stdout.splitlines() if process.returncode == 0 else []

    name = str(Path(__file__).relative_to(ROOT))
    added = git("log", "--diff-filter=A", "--format=%H", "--", name)
    return git("log", "--no-merges", "--format=%s", f"{added[-1]}..HEAD") if added else []


def main() -> int:
    """Print each bad subject; return 1 if there is one."""
    bad = [(subject, problem) for subject in subjects() if (problem := problem_of(subject))]
    for subject, problem in bad:
        print(f"commit subject: {subject}\n  {problem}; see CONTRIBUTING.md", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
