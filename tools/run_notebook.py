"""Run a notebook of the documentation as its reader would, without a notebook server.

python tools/run_notebook.py NOTEBOOK.ipynb...             run it; exit 1 and say what differs
python tools/run_notebook.py --update NOTEBOOK.ipynb...    run it and keep what it shows

Its cells run in order, in one process and in a new folder. What a cell prints, and the text and the
HTML of its last expression, must be what the notebook holds; figures of pyplot are kept as PNG, and
not compared, because their bytes depend on the fonts at hand.
"""

import ast
import base64
import io
import json
import os
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")

Cell = dict[str, Any]
COMPARED = ("text/plain", "text/html")
DPI = 80


def main(arguments: list[str]) -> int:
    """Run every notebook; the exit code is 1 if one shows something else than it holds."""
    update = "--update" in arguments
    paths = [Path(each) for each in arguments if not each.startswith("-")]
    different = 0
    for path in paths:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            shown = execute(cells)
        for number, (cell, outputs) in enumerate(zip(cells, shown, strict=True), start=1):
            if not update and compared(cell["outputs"]) != compared(outputs):
                different += 1
                print(f"{path.name}, code cell {number} shows something else:", file=sys.stderr)
                print(json.dumps(compared(outputs), indent=1)[:4000], file=sys.stderr)
            cell |= {"outputs": outputs, "execution_count": number}
        if update:
            text = json.dumps(notebook, indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")
    return int(different > 0)


def execute(cells: list[Cell]) -> list[list[Cell]]:
    """Run code cells in one namespace; what each shows."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [run(cell, number, namespace) for number, cell in enumerate(cells, start=1)]


def run(cell: Cell, number: int, namespace: dict[str, Any]) -> list[Cell]:
    """Run a cell; its last expression is shown, as a notebook does."""
    tree = ast.parse("".join(cell["source"]), f"cell {number}")
    last = tree.body[-1] if tree.body else None
    printed, value = io.StringIO(), None
    outputs: list[Cell] = []
    if isinstance(last, ast.Expr):
        tree.body.pop()
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())}
        )
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if show := getattr(value, "_repr_html_", None):
            data["text/html"] = lines(show())
        outputs.append({"data": data, "execution_count": number, "metadata": {},
                        "output_type": "execute_result"})  # fmt: skip
    return outputs + figures()


def figures() -> list[Cell]:
    """Take the figures that pyplot holds."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in pyplot.get_fignums() if pyplot else ():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", dpi=DPI, metadata={"Software": None})
        pyplot.close(number)
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        found.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return found


def lines(text: str) -> list[str]:
    """Split a text as notebooks hold it."""
    return text.splitlines(keepends=True)


def compared(outputs: list[Cell]) -> list[Any]:
    """Return the parts of outputs that must agree: texts, and the number of pictures."""
    return [each.get("text") or [each["data"].get(kind) for kind in COMPARED] for each in outputs]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
