# For scripts that install packages: `. ops/uv.sh`.

# find_uv FOLDER PYTHON: sets uv to the one on PATH, else to that in FOLDER, which it makes where it is missing.
# uv comes from pip into an environment of its own, because the system's pip may refuse to install anything (PEP 668).
find_uv() {
    uv=uv
    if command -v uv >/dev/null; then return; fi
    uv=$1/bin/uv
    if [ ! -x "$uv" ]; then
        printf '%s\n' "set-up: getting uv" >&2
        rm -rf "$1"
        if "$2" -m venv "$1" >/dev/null 2>&1; then
            "$1/bin/python" -m pip install --quiet uv >&2
        else
            rm -rf "$1"
            "$2" -m venv --without-pip "$1" >/dev/null 2>&1 && "$2" -m pip --python "$1/bin/python" install --quiet uv >&2
        fi || return
    fi
    # A mirror that pip was told of serves uv as well.
    index=${PIP_INDEX_URL:-$("$2" -m pip config get global.index-url 2>/dev/null || true)}
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
}
