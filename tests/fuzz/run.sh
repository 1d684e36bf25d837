#!/usr/bin/env bash
# Runs one fuzz target over its seeds for $SKEIN_FUZZ_SECONDS, with libFuzzer or with driver.cpp.
#   run.sh PROGRAM SEED...
set -euo pipefail
program=$1 seconds=${SKEIN_FUZZ_SECONDS:-10}
shift
if ! "$program" -help=1 2> /dev/null | grep -q max_total_time && ! "$program" -help=1 2>&1 | grep -q max_total_time; then
    exec "$program" --seconds "$seconds" "$@"
fi
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
cp -- "$@" "$corpus"
"$program" -seed=20 -timeout=10 -rss_limit_mb=2048 -max_total_time="$seconds" -print_final_stats=1 \
    -artifact_prefix=crash- "$corpus"
