#!/usr/bin/env bash
# Installs the build into a fresh prefix, builds a consumer against it and uses the installed program.
#   run.sh BUILD_DIR
set -euo pipefail
build=$1 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
cmake -S "$here" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/configure.log" ||
    { cat "$work/configure.log"; exit 1; }
cmake --build "$work/consumer"
[ "$("$work/consumer/consumer")" = 'installed 1 full 6f6b' ] || { echo "the consumer printed something else"; exit 1; }
# The installed program finds its helpers and its tasks without the build folder.
cd /
"$work/prefix/bin/skein" tasks list | grep -q sgemm
"$work/prefix/bin/skein" doctor | grep -q 'sandbox level: full'
echo "installed, built against and used"
