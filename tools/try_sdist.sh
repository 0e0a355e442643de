#!/bin/sh
# Install a source distribution into an empty environment with the Rust of this machine:
# tools/try_sdist.sh FILE.tar.gz
set -eu
source=$(realpath "$1")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
"${PYTHON:-python3}" -m venv "$here/plain"
"$here/plain/bin/python" -m pip install -q --disable-pip-version-check "$source"
cd "$here"
UFLIP_CACHE_DIR=$here/cache plain/bin/uflip run sim:demo --scale quick --out demo --quiet
plain/bin/uflip verify demo
echo "$(basename "$source") builds and runs"
