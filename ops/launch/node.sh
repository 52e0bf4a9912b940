#!/bin/sh
# Starts what the node file gives this node: the packages of its roles, then its processes in the foreground.
set -eu

usage() {
    cat <<'TEXT'
usage: node.sh [--file NODES] [--name NODE] [--venv DIR] [--no-setup | --setup-only]

Installs what the roles of this node need, and no more, then runs them until they end.
SIGTERM or Ctrl-C stops them at once; SIGUSR1 drains them: they finish what they hold.

  --file NODES   the node file (default: nodes.yaml)
  --name NODE    this node's name in it (default: the host's name)
  --venv DIR     virtual environment to make and use (default: .venv beside the sources)
  --no-setup     install nothing: the environment is there
  --setup-only   install, and start nothing
  --help         this text

for example:
  ops/launch/node.sh --file nodes.yaml --name cpu-1
TEXT
}
fail() { printf '%s\n' "node.sh: $*" >&2; exit 78; }

file=nodes.yaml name=$(hostname) venv= setup=yes start=yes
while [ $# -gt 0 ]; do
    case $1 in
        --file | --name | --venv)
            [ $# -ge 2 ] || fail "$1 needs a value (see --help)"
            case $1 in --file) file=$2 ;; --name) name=$2 ;; --venv) venv=$2 ;; esac
            shift 2
            ;;
        --no-setup) setup=no; shift ;;
        --setup-only) start=no; shift ;;
        --help | -h) usage; exit 0 ;;
        *) fail "there is no option $1 (see --help)" ;;
    esac
done
[ -f "$file" ] || fail "there is no node file $file: write --file"
file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
source=$(cd "$(dirname "$0")/../.." && pwd)
venv=${venv:-$source/.venv}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
python=$venv/bin/python

# pip alone may choose a torch that matches no torchvision; uv reads the override in pyproject.toml, in its folder.
install() (
    cd "$source"
    "$uv" pip install --quiet --python "$python" --editable "$1"
)
set_up() {
    . "$source/ops/uv.sh"
    find_uv "$venv-uv" python3 || fail "uv could not be installed: install python3-venv or uv, and check the network"
    if [ ! -x "$python" ]; then "$uv" venv --quiet "$venv" || fail "no virtual environment could be made in $venv"; fi
    # The first set of packages reads the node file, which says what the second one has to be.
    stamp=$venv/node-$name known=$(cksum <"$source/pyproject.toml")
    [ "$(head -n 1 "$stamp" 2>/dev/null)" = "$known" ] || install . || fail "the packages could not be installed"
    extras=$(cd "$source" && "$python" -m ops.launch.extras --file "$file" --name "$name")
    [ "$(cat "$stamp" 2>/dev/null)" = "$known
$extras" ] && return
    if [ -n "$extras" ]; then install ".[$extras]" || fail "the packages [$extras] could not be installed"; fi
    printf '%s\n%s\n' "$known" "$extras" >"$stamp"
}

if [ $setup = yes ]; then
    # Nodes that share a disk wait for each other.
    mkdir -p "$(dirname "$venv")" && exec 9>"$venv.lock"
    if command -v flock >/dev/null; then flock 9; fi
    set_up
    exec 9>&-
fi
if [ $start = no ]; then exit 0; fi
[ -x "$python" ] || fail "there is no $python: leave --no-setup out, or write --venv"
PYTHONPATH=$source${PYTHONPATH:+:$PYTHONPATH} exec "$python" -P -m ops.cli node --file "$file" --name "$name"
