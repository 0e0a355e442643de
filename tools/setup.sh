#!/bin/sh
# Make the environment: check the machine, create .venv, install pinned packages, build the native
# module. `tools/setup.sh run` for using uflip, `tools/setup.sh dev` for working on it.
# Fetch Python packages and compile Rust in parallel: the first waits for the network, the second for the
# processor.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-run}
venv=.venv
python=${PYTHON:-python3}

missing=""
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing
  - $2"; }
need "$python" "Python 3.11 or later ($python): your distribution's python3 package"
need cargo "a stable Rust toolchain (cargo), 1.95 or later: see rustup.rs"
need cc "a C compiler (cc): your distribution's gcc or clang package"
need git "git"
if command -v "$python" >/dev/null 2>&1; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || missing="$missing
  - Python 3.11 or later: $python is $("$python" -V 2>&1)"
  "$python" -c 'import venv, ensurepip' 2>/dev/null || missing="$missing
  - Python's venv module: your distribution's python3-venv package"
fi
if [ -n "$missing" ]; then
  echo "uflip cannot be set up: this machine lacks$missing" >&2
  exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
with_pip() {
  # No byte code: it is written when a module is first imported.
  $venv/bin/python -m pip install -q --no-compile --disable-pip-version-check --require-hashes "$@"
}
# Use pip if uv finds no package, for example if only pip is configured for a mirror.
install() {
  "$uv" pip install -q --python $venv/bin/python --require-hashes "$@" 2>/dev/null || with_pip "$@"
}

[ -x $venv/bin/python ] || "$python" -m venv $venv
if ! uv=$(command -v uv); then
  uv=$venv/bin/uv
  [ -x $uv ] || with_pip -r requirements/build.txt || uv=false
fi
install -r requirements/build.txt
echo "building the native module, installing packages into $venv"
($venv/bin/maturin develop --release --locked --skip-install -q >"$log" 2>&1) &
build=$!
install -r "requirements/$kind.txt"
if ! wait $build; then
  cat "$log" >&2
  exit 1
fi
# The module is built; this installs it into the environment.
$venv/bin/maturin develop --release --locked -q >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
echo "ready: $venv/bin/uflip"
