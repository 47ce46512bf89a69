# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

PYTHON ?= python3
# Processes that pytest uses.
JOBS ?= 2
# Of vm-test: one of extensions/molecule, or all; and which of its machines, quick, all or their names.
SCENARIO ?=
MACHINES ?= all
# Of test-all: the machines of the scenarios.
SHARED_MACHINES := xeon,uneven,v2,dynamic,worker,canary,plain
# Of bad-days: how many nodes that are damaged meet a command that is killed, and the number that chance begins with.
PAIRS ?= 200
SEED ?= 17
# Of hostile: how many nodes with damaged files.
HOSTILE ?= 100000
# Of lives: how many random lives of a node.
LIVES ?= 10000
# Of kills: how often the program of the policy dynamic is killed.
KILLS ?= 1000
# Of cache: how many random platforms.
CACHE ?= 1000
# Of cache: how often a run is killed between two writes, at the least.
CACHE_KILLS ?= 500
# Of answers: how many random settings.
ANSWERS ?= 10000
# Of bench-fleet: how many local hosts.
HOSTS ?= 1000
# For `make matrix`: quick, or full with tests/playbooks and ansible-test sanity.
MATRIX ?= quick
# Of test-all: which share, such as 3 or 3/6; all without it.
SHARE ?=
# 1: a test that lacks a tool or Kubernetes fails; tool: one that lacks a tool. Else it is skipped.
STRICT ?=
# A directory with the programs of another Kubernetes than the one that is built here.
KUBERNETES ?=
# Where it is 1, what is run with a version of Kubernetes is written down when it passes.
RECORD ?=
# For `make mutants`: of what, all without it; how many changes of each area, all with 0; and which.
AREA ?=
SAMPLE ?= 40
SEED ?= 1

VENV := .venv
MAIN := $(VENV)/.main
TESTING := $(VENV)/.testing
# Ansible finds collections by the place they are in; the checkout may be anywhere.
COLLECTIONS := $(shell $(PYTHON) tests/collection_path.py)
LINK := $(COLLECTIONS)/ansible_collections/kubenode/cpu_manager
KUBERNETES_CORE := $(COLLECTIONS)/ansible_collections/kubernetes/core
RESULTS := build/results
# What docs/write_*.py make of the code; see .gitignore.
PAGES := docs/docsite/rst/checks.rst docs/docsite/rst/errors.rst
SITE ?= build/docs
BEGAN := $(shell date +%s)
SHARES := 1 2 3 4 5 6
CHOSEN = $(if $(SHARE),$(firstword $(subst /, ,$(SHARE))),$(SHARES))

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
export ANSIBLE_COLLECTIONS_PATH := $(COLLECTIONS)
export STRICT
export KUBERNETES
export RECORD
export JOBS
# Kept for the next clone.
export MYPY_CACHE_DIR := $(HOME)/.cache/kubenode-cpu-manager/mypy

# Some tools colour a log, too.
ifndef MAKE_TERMOUT
export NO_COLOR := 1
endif

heading = @printf '\n=== %s ===\n' '$(1)'
# A part of the tests: see tests/running/shares.py.
pytest = @pytest --junit-xml=$(RESULTS)/$(1).xml $$(python tests/running/shares.py $(1))

# The order of prerequisites is the order of the steps: the cheap ones first.
.NOTPARALLEL:

.PHONY: help
help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: demo
demo: $(MAIN) $(LINK) ## Show what the collection does, on saved machines
	@demo/run

# The order is that of the steps: the cheap ones first.
.PHONY: test
test: tools no-results static core stories ## Set everything up and run the tests that each change has to pass
	@python tests/running/summary.py $(RESULTS) $(BEGAN) lint sanity --rest 'make test-all, or a share of it, such as make test-all SHARE=3/6'

.PHONY: test-all
test-all: tools no-results $(addprefix share-,$(CHOSEN)) ## Run all tests with full numbers; SHARE=3/6 runs one of six shares, of at most 45 minutes each
	@python tests/running/summary.py $(RESULTS) $(BEGAN) \
		--rest '$(or $(patsubst %,make test-all SHARE=%/6;,$(filter-out $(CHOSEN),$(SHARES))),nothing)'

.PHONY: tools
tools: $(TESTING) ## Install the programs that tests use, as root on Debian; else say which are missing
	@python tests/running/lacking.py

# The summary adds up what is there.
.PHONY: no-results
no-results:
	@rm -rf $(RESULTS)

.PHONY: lint
lint: $(TESTING) $(LINK) $(KUBERNETES_CORE) $(PAGES) ## Run the linters: ruff, mypy, ansible-lint, documentation, licences and changelog
	$(call heading,ruff)
	@ruff check
	@ruff format --check
	$(call heading,reuse)
	@reuse lint --lines && echo 'Each file has a licence.'
	$(call heading,antsibull-changelog)
	@antsibull-changelog lint && echo 'The changelog is valid.'
	$(call heading,mypy)
	@mypy
	$(call heading,ansible-lint)
	@ansible-lint
	$(call heading,antsibull-docs)
	@cd $(LINK) && antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs all --check-extra-docs-refs . \
		&& echo 'The documentation is valid.'

