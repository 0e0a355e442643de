"""Run the marked examples of a page of documentation, as a reader would.

python tools/doc_examples.py PAGE.md...             run them; exit 1 and print what differs
python tools/doc_examples.py --update PAGE.md...    run them and write their output into the page
python tools/doc_examples.py --known FILE PAGE.md...   do not run commands whose output is in FILE
python tools/doc_examples.py --bin FOLDER PAGE.md...    with the programs in FOLDER before others

FILE is a JSON object, command -> lines: the output of long commands that the tests have run
already.

The examples of a page run in order, in one new folder. The first line of a fenced block marks it;
readers do not see the words after the name of the language.

```console run            every line behind "$ " is a command that must succeed
```console run exact      and must print, errors included, exactly the lines below it
```console run exit=3     its last command must end with this code
```python run             a program of its own
```text output            the output of the program just before it
```toml file=NAME         is written into the folder as NAME (any language)
```rust of=PATH           is cut out of that file of the repository (any language): a test compares

`needs=MODULE` skips a block if a Python module is not installed, and `direct` if the folder has no
direct I/O; skipped blocks are printed, so that they hide no mistake.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

FENCE = "```"
PROMPT = "$ "
TIMEOUT_S = 300


@dataclass
class Block:
    """A fenced block: its marks, its lines, and their position in the page."""

    marks: list[str]
    first_line: int
    lines: list[str] = field(default_factory=list)

    def value(self, name: str) -> str | None:
        """Return the value of the mark `name=`; None without it."""
        prefix = f"{name}="
        return next((m.removeprefix(prefix) for m in self.marks if m.startswith(prefix)), None)


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page that have marks."""
    blocks: list[Block] = []
    inside: Block | None = None
    for number, line in enumerate(text.splitlines()):
        if inside is None and line.startswith(FENCE):
            inside = Block(line.removeprefix(FENCE).split(), number + 1)
        elif inside is not None and line.rstrip() == FENCE:
            if len(inside.marks) > 1:
                blocks.append(inside)
            inside = None
        elif inside is not None:
            inside.lines.append(line)
    return blocks


def environment(programs: Path | None = None) -> dict[str, str]:
    """Return an environment in which `uflip` is that of this Python, or of a folder of programs.

    Progress lines, which appear on slow machines, are off.
    """
    folders = [*([] if programs is None else [programs]), Path(sys.executable).parent]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    settings = {"PATH": path, "COLUMNS": "100", "LC_ALL": "C.UTF-8", "UFLIP_PROGRESS": "0"}
    return os.environ | settings | {"PYTHONUTF8": "1"}


class Page:
    """A page and the folder in which its examples run."""

    def __init__(
        self,
        path: Path,
        folder: Path,
        known_output: dict[str, list[str]],
        programs: Path | None = None,
    ) -> None:
        self.path = path
        self.environment = environment(programs)
        self.folder = folder
        self.known_output = known_output
        self.text = path.read_text(encoding="utf-8")
        self.faults: list[str] = []
        self.replaced: dict[int, tuple[int, list[str]]] = {}
        self._printed: list[str] = []

    def run(self) -> None:
        """Run every marked block."""
        for block in blocks_of(self.text):
            if reason := self._skip_reason(block):
                print(f"{self._location(block)}: skipped, {reason}")
            elif name := block.value("file"):
                (self.folder / name).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
            elif block.marks[:2] == ["text", "output"]:
                self._compare(block, self._printed)
            elif "run" in block.marks and block.marks[0] == "python":
                self._python(block)
            elif "run" in block.marks:
                self._console(block)

    def update(self) -> None:
        """Write the output into the page."""
        lines = self.text.splitlines()
        for first, (length, new) in sorted(self.replaced.items(), reverse=True):
            lines[first : first + length] = new
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _skip_reason(self, block: Block) -> str:
        module = block.value("needs")
        if module is not None and importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
        if "direct" in block.marks and not has_direct_io(self.folder):
            return "the folder has no direct I/O"
        return ""

    def _location(self, block: Block) -> str:
        return f"{self.path.name}:{block.first_line}"

    def _python(self, block: Block) -> None:
        code, printed = self._execute(sys.executable, "-c", "\n".join(block.lines))
        self._printed = printed
        if code:
            self._fault(block, f"ended with {code}", printed)

    def _console(self, block: Block) -> None:
        commands = [line.removeprefix(PROMPT) for line in block.lines if line.startswith(PROMPT)]
        output: list[str] = []
        for command in commands:
            expected_code = int(block.value("exit") or 0) if command == commands[-1] else 0
            if command in self.known_output:
                code, printed = 0, self.known_output[command]
            else:
                code, printed = self._execute("bash", "-o", "pipefail", "-c", command)
            if code != expected_code:
                self._fault(block, f"`{command}` ended with {code}, not {expected_code}", printed)
            output += [PROMPT + command, *printed]
        if "exact" in block.marks:
            self._compare(block, output)

    def _execute(self, *command: str) -> tuple[int, list[str]]:
        """Run a command; return its exit code and the lines that it printed."""
        process = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return process.returncode, [line.rstrip() for line in process.stdout.splitlines()]

    def _compare(self, block: Block, printed: list[str]) -> None:
        if printed != block.lines:
            self.replaced[block.first_line] = (len(block.lines), printed)
            self._fault(block, "prints something else", printed)

    def _fault(self, block: Block, problem: str, printed: list[str]) -> None:
        output = "\n".join(f"    {line}" for line in printed)
        self.faults.append(f"{self._location(block)}: {problem}\n{output}")


def has_direct_io(folder: Path) -> bool:
    """Return whether files in a folder can be opened for direct I/O."""
    from uflip import UflipError, open_device

    probe = folder / ".probe"
    try:
        open_device(f"file:{probe}", size=4096)
    except UflipError:
        return False
    finally:
        probe.unlink(missing_ok=True)
    return True


def main(arguments: list[str]) -> int:
    """Run the examples of all named pages."""
    parser = argparse.ArgumentParser(description="Run the marked examples of pages.")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--known", type=Path)
    parser.add_argument("--bin", type=Path)
    parser.add_argument("pages", nargs="*")
    args = parser.parse_args(arguments)
    known_output = {} if args.known is None else json.loads(args.known.read_text(encoding="utf-8"))
    update = args.update
    failed = False
    for name in args.pages:
        with tempfile.TemporaryDirectory() as folder:
            page = Page(Path(name), Path(folder), known_output, args.bin)
            page.run()
        if update:
            page.update()
        for fault in page.faults:
            print(fault)
        failed = failed or bool(page.faults)
    return int(failed and not update)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
