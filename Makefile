# Every target sets itself up: Python 3.11 or later and make are all that is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
comma := ,

# CuPy only where an NVIDIA driver answers, and with it the compiler of the CUDA that the driver knows.
CUDA := $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9]*\).*/\1/p')
EXTRAS := dev$(if $(CUDA),$(comma)gpu$(if $(filter 9 10 11 12,$(CUDA)),12,13))

.PHONY: demo test soak check lab clean

demo: $(STAMP)
	"$(BIN)/optiml" demo --html report.html

test: $(STAMP) check
	"$(BIN)/python" -m pytest -n auto -m "not slow"
	"$(BIN)/python" -m pytest --nbval-lax notebooks

soak: $(STAMP)
	OPTIML_SOAK=1 "$(BIN)/python" -m pytest -n auto --timeout 3600

check: $(STAMP)
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"

$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "optiml-magic needs Python 3.11 or later; name one: make PYTHON=python3.12"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $(STAMP)

lab: $(STAMP)
	"$(BIN)/jupyter" lab notebooks/00_quickstart.ipynb

clean:
	rm -rf $(VENV) build dist report.html
