#!/bin/sh
# Run libFuzzer on every target of crates/fuzz and every Python parser, each for $1 seconds. New inputs are in
# build/fuzz/TARGET; the corpus in the repository is only read. Works on stable Rust: the coverage that libFuzzer
# needs is an LLVM pass, not a sanitizer.
set -eu
seconds=${1:-20}
seed=${UFLIP_FUZZ_SEED:-$(date +%s)}
host=$(rustc -vV | sed -n 's/host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1"
# Name the host target: otherwise the flags also apply to build scripts.
RUSTFLAGS=$(echo $coverage) cargo build --manifest-path fuzz/Cargo.toml --target-dir target/fuzz \
    --release --locked -q --target "$host"
for target in $(ls crates/fuzz/corpus); do
    echo "fuzzing $target for $seconds s from seed $seed"
    mkdir -p "build/fuzz/$target"
    UFLIP_FUZZ_TARGET=$target "target/fuzz/$host/release/fuzz" \
        -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -verbosity=0 \
        -artifact_prefix="build/fuzz/$target-" -print_final_stats=1 \
        "build/fuzz/$target" "crates/fuzz/corpus/$target"
done

python=.venv/bin/python
$python -c 'import atheris' 2>/dev/null || $python -m pip install -q --require-hashes -r requirements/fuzz.txt
for target in $($python tools/fuzz_parsers.py --list); do
    echo "fuzzing $target in Python for $seconds s from seed $seed"
    $python tools/fuzz_parsers.py "$target" "build/fuzz/python-$target" \
        -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
        -artifact_prefix="build/fuzz/python-$target-" -print_final_stats=1
done
