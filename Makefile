# Every target sets itself up: Python 3.11 or later and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LAB := optiml_magic/labextension/package.json
comma := ,

# CuPy only where an NVIDIA driver answers, and with it the compiler of the CUDA that the driver knows.
CUDA := $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9]*\).*/\1/p')
EXTRAS := dev$(if $(CUDA),$(comma)gpu$(if $(filter 9 10 11 12,$(CUDA)),12,13))

# Node is for the JupyterLab extension alone: what is made and tested without it has none.
NPM := $(shell command -v npm 2>/dev/null)

# IPython warns of an activated environment that is not its own.
unexport VIRTUAL_ENV
# The tests start hundreds of children, which would all compile this package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test sample stored soak check check-lab-extension lab lab-extension notebooks rules ipykernel6 release clean

demo: $(STAMP)
	"$(BIN)/optiml" demo --html report.html

# What tests and the stored notebooks do is no experience of the user's.
test sample stored soak notebooks: export OPTIML_EXPERIENCE := none

# The checks and the notebooks keep one core busy, so the tests run beside them.
test: $(STAMP)
	@"$(MAKE)" --no-print-directory -j3 check sample stored

sample: $(STAMP) $(if $(NPM),$(LAB))
	OPTIML_SAMPLE=1 "$(BIN)/python" -m pytest -n auto --dist worksteal -m "not slow"

# Every cell runs, and searches for four evaluations; make soak executes them as they are.
stored: $(STAMP)
	@mkdir -p build/notebooks
	for each in notebooks/*.ipynb; do \
	  sed 's/--budget [0-9]*/--budget 4/' "$$each" > "build/$$each" || exit 1; done
	"$(BIN)/python" -m pytest -p nbval.plugin --nbval-lax build/notebooks

soak: $(STAMP) $(if $(NPM),$(LAB))
	OPTIML_SOAK=1 "$(BIN)/python" -m pytest -n auto --dist worksteal --timeout 3600

check: $(STAMP) $(if $(NPM),$(LAB))
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"
	$(if $(NPM),"$(MAKE)" --no-print-directory check-lab-extension)

check-lab-extension: labextension/node_modules
	cd labextension && npm run --silent lint && npm test

$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "optiml-magic needs Python 3.11 or later; name one: make PYTHON=python3.12"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $(STAMP)

lab: $(STAMP)
	"$(BIN)/jupyter" lab notebooks/00_quickstart.ipynb

# The JupyterLab extension, built and linked into the environment; it needs Node and npm.
lab-extension: $(STAMP) $(LAB)
	@mkdir -p $(VENV)/share/jupyter/labextensions
	ln -sfn "$(CURDIR)/$(dir $(LAB))" $(VENV)/share/jupyter/labextensions/optiml-magic

$(LAB): $(wildcard labextension/*.json) $(shell find labextension/src labextension/style labextension/schema -type f) | labextension/node_modules
	cd labextension && PATH="$(abspath $(BIN)):$$PATH" npm run --silent build

labextension/node_modules: labextension/package-lock.json
	cd labextension && npm ci --no-audit --no-fund
	@touch labextension/node_modules

# Run the notebooks and store their outputs, as a reader on GitHub sees them.
notebooks: $(STAMP)
	"$(BIN)/python" notebooks/execute.py

# The pages of the rules, from their code and the records.
rules: $(STAMP)
	"$(BIN)/python" benchmarks/rewriting/pages.py

# What a notebook needs of its kernel, under the older ipykernel as well: it has no subshells.
ipykernel6:
	"$(PYTHON)" -m venv $(VENV)-ipykernel6
	"$(VENV)-ipykernel6/bin/python" -m pip install --quiet --disable-pip-version-check \
	  -e ".[dev]" "ipykernel<7"
	"$(VENV)-ipykernel6/bin/python" -m pytest tests/unit/widgets tests/unit/test_background.py \
	  tests/e2e/test_magics.py tests/e2e/test_completing.py tests/e2e/test_notebooks.py
	"$(VENV)-ipykernel6/bin/python" -m pytest -p nbval.plugin --nbval-lax notebooks

# Builds, looks, installs and tries; publishes nothing (docs/release.md).
release: $(STAMP)
	"$(BIN)/python" release.py

clean:
	rm -rf $(VENV) $(VENV)-ipykernel6 build dist report.html
