# make run    set up, then the quickstart: the whole loop on this machine    make run ARGS='--seed 1'
# make check  set up, then format, lint, types, unit and property tests
# make test   set up, then every test                                        make test ARGS='tests/unit -q'
# make gpu-check   set up, then figures of this machine's GPUs               make gpu-check ARGS='models/Qwen3-VL-2B-Instruct'
# make docs   set up, then the documentation as a site: build/site/index.html
.PHONY: run check test lint setup gpu-check docs

# Where Python is told to keep no compiled code, each of a thousand processes would compile all of this anew.
PYTEST = env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -m pytest --dist loadfile --no-loadscope-reorder

run: setup
	@exec .venv/bin/millrace quickstart $(ARGS)

gpu-check: setup
	@exec .venv/bin/millrace gpu-check $(ARGS)

check: lint
	@exec $(PYTEST) -n 2 -q tests/unit tests/property tests/numeric $(ARGS)

test: setup
	@exec $(PYTEST) -n 4 $(ARGS)

lint: setup
	@.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy .

docs: setup
	@.venv/bin/python -m sphinx -q -W --keep-going -d build/doctrees docs build/site && echo build/site/index.html

setup:
	@sh ops/setup.sh
