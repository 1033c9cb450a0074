# Every target sets itself up: `make test` or `make book` on a fresh clone is enough.
# Needs only make and a Python 3.11, 3.12 or 3.13 (choose one with `make PYTHON=python3.12 test`).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
TF     := .venv-tf

# Bytecode is compiled once and kept, so that later starts are fast.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE
# Files in user site-packages or on PYTHONPATH must not shadow the locked versions.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH

# They are removed and made again: no shell may take their names for anything else, such as ~ does.
SIGNS := ~ * ? [ ] ; & | < > ( ) { } ! ' " ` \ $$ \#
ifneq ($(strip $(words $(VENV)) $(words $(TF)) $(foreach sign,$(SIGNS),$(findstring $(sign),$(VENV)$(TF)))),1 1)
$(error VENV and TF must be the names of folders, without blanks and signs such as ~, got VENV=$(VENV) and TF=$(TF))
endif

# An environment that was made for another folder, before this one was moved or copied, has that
# folder's oralib; files that were copied may be other ones and older; and one with another Python than
# the one that is asked for is made again as well.
MARK := pwd -P && cat requirements.lock pyproject.toml | cksum
VERSION := -c 'import sys; print(*sys.version_info[:2])'
STALE :=
ifneq ($(wildcard $(READY)),)
ifneq ($(shell cat "$(VENV)/made-here" 2>/dev/null),$(shell $(MARK)))
STALE := again
else ifneq ($(origin PYTHON),file)
ifneq ($(shell $(PYTHON) $(VERSION)),$(shell $(BIN)/python $(VERSION)))
STALE := again
endif
endif
endif

# An environment that somebody else has made, or another make is making, is not removed.
ours = if test -e "$(1)" && ! test -e "$(1)/made-here" && ! test -e "$(1)/ready"; then \
    echo "$(1) is there and was not made by make: rename it, or use another by make VENV=..." >&2; \
    exit 1; fi; \
    maker=$$(cat "$(1)/maker" 2>/dev/null); \
    if test "$$maker" != "$$PPID" && kill -0 "$$maker" 2>/dev/null; then \
    echo "another make, process $$maker, is setting up $(1): wait for it" >&2; \
    exit 1; fi

.PHONY: book pdf lab test chapters data torch tf-scores lint bench lock clean again

# Executes every chapter afresh; a warning is an error. The pages carry what readers need to run them.
book: $(READY)
	rm -rf _build
	$(BIN)/python book/_ext/downloads.py _build/carried/downloads
	$(BIN)/python -m book.build
	@echo "The book is ready: open file://$(CURDIR)/_build/html/index.html"

# The whole book as one PDF, printed by Chromium from the pages of `make book`, which it builds if
# there are none: no chapter is executed again.
pdf: $(READY)
	test -s _build/html/index.html || $(MAKE) book
	$(BIN)/python -m book.pdf

# The chapters in JupyterLab, on this machine only: the address that it prints has a secret token.
lab: $(READY)
	$(BIN)/jupyter-lab --ServerApp.ip=127.0.0.1 --ServerApp.root_dir=book

# All tests, and every chapter executed and compared with its committed outputs.
test: $(READY)
	$(BIN)/python -m pytest --nbval --numprocesses auto --dist loadscope

# Executes the chapters in place, to commit their outputs after a change.
chapters: $(READY)
	$(BIN)/python -m book

# Computes the tables that chapters read because they take minutes; commit the result.
data: $(READY)
	$(BIN)/python -m book.data

# Adds PyTorch, Opacus and JAX, for the chapters on real trainings. The CPU build of PyTorch is enough:
# where pip finds another one by default, install that one first.
torch: $(VENV)/torch-ready

$(VENV)/torch-ready: $(READY) requirements-torch.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint requirements.lock --requirement requirements-torch.txt
	@touch $@

# Trains with TensorFlow Privacy, which cannot share an environment with oralib and gets one of its own,
# with Python 3.11, and writes the scores that a chapter reads; commit the result.
tf-scores: $(READY) $(TF)/ready
	TF_CPP_MIN_LOG_LEVEL=3 $(TF)/bin/python book/tf_privacy.py --out book/data/tf-privacy.csv --sigma \
	    $$($(BIN)/python -c 'import oralib; print(oralib.noise_multiplier(8, 1e-5, 100, 0.1))')

$(TF)/ready: requirements-tf.txt
	@$(call ours,$(TF)); rm -rf "$(TF)"
	@mkdir $(TF) && pwd -P > $(TF)/made-here
	python3.11 -m venv $(TF)
	$(TF)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-tf.txt
	@touch $@

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

# Renews the pins of every dependency; commit the result.
lock: $(READY)
	$(BIN)/uv pip compile --upgrade --universal --python-version 3.11 --no-annotate --no-header \
	    --extra book --extra lab --extra test --extra runs --extra build --quiet --output-file requirements.lock pyproject.toml

clean:
	@$(call ours,$(VENV)); $(call ours,$(TF)); \
	    rm -rf "$(VENV)" "$(TF)" _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted set-up starts again from nothing.
$(READY): requirements.lock pyproject.toml $(STALE)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	    sys.exit(None if (3, 11) <= v <= (3, 13) else "make needs Python 3.11 to 3.13, but $(PYTHON) is %d.%d: try make PYTHON=python3.12" % v)'
	@$(call ours,$(VENV)); rm -rf "$(VENV)"
	@mkdir $(VENV) && { $(MARK); } > $(VENV)/made-here && echo $$PPID > $(VENV)/maker
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements.lock)"
	$(BIN)/uv pip sync --quiet --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/maker; touch $@
