"""Make `web/src/palette.ts` from the palette of the report: a cause has one colour everywhere.

python tools/gen_palette.py            write it
python tools/gen_palette.py --check    say whether it is current; exit 1 if not
"""

import json
import sys
from pathlib import Path

from generated import write_or_check

from uflip.report.figures.palette import CAUSES

FILE = Path(__file__).resolve().parent.parent / "web" / "src" / "palette.ts"
HEAD = "// Made by tools/gen_palette.py of python/uflip/report/figures/palette.py."


def text() -> str:
    """The file: the colours of causes, in their order."""
    return f"{HEAD}\nexport const CAUSES = {json.dumps(CAUSES)} as const;\n"


if __name__ == "__main__":
    sys.exit(write_or_check({FILE: text()}))
