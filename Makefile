# `make figures` and `make test` set themselves up: Python 3.11 or newer, make and git are all they need.
PRESET = default
SEEDS = 101 102 103 104 105 106 107 108 109 110 201 202 203 204 205 206 207 208 209 210
PY = .venv/bin/python

# Nothing of the caller's own Python set-up leaks in; one BLAS thread per process, as the work itself runs in parallel.
# Without compiled modules each of some hundred kernels and processes would compile numpy, scipy and matplotlib again: 2 s.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE = 1
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

.PHONY: help figures test unit seeds notebooks bench lint format lock site site-test clean venv

help:
	@echo "make figures     execute the notebooks that changed; write figures/, print the verdicts   [NB=14] [PRESET=quick|default|large] [SCHEDULER=tcp://…]"
	@echo "make test        unit tests, then every notebook cell compared with its committed output"
	@echo "make unit        the unit tests of the library alone, about a minute"
	@echo "make seeds       every notebook under twenty other roots: which rows fail (70 minutes)   [SEEDS=\"101 102\"] [NB=14]"
	@echo "make notebooks   open the notebooks in JupyterLab"
	@echo "make bench       time the library and write benchmarks/README.md, some minutes on an idle machine"
	@echo "make lint        check style; make format mends it"
	@echo "make lock        compile requirements.txt anew from pyproject.toml, and the site's own lock"
	@echo "make site        build the web site in build/site, for reading without a network; make site-test tries it in Chromium"
	@echo "make clean       remove what was built; committed results stay"
	@echo "PYTHON=python3.12 chooses the interpreter; DEPENDENCIES=newest ignores the lock"

venv:
	@tools/venv

figures: venv
	@$(PY) -m runner --preset "$(PRESET)" $(if $(SCHEDULER),--scheduler $(SCHEDULER)) $(NB)

# loadfile keeps the cells of a notebook together and in order; files go to the two processes as conftest.py sorts them
test: venv
	@$(PY) -m pytest tests notebooks --nbval --nbval-current-env -n 2 --dist loadfile --no-loadscope-reorder -q

unit: venv
	@$(PY) -m pytest tests --ignore tests/runner --ignore tests/repository --ignore tests/site --ignore tests/test_agreement.py \
		--ignore tests/benchmarks --ignore tests/simulate/test_cluster.py -n 2 --dist worksteal -q

seeds: venv
	@$(PY) -m runner $(NB) --preset "$(PRESET)" --seeds $(SEEDS)

# What they save goes to build/figures: the committed figures come from `make figures` alone.
notebooks: venv
	@ONESTEP_FIGURES="$(CURDIR)/build/figures" JUPYTER_PREFER_ENV_PATH=1 $(PY) -m jupyterlab --notebook-dir=notebooks

# all cores for both sides of each ratio
bench: venv
	@unset OPENBLAS_NUM_THREADS OMP_NUM_THREADS MKL_NUM_THREADS VECLIB_MAXIMUM_THREADS; \
	$(PY) benchmarks

lint: venv
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

format: venv
	@$(PY) -m ruff check --fix . && $(PY) -m ruff format .

lock: venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --target build/uv uv
	@build/uv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
		--custom-compile-command "make lock" --quiet --output-file requirements.txt
	@build/uv/bin/uv pip compile .ci/site.in --universal --python-version 3.11 --upgrade \
		--custom-compile-command "make lock" --quiet --output-file .ci/site.txt

site: venv
	@PYTHONPATH=.ci $(PY) -m website

site-test: site
	@$(PY) -m pytest tests/site/browser.py tests/site/explorer.py -q

clean:
	rm -rf build .venv .venv.lock .pytest_cache .ruff_cache
