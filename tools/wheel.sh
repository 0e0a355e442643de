#!/bin/sh
# Build wheels for manylinux 2.28 and a source distribution into build/wheels, and try them in empty
# environments of every Python from 3.11 to 3.14 on the path. See docs/how-to/install.md.
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
PATH=$bin:$PATH # of ziglang
rm -rf build/wheels
"$bin/uv" pip install -q --python "$bin/python" --require-hashes -r requirements/wheel.txt
for processor in x86_64 aarch64; do
  target=$processor-unknown-linux-gnu
  if rustup target list --installed | grep -qx "$target"; then
    "$bin/maturin" build --release --locked -q --zig --target "$target" \
      --compatibility manylinux_2_28 --out build/wheels
  else
    echo "no wheel for $processor: rustup target add $target"
  fi
done
"$bin/maturin" sdist --out build/wheels
wheel=$(echo build/wheels/*_2_28_"$(uname -m)".whl)
for version in 3.11 3.12 3.13 3.14; do
  if python=$("$bin/uv" python find --no-project --no-python-downloads $version 2>/dev/null); then
    PYTHON=$python tools/try_wheel.sh "$wheel"
  else
    echo "not tried: no Python $version on this machine"
  fi
done
# The source distribution builds the same wheel, with the toolchain of this machine.
tools/try_sdist.sh build/wheels/uflip-*.tar.gz
