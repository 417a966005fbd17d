# `make figures` and `make test` set themselves up: Python 3.11 or newer, make and git are all they need.
PY = .venv/bin/python
PRESET = default
JOBS := $(shell getconf _NPROCESSORS_ONLN)
# The interpreter that builds .venv: the first that is new enough and comes with venv and pip.
FIT = import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON = $(firstword $(foreach each,python3.13 python3.12 python3.11 python3 python,$(shell $(each) -c '$(FIT)' >/dev/null 2>&1 && echo $(each))))
SEEDS = $(shell seq 301 320)

# Nothing of the caller's own Python set-up leaks in; one BLAS thread per process, as the work itself runs in parallel.
# Without compiled modules each of some hundred kernels and processes would compile numpy, scipy and matplotlib again: 2 s.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE = 1
# matplotlib's list of fonts, too: one that was written while another environment was removed lacks some.
export MPLCONFIGDIR = $(CURDIR)/build/matplotlib
export PIP_REQUIRE_VIRTUALENV =
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
export VECLIB_MAXIMUM_THREADS = 1
# glibc: keep freed arrays of up to 32 MiB for the next one; handing each back costs a tenth of the time in page faults.
export MALLOC_MMAP_THRESHOLD_ = 33554432
export MALLOC_TRIM_THRESHOLD_ = 1073741824
# One arena: replicates run in threads, and what one has freed serves the other, a fourth of the page faults.
export MALLOC_ARENA_MAX = 1
export ONESTEP_SCHEDULER = $(SCHEDULER)

# Another interpreter than .venv's has its packages already, and finds the library here.
ifeq ($(PY),.venv/bin/python)
STAMP := .venv/stamp-$(shell cksum < requirements.txt | cut -d' ' -f1)$(DEPENDENCIES)
else
export PYTHONPATH = $(CURDIR)/lib
endif

.PHONY: help venv figures test unit seeds notebooks bench lint format lock site clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^\#]*\#\# /make \1	/p' Makefile | expand -t 16
	@echo "PY=python takes an interpreter with all packages, such as conda's; PYTHON=python3.12 builds .venv with that one;"
	@echo "DEPENDENCIES=newest builds .venv without the lock; JOBS=4 sets the number of processes"

venv: $(STAMP) ## build .venv, as all that follow do where it is missing or the lock has changed

# Compiled as they are first imported, modules take 4 s; all 7,000 would take 16. The library is used where it lies.
$(STAMP):
	@$(or $(PYTHON),false) -c '$(FIT)' || { echo "error: found no Python 3.11 or newer with venv and pip;" \
		"name one: make PYTHON=/path/to/python3 (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "building .venv with $(PYTHON), once; this takes about half a minute" && rm -rf .venv && $(PYTHON) -m venv .venv
	@if [ "$(DEPENDENCIES)" = newest ]; then set -- --upgrade -e ".[notebooks,cluster,site,dev]"; \
		else set -- --no-deps -r requirements.txt; fi; \
		$(PY) -m pip install -qq --no-compile --disable-pip-version-check "$$@"
	@echo ../../../../lib > "$$(echo .venv/lib/python3*/site-packages)/onestep.pth" && touch $@

figures: venv ## execute the notebooks that changed; write figures/, print the verdicts  [NB=14] [PRESET=quick|default|large] [SET="seed=3"] [SCHEDULER=tcp://…]
	@$(PY) tools/run.py $(NB) $(if $(filter default,$(PRESET)),,--preset "$(PRESET)") $(if $(SET),--set $(SET)) --jobs $(JOBS)

# loadfile keeps the cells of a notebook together and in order; files go to the processes as conftest.py sorts them
test: export ONESTEP_JOBS = 1
test: venv ## all tests, then every notebook cell compared with its committed output
	@$(PY) -m pytest tests notebooks --nbval --nbval-current-env -n $(JOBS) --dist loadfile --no-loadscope-reorder -q -rs

unit: venv ## the tests of the library that are fast, half a minute
	@$(PY) -m pytest tests -m "not slow" -n $(JOBS) --dist worksteal -q

seeds: venv ## every notebook under twenty other roots: which rows fail (two hours)  [SEEDS="101 102"] [NB=14]
	@$(PY) tools/run.py $(NB) --seeds $(SEEDS) --jobs $(JOBS)

# What they save goes to build/figures: the committed figures come from `make figures` alone.
notebooks: venv ## open the notebooks in JupyterLab
	@ONESTEP_FIGURES="$(CURDIR)/build/figures" JUPYTER_PREFER_ENV_PATH=1 \
		$(PY) -m jupyterlab --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

# all cores for both sides of each ratio
bench: venv ## time the library against the straightforward way, two minutes on an idle machine
	@unset OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS VECLIB_MAXIMUM_THREADS; $(PY) benchmarks/ratios.py

lint: venv ## check style
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

format: venv ## mend style
	@$(PY) -m ruff check --fix . && $(PY) -m ruff format .

lock: venv ## compile requirements.txt anew from pyproject.toml
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --target build/uv uv
	@build/uv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
		--custom-compile-command "make lock" --quiet --output-file requirements.txt

site: venv ## build the web site in build/site, and try it in Chromium where there is one
	@rm -rf build/site build/doctrees
	@$(PY) -m sphinx -q -W --keep-going -b html -c docs -d build/doctrees . build/site
	@$(PY) -m pytest tests/test_site.py -q -rs
	@echo "the site is ready: open build/site/index.html"

clean: ## remove what was built, compiled modules too; committed results stay
	rm -rf build .venv .pytest_cache .ruff_cache lib/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

