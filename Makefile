# Every target sets itself up: `make test` or `make book` on a fresh clone is enough.
# Needs only make and Python 3.11 or later: `make PYTHON=python3.12 test` chooses one, and
# `make clean` comes first where .venv was made by another Python.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
# Chapters take longest, so they begin first; by their number of cells they would come last.
PYTEST := $(BIN)/python -m pytest --nbval --nbval-kernel-startup-timeout 300 --numprocesses auto \
    --dist loadscope --no-loadscope-reorder
# Bytecode is compiled once and kept, so that later starts are fast.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE
# Where a process runs on every core, more threads in each only wait for each other.
book test check: export OMP_NUM_THREADS := 1
book test check: export OPENBLAS_NUM_THREADS := 1
# Files in user site-packages or on PYTHONPATH must not shadow the locked versions.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH
.PHONY: book pdf links lab test check other-processor chapters data torch lint bench witness lock release clean

book: $(READY) # executes every chapter afresh; a warning is an error
	rm -rf _build
	$(BIN)/python -m orabook.builder.build
	@echo "The book is ready: open file://$(CURDIR)/_build/html/index.html"
pdf: $(READY) # the whole book as one PDF, printed by Chromium; no chapter is executed again
	test -s _build/html/index.html || $(MAKE) book
	$(BIN)/python -m orabook.builder.pdf
links: $(READY) # asks the address behind every link of the book; needs a network
	$(BIN)/jupyter-book build --builder linkcheck --path-output _build/links .
lab: $(READY) # the chapters in JupyterLab, on this machine only, with a secret token and no news
	JUPYTER_CONFIG_PATH="$(CURDIR)/.jupyter" $(BIN)/jupyter-lab --ServerApp.ip=127.0.0.1 \
	    --ServerApp.root_dir=book

test: $(READY) # tests without browser or PyTorch; chapters must show what is committed, figures too
	$(PYTEST) -m "not slow and not browser and not torch"
check: $(READY) # what must pass before a change lands: the book is built without PyTorch, as for most
	$(MAKE) --jobs=2 lint book
	$(MAKE) --jobs=2 pdf torch
	$(MAKE) --jobs=1 test
	ORALIB_REQUIRE_BROWSER=1 ORALIB_REQUIRE_TORCH=1 $(PYTEST) -m "slow or browser or torch"
	$(MAKE) other-processor
other-processor: $(READY) # some chapters as another processor computes them
	$(BIN)/python tests/other_processor.py
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
bench: $(READY) # measures how fast the library is, and writes book/data/benchmarks.md
	$(BIN)/python -m benchmarks
witness: torch # what audits see of trainings with one bug, and that honest ones pass; writes the tables
	$(BIN)/python -m tests.witness
	$(BIN)/python tests/witness/calibrate.py --processes 2

chapters: $(READY) # executes the chapters in place, to commit their outputs after a change
	$(BIN)/python -m orabook.builder.execute
data: $(READY) # computes the tables that chapters read because they take minutes; commit the result
	$(BIN)/python -m orabook.builder.data
torch: .venv/torch-ready # adds PyTorch (its CPU build, where pip has one, is enough), Opacus, JAX, Transformers
.venv/torch-ready: $(READY) requirements-torch.txt
	sed '/--hash=/d; s/ \\$$//; s/\[.*\]//' requirements.lock > .venv/constraints.txt # pip takes no others
	$(BIN)/python -m pip install -q --disable-pip-version-check -c .venv/constraints.txt -r requirements-torch.txt
	@touch $@
lock: $(READY) # renews the pins and hashes of every dependency; commit the result
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --no-annotate --no-header -q \
	    --generate-hashes --no-strip-extras --extra book --extra pdf --extra lab --extra test --extra runs --extra build -o requirements.lock pyproject.toml
release: # only for a release: lists what is still to be filled in, and fails while there is any
	! git grep --line-number "to be filled in:" -- ":!Makefile"
clean:
	rm -rf .venv _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.txt # the pin and its hashes
	$(BIN)/python -m pip install -q --disable-pip-version-check -r .venv/uv.txt
	$(BIN)/uv pip sync -q --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@
