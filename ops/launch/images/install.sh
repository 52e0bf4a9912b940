#!/bin/sh
# Installs this project with some extras into the image's own Python, and makes the user that it runs as:  install.sh EXTRA,EXTRA
set -eu
cd "$(dirname "$0")/../../.."
python -m venv /tmp/uv
/tmp/uv/bin/pip install --quiet --no-cache-dir uv
# [tool.uv] in pyproject.toml counts, as in ops/setup.sh.
/tmp/uv/bin/uv pip install --quiet --no-cache --compile-bytecode --system --editable ".[$1]"
rm -rf /tmp/uv
useradd --uid 10001 --create-home --shell /usr/sbin/nologin millrace
# A volume that is new takes over whose its place was.
install -d -o millrace -g millrace /var/lib/millrace