# Side by side, as both use one processor most of the time.
.PHONY: static
static: $(TESTING) $(LINK) $(KUBERNETES_CORE) no-results
	@mkdir -p $(RESULTS)
	@$(MAKE) --no-print-directory sanity-ends > $(RESULTS)/sanity.log 2>&1 & sanity=$$!; \
		$(MAKE) --no-print-directory lint; linted=$$?; \
		wait $$sanity; sane=$$?; cat $(RESULTS)/sanity.log; test $$linted$$sane = 00

.PHONY: core
core: $(TESTING) $(LINK) ## Run the unit, property, conformance and kernel tests with few examples
	$(call heading,pytest: core)
	$(call pytest,core)

.PHONY: stories
stories: $(TESTING) $(LINK) $(KUBERNETES_CORE) kubernetes ## Run a story of each role and playbook, a rollout over a real control plane, the archive
	$(call heading,pytest: stories)
	$(call pytest,stories)

.PHONY: kubernetes
kubernetes: $(TESTING)
	$(call heading,Kubernetes)
	@# Where it cannot be had, the tests that need it say so.
	-@python tests/cluster build

# The other Pythons, and the least coverage.
share-1: sanity coverage

share-%: $(TESTING) $(LINK) $(KUBERNETES_CORE) kubernetes
	$(call heading,pytest: share $*)
	@# Kubelets look at the disk that their files are on.
	@FULL=1 MACHINES=$(SHARED_MACHINES) $(if $(filter 3 4,$*),TMPDIR=/tmp) $(if $(filter 5 6,$*),PYTEST_ADDOPTS='--timeout 0 -rs') \
		pytest --junit-xml=$(RESULTS)/share-$*.xml $$(python tests/running/shares.py $*)

.PHONY: search
search: $(TESTING) ## Let hypothesis look for examples that no run has seen
	$(call heading,pytest: new examples)
	@pytest -n $(JOBS) --hypothesis-profile=search

.PHONY: sanity-ends
sanity-ends: $(TESTING)
	$(call heading,ansible-test sanity: the oldest and the newest Python)
	@python tests/running/ansible_test sanity --ends --local --color no

.PHONY: sanity
sanity: $(TESTING) ## Run ansible-test sanity, on each Python that is installed
	$(call heading,ansible-test sanity)
	@python tests/running/ansible_test sanity --local --color no

.PHONY: bad-days
bad-days: $(TESTING) $(LINK) ## Kill commands at random tasks on damaged nodes; PAIRS=200 SEED=7 says how many and which
	@PAIRS=$(PAIRS) SEED=$(SEED) pytest -n $(JOBS) --timeout 0 -rP tests/cluster/test_bad_days.py

.PHONY: hostile
hostile: $(TESTING) ## Read what strangers wrote: damaged files and flags, answers, archives, manifests, objects of an API server and names; HOSTILE=100000 SEED=1 says how many and which
	@HOSTILE=$(HOSTILE) SEED=$(SEED) pytest --timeout 0 -rP tests/conformance/test_hostile_starts.py \
		tests/conformance/test_hostile_checkpoints.py tests/unit/test_patterns.py \
		$(addprefix tests/unit/plugins/,plugin_utils/test_hostile_objects.py plugin_utils/report/test_hostile_answers.py $(addprefix module_utils/,test_cpuset.py \
		_base/test_archive.py _base/test_tree.py _saved/test_collector.py _cgroup/test_hierarchy.py _isolation/test_sample_usage.py))

.PHONY: lives
lives: $(TESTING) ## Hold the laws of the policy dynamic against random lives of nodes; LIVES=10000 says how many
	@LIVES=$(LIVES) pytest --hypothesis-profile=search --timeout 0 -rP tests/unit/plugins/module_utils/policy/test_dynamic.py \
		-k lives_keep

.PHONY: kills
kills: $(TESTING) ## Kill the program of the policy dynamic between its system calls; KILLS=1000 SEED=17 says how often and which
	@KILLS=$(KILLS) SEED=$(SEED) pytest -n $(JOBS) --timeout 0 -rP tests/faults/test_dynamic.py

.PHONY: cache
cache: $(TESTING) ## Divide the caches of random platforms, and kill such runs; CACHE=1000 CACHE_KILLS=500 say how many
	@CACHE=$(CACHE) KILLS=$(CACHE_KILLS) SEED=$(SEED) pytest --timeout 0 -rP tests/kernel/test_cache*.py tests/faults/test_cache.py

.PHONY: answers
answers: $(TESTING) ## Compare what all modules predict of random settings; ANSWERS=10000 says how many
	@ANSWERS=$(ANSWERS) pytest --hypothesis-profile=search --timeout 0 -rP tests/unit/plugins/module_utils/_node/test_one_answer.py

