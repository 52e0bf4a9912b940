# make run    set up, then the quickstart: the whole loop on this machine    make run ARGS='--seed 1'
# make test   set up, then every test                                        make test ARGS='tests/unit -q'
.PHONY: run test setup lint

run: setup
	@exec .venv/bin/millrace quickstart $(ARGS)

test: setup
	@exec .venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: setup
	@.venv/bin/ruff format --check . && .venv/bin/ruff check . && .venv/bin/mypy .

setup:
	@sh ops/setup.sh
