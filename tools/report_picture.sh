#!/bin/sh
# Make docs/images/report.png: the beginning of the report of `uflip run sim:demo`. Needs chromium.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/uflip run sim:demo --out "$folder/demo" --quiet
.venv/bin/uflip report "$folder/demo" -o "$folder/report.html" --quiet
chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$folder/browser" --hide-scrollbars \
  --window-size=1200,1500 --screenshot="$PWD/docs/images/report.png" "file://$folder/report.html" \
  >/dev/null 2>"$folder/log" || { cat "$folder/log" >&2; exit 1; }
ls -l docs/images/report.png