.PHONY: vm-test
vm-test: $(TESTING) $(LINK) $(KUBERNETES_CORE) ## Run the scenarios on virtual machines; SCENARIO=kubelet runs one
	$(call heading,molecule: machines $(MACHINES))
	@MACHINES=$(MACHINES) pytest --timeout 0 --capture=no $(SCENARIO:%=-k %) tests/scenarios

.PHONY: coverage
coverage: $(TESTING) ## Say which lines and branches the unit tests do not reach, and whether too many
	$(call heading,coverage)
	@coverage erase
	@coverage run -m pytest -q -n $(JOBS) tests/unit
	@coverage combine --quiet && coverage report

.PHONY: mutants
mutants: $(TESTING) ## Count which small changes of the code the unit tests notice; AREA=policy SAMPLE=0 tries all of one area
	$(call heading,mutants)
	@nice python tests/mutants $(AREA) --sample $(SAMPLE) --seed $(SEED)

.PHONY: bench
bench: $(MAIN) $(LINK) ## Measure the speed as users meet it
	@python tests/bench/run

.PHONY: bench-all
bench-all: $(MAIN) $(LINK) ## Measure the speed of everything but a fleet
	@python tests/bench/run all

.PHONY: bench-fleet
bench-fleet: $(MAIN) $(LINK) ## Measure the report of a large fleet; HOSTS=1000 says how many local hosts
	@HOSTS=$(HOSTS) python tests/bench/run fleet

.PHONY: bench-vm
bench-vm: $(TESTING) ## Compare the model of CPU limits with cgroup v2, in a virtual machine
	@python tests/bench/run throttling --vm

.PHONY: matrix
matrix: $(TESTING) $(LINK) $(KUBERNETES_CORE) ## Try each supported ansible-core and Python, and write the table of them; MATRIX=full with all playbooks
	@nice python tests/matrix $(MATRIX)

.PHONY: docs
docs: $(TESTING) $(LINK) $(PAGES) ## Make the documentation site, build/docs/build/html
	$(call heading,documentation)
	@rm -rf $(SITE) && mkdir -p $(SITE) && mkdir -m 755 $(SITE)/rst
	@antsibull-docs --config-file docs/site/antsibull-docs.cfg collection --use-current --squash-hierarchy --no-indexes \
		--fail-on-error --dest-dir $(SITE)/rst kubenode.cpu_manager
	@sphinx-build --quiet --jobs $(JOBS) --fail-on-warning --conf-dir docs/site $(SITE)/rst $(SITE)/build/html
	@echo '$(SITE)/build/html/index.html'

$(PAGES): docs/docsite/rst/%.rst: docs/write_%.py $(shell find docs plugins tests/conformance tests/machines -name '*.py') | $(MAIN)
	@python $<

.PHONY: build
build: $(MAIN) ## Make the collection's archive, build/kubenode-cpu_manager-*.tar.gz
	@python tests/release build

.PHONY: release
release: $(TESTING) ## Prepare a release, and commit nothing: changelog, version, archive, checksums and SBOM; VERSION=1.0.0 says which
	@python tests/release release '$(VERSION)'

.PHONY: keep
keep: $(TESTING) $(LINK) ## Before a release: keep the names that it promises, and files that it writes, for the tests of later ones
	@KEEP=1 pytest -n $(JOBS) -k this_version_is_kept tests/docs/test_lists.py tests/playbooks/test_kept.py

.PHONY: import-check
import-check: $(TESTING) ## Have the importer of the servers of collections check the archive
	$(call heading,galaxy-importer)
	@python tests/release import-check

.PHONY: clean
clean: ## Remove everything that make made
	rm -rf $(VENV) $(COLLECTIONS) $(PAGES) build demo/output tests/output .ansible .cache .coverage* .hypothesis
	find . \( -name __pycache__ -o -name '.*_cache' \) -type d -prune -exec rm -rf {} +

$(MAIN): requirements.txt
	@printf 'Making %s ...\n' $(VENV)
	@# What a set-up that was killed has left may lack files that pip does not miss.
	@$(PYTHON) -m venv --clear $(VENV)
	@# Python compiles a file when it imports it, and most files are never imported.
	@$(VENV)/bin/pip install -qq --no-compile -r requirements.txt
	@touch $@

$(TESTING): requirements-test.txt $(MAIN)
	@printf 'Adding the test tools to %s ...\n' $(VENV)
	@# If this is killed, the next run begins with an empty environment.
	@rm $(MAIN)
	@$(VENV)/bin/pip install -qq --no-compile -r requirements.txt -r requirements-test.txt
	@touch $(MAIN) $@

$(KUBERNETES_CORE): tests/running/fetch_collection | $(TESTING)
	@python tests/running/fetch_collection kubernetes.core $(COLLECTIONS)

.PHONY: link
link: $(LINK)

# What does not ask where it is finds it in build/collections.
$(LINK):
	@mkdir -p $(@D) build
	@ln -sfn $(CURDIR) $@
	@test -d build/collections || ln -sfn $(COLLECTIONS) build/collections
