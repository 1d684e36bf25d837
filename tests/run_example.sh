#!/usr/bin/env bash
# Runs an example and checks the line that shows it did its work.
#   run_example.sh PROGRAM
set -euo pipefail
program=$1
model=${SKEIN_TEST_MODEL:-$HOME/.cache/skein/models/SmolLM2-135M-Instruct.Q4_1.gguf}
case $(basename "$program") in
    01_generate) arguments=("$model") expected='The capital of France is Paris' ;;
    02_chat) arguments=("$model") expected='What is my name' ;;
    03_custom_tool) arguments=() expected='ok: 42' ;;
    04_sandbox) arguments=() expected='timed_out' ;;
    05_agent) arguments=() expected='note.txt holds: hello' ;;
    *) echo "no expectation for $program" >&2; exit 1 ;;
esac
output=$("$program" "${arguments[@]}" 2>&1) || { echo "$output"; exit 1; }
echo "$output"
grep -qF -- "$expected" <<< "$output" || { echo "missing: $expected" >&2; exit 1; }
