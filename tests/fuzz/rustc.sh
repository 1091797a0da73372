#!/bin/sh
# The compiler with libFuzzer's instrumentation, on the stable toolchain; for the workspace's own crates alone.
compiler=$1
shift
exec "$compiler" "$@" \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
