#!/bin/sh
# Builds a fuzz target with the stable toolchain, without cargo-fuzz, and runs it. Usage: fuzz/run.sh filter -max_total_time=1200
set -eu
cd "$(dirname "$0")"
target=$1
shift
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTC_BOOTSTRAP=1 RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks" \
    cargo build --release --target "$host" --bin "$target"
mkdir -p "corpus/$target" "artifacts/$target"
dictionary=
if [ -f "$target.dict" ]; then dictionary="-dict=$target.dict"; fi
# What is found goes to another folder: `corpus` has what is kept.
mkdir -p "found/$target"
exec "target/$host/release/$target" "found/$target" "corpus/$target" $dictionary -artifact_prefix="artifacts/$target/" \
    -max_len=4096 -timeout=2 -rss_limit_mb=1024 "$@"
