# Two commands: `make demo` and `make test`. Both make their own environment first, once.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test check fast clean

demo: $(READY)
	$(BIN)/gedi run circles --seed 0 --out runs/demo --overwrite
	@echo
	$(BIN)/gedi run digits-addition --seed 0 --out runs/demo-addition --overwrite
	@echo
	@echo "open runs/demo/report.html (clusters and density) and runs/demo-addition/report.html (names from sums)"

test: check
	$(BIN)/python -m pytest -n 2

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fast: $(READY)  ## the tests without the trainings
	$(BIN)/python -m pytest -n 2 -m "not slow"

# torch goes first and pinned: see constraints.txt
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(shell grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	# an oracle for the tests of the logic; its own requirements would bring torchvision, which it does not need
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "$(shell grep '^deepproblog==' constraints.txt)"
	# a sampler that gedi bench measures ours against
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps "$(shell grep '^torchebm==' constraints.txt)"
	touch $(READY)

clean:
	rm -rf $(VENV) runs tables .mypy_cache .ruff_cache .pytest_cache
