"""Run a notebook of the documentation as its reader would, without a notebook server.

python tools/run_notebook.py NOTEBOOK.ipynb...             run it; exit 1 and print what differs
python tools/run_notebook.py --update NOTEBOOK.ipynb...    run it and store its output

Its cells run in order, in one process and in a new folder. The output of a cell, and the text and
the HTML of its last expression, must equal those in the notebook. Figures of pyplot are stored as
PNG and not compared, because their bytes depend on the installed fonts.
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
    """Run every notebook; the exit code is 1 if the output of one differs from the stored one."""
    update = "--update" in arguments
    paths = [Path(each) for each in arguments if not each.startswith("-")]
    different = 0
    for path in paths:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            results = execute(cells)
        for number, (cell, outputs) in enumerate(zip(cells, results, strict=True), start=1):
            if not update and compared(cell["outputs"]) != compared(outputs):
                different += 1
                print(f"{path.name}, code cell {number} differs:", file=sys.stderr)
                print(json.dumps(compared(outputs), indent=1)[:4000], file=sys.stderr)
            cell |= {"outputs": outputs, "execution_count": number}
        if update:
            text = json.dumps(notebook, indent=1, ensure_ascii=False)
            path.write_text(text + "\n", encoding="utf-8")
    return int(different > 0)


def execute(cells: list[Cell]) -> list[list[Cell]]:
    """Run code cells in one namespace; return the outputs of each."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [run(cell, number, namespace) for number, cell in enumerate(cells, start=1)]


def run(cell: Cell, number: int, namespace: dict[str, Any]) -> list[Cell]:
    """Run a cell; return its output, and its last expression as a notebook shows it."""
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
    """Return the open figures of pyplot, and close them."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    outputs = []
    for number in pyplot.get_fignums() if pyplot else ():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", dpi=DPI, metadata={"Software": None})
        pyplot.close(number)
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def lines(text: str) -> list[str]:
    """Split a text into lines as notebooks store them."""
    return text.splitlines(keepends=True)


def compared(outputs: list[Cell]) -> list[Any]:
    """Return the parts of outputs that must agree: texts, and the number of pictures."""
    return [each.get("text") or [each["data"].get(kind) for kind in COMPARED] for each in outputs]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
