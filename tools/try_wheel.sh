#!/bin/sh
# Install a wheel into an empty environment, and use it: tools/try_wheel.sh FILE.whl
# A separate environment in a separate folder, without Rust and without the repository: a file that the wheel
# lacks is missing there.
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

# No home, cargo or module path: everything is in the wheel or its dependencies.
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
# A missing extra is reported by its name, without a traceback.
code=0
run uflip site token site alice 2>said.txt || code=$?
[ "$code" = 6 ] && grep -q "pip install 'fastapi>=" said.txt
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
