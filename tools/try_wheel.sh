#!/bin/sh
# Install a wheel where there is nothing else, and use it: tools/try_wheel.sh FILE.whl
# An environment of its own in a folder of its own, without Rust and without what lies in this one:
# whatever the wheel forgot is missing there.
set -eu
wheel=$(realpath "$1")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"

case $wheel in
*-cp311-abi3-*linux*.whl) ;;
*) echo "$wheel is not for every Python from 3.11 on (cp311-abi3)" >&2; exit 1 ;;
esac

"${PYTHON:-python3}" -m venv plain
plain/bin/python -m pip install -q --disable-pip-version-check "$wheel"

# No home, no cargo, no module path: what is needed is in the wheel or in what it depends on.
run() {
  env -i PATH="$here/plain/bin:/usr/bin:/bin" HOME="$here" UFLIP_CACHE_DIR="$here/cache" "$@"
}
if run sh -c 'command -v cargo || command -v rustc'; then
  echo "Rust is found, and should not be" >&2
  exit 1
fi

run uflip --version
run uflip run sim:demo --scale quick --out demo --quiet
run uflip verify demo
run uflip devices >devices.txt
grep -q '^sim:demo' devices.txt
run uflip profile new sim:tlc-nvme mine.toml
run uflip profile check mine.toml
# What an extra brings is asked for by its name, and is no traceback.
code=0
run uflip site token site alice 2>said.txt || code=$?
[ "$code" = 6 ] && grep -q "pip install 'uflip\[site\]'" said.txt
run python - <<'END'
import importlib.metadata
from importlib import resources

import uflip

result = uflip.load("demo")
assert len(result.runs) > 50, result
assert (resources.files("uflip") / "py.typed").is_file()
assert (resources.files("uflip") / "_native.pyi").is_file()
assert (resources.files("uflip") / "web" / "static" / "app.js").is_file()
about = importlib.metadata.metadata("uflip")
for name in ("Author", "License-Expression", "Summary", "Requires-Python", "Keywords"):
    assert about[name], name
assert "Typing :: Typed" in about.get_all("Classifier")
assert about["Description"].startswith("# ")
END
echo "$(basename "$wheel") runs in an empty environment"
