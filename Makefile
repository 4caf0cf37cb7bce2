# Everything installs into VENV; pins are in constraints.txt.
PYTHON ?= python3
REQUIRE ?=
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# uv takes a fraction of pip's time; where it reaches no index, because it does not read pip's settings, pip
# installs, and its errors alone are shown.
define install
@echo "installing judge-gym[$(1)] into $(VENV)"
@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[$(1)]' 2> $(VENV)/uv.log \
	|| { echo "uv could not install it ($(VENV)/uv.log says why); pip does"; $(PIP) -e '.[$(1)]'; }
endef
# Otherwise every process would compile all libraries.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo required test test-slow test-all simulations check docs site bench chaos fuzz mutants snapshots clean

demo: $(VENV)/run
	$(BIN)/judge-gym demo

# REQUIRE=all installs programs and the model that tests need, or fails; without it they are skipped and counted.
required: $(VENV)/test
ifeq ($(REQUIRE),all)
	scripts/system-packages
	$(BIN)/judge-gym models get smollm2
endif

# What an edit needs: every room, in one process each, on SQLite.
test: required
	REQUIRE=$(REQUIRE) $(BIN)/pytest

# What takes long: Postgres, faults, kills, other processes, simulations of estimators, hostile candidates, browsers,
# notebooks, commands of the documentation, the installed package, suites in TypeScript (which need npm).
# SLOW="FILES OR OPTIONS OF PYTEST" chooses some of them.
SLOW ?=
test-slow: required
	REQUIRE=$(REQUIRE) $(BIN)/pytest -m slow $(SLOW)

test-all: test test-slow

# Whether intervals and tests hold over many simulated studies; writes the table of docs/calibrate.md. PANELS=1900
# (about 90 minutes of CPU time) is what the page shows; ONLY=NAME prints a part of it and writes nothing.
PANELS ?= 1900
simulations: $(VENV)/test
	$(if $(ONLY),,$(BIN)/pytest -m simulation tests --junitxml=.simulations.xml)
	PYTHONPATH=tests $(BIN)/python -m simulations --panels $(PANELS) $(if $(ONLY),--only '$(ONLY)',--write --studies .simulations.xml)

check: $(VENV)/check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile

docs: $(VENV)/run
	$(BIN)/judge-gym axes --markdown > docs/axes.md
	$(BIN)/python -m judge_gym.cli.reference > docs/cli.md
	$(BIN)/python scripts/generate_from_verbs.py
	$(BIN)/python scripts/architecture.py
	$(BIN)/python scripts/trace_run.py
	$(BIN)/python scripts/measures_page.py
	$(BIN)/python scripts/formats_page.py

# The documentation as pages with search, which need no network: build/site/index.html.
site: $(VENV)/run
	$(call install,site)
	$(BIN)/python scripts/docs_site.py

# Each measures side by side in one run, because machines differ.
bench: $(VENV)/test
	for each in commands dedupe belief analysis frames items lane load limits memory workers durability web; do echo "== $$each"; $(BIN)/python bench/$$each.py; done

# The property tests on examples that are new each time.
fuzz: $(VENV)/test
	HYPOTHESIS_PROFILE=fuzz $(BIN)/pytest -q $$(grep -rl "import.*given" tests)

# Runs killed at 20 random points, on SQLite and on Postgres; CHAOS_SEED=N chooses other points.
chaos: $(VENV)/test
	CHAOS=$(or $(CHAOS),20) $(BIN)/pytest -m "" -n 2 --dist load tests/engine/test_chaos.py tests/engine/test_outages.py

# Applies each fault of tests/mutants.toml to a copy of the source; the tests that it names must fail.
mutants: $(VENV)/test
	$(BIN)/python scripts/mutants.py $(if $(ONLY),--only '$(ONLY)')

# Writes the snapshots of prompts and of the style guide anew; read the diff before you commit it.
snapshots: $(VENV)/test
	WRITE_SNAPSHOTS=1 $(BIN)/pytest -q tests/stages/test_prompts.py tests/web/test_styleguide.py

$(VENV)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "judge-gym needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) uv
	touch $@

$(VENV)/run: $(VENV)/python pyproject.toml constraints.txt
	$(call install,suites)
	touch $@

$(VENV)/test: $(VENV)/run
	$(call install,test)
	touch $@

$(VENV)/check: $(VENV)/test
	$(call install,check)
	touch $@

clean:
	rm -rf $(VENV) build demo-out .judge-gym
