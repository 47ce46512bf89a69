# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all tests share: the collection is importable from a plain checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Not in pyproject.toml, which ansible-test units does not read.
sys.path.insert(0, str(Path(__file__).parent))

# pylint: disable=wrong-import-position
import collection_path

try:
    from hypothesis import Phase, settings
except ImportError:  # ansible-test units brings pytest alone
    pass
else:
    from support.numbers import EXAMPLES

    # A busy machine makes a slow example, not a wrong one. `search` has other examples each time: see make search.
    default = settings.get_profile("default")
    settings.register_profile("search", parent=default, deadline=None)
    settings.register_profile("same", parent=default, deadline=None, derandomize=True, max_examples=EXAMPLES)
    # For the tests of tests: what fails may fail by any example.
    phases = [phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)]
    settings.register_profile("quick", parent=settings.get_profile("same"), phases=phases)
    settings.load_profile("same")

collection_path.register()

# A failing assertion of a helper is shown as one of a test is.
pytest.register_assert_rewrite("ansible_collections.kubenode.cpu_manager.tests")

# Only now, as the collection is importable. Fixtures and hooks are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import call_options  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.faults.counting import (  # noqa: E402
    count,  # noqa: F401
    pytest_terminal_summary,  # noqa: F401
)
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import Skipped, need  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.support.in_memory import put_temporary_files_there  # noqa: E402

put_temporary_files_there()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*programs): programs without which a test cannot run")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        need(*mark.args)
    # Of a test of the version that is built here, the name says so.
    if kubernetes.OF_BUILT in item.name and kubernetes.version() != kubernetes.BUILT:
        pytest.skip("about Kubernetes %s, not %s" % (kubernetes.BUILT, kubernetes.version()))


def pytest_runtest_teardown() -> None:
    """Have messages of the next test call options as modules do, whatever an action plugin has called them here."""
    call_options({})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Say in the results what a test that was skipped lacked: see summary.py."""
    if call.excinfo is not None and isinstance(call.excinfo.value, Skipped):
        item.user_properties.append(("lacking", call.excinfo.value.kind))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down what a process of pytest-xdist has covered, which is killed where it takes long to end."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage else None
    if current is not None and hasattr(session.config, "workerinput"):
        current.stop()
        current.save()
