# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pages that say what is written on a node name every file that the code names, and every module that writes."""

from __future__ import annotations

import posixpath
from pathlib import Path

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import journal_file as places
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark import (
    benchmark_cgroups as cgroups,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark import (
    run as keeper,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import at_boot, housekeeping
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping_journal as journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import distributions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._runtime import runtime_files as runtime_plan
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial import trial_cgroups

CHECKOUT = Path(__file__).parents[2]
PAGES = CHECKOUT / "docs" / "docsite" / "rst"
WHAT_CHANGES = (PAGES / "what_changes_on_a_node.rst").read_text("utf-8")
DISTRIBUTIONS = (PAGES / "distributions.rst").read_text("utf-8")


def test_every_file_of_the_collection_is_named() -> None:
    files = [
        places.OPEN,
        places.LAST,
        places.CACHE,
        journal.PATH,
        at_boot.PROGRAM_PATH,
        *(posixpath.join(places.UNIT_DIRECTORY, unit) for unit in (at_boot.UNIT, at_boot.NETWORK_UNIT)),
        housekeeping._DROP_IN % "UNIT",
        housekeeping._MANAGER_FILE,
        distributions.DROP_IN_NAME,
        distributions.KUBELET_ARG_NAME,
        distributions.PATCH_NAME,
        distributions.CHECKPOINT_NAME,
        distributions.MEMORY_STATE_NAME,
        runtime_plan.NAME + ".conf",
        runtime_plan.NAME + ".toml",
        keeper.LOCK,
        cgroups.TOP,
        trial_cgroups.TOP,
    ]
    assert [path for path in files if path not in WHAT_CHANGES] == []


def test_every_file_of_the_reconcile_role_is_named() -> None:
    role = CHECKOUT / "roles" / "reconcile"
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text("utf-8"))
    units = yaml.safe_load((role / "vars" / "main.yml").read_text("utf-8"))["reconcile_units"]
    files = [defaults["reconcile_program_path"], defaults["reconcile_settings_path"]]
    files += [posixpath.join(defaults["reconcile_unit_directory"], unit) for unit in units]
    assert [path for path in files if path not in WHAT_CHANGES] == []


def test_every_module_that_changes_a_node_is_named() -> None:
    modules = sorted((CHECKOUT / "plugins" / "modules").glob("*.py"))
    changing = [path.stem for path in modules if "cpu_manager.attributes.change" in path.read_text("utf-8")]
    assert len(changing) >= 8
    assert [name for name in changing if "kubenode.cpu_manager.%s#module" % name not in WHAT_CHANGES] == []


def test_every_distribution_is_named_with_its_file() -> None:
    for distribution in distributions.DISTRIBUTIONS:
        assert distribution.name.split(" ")[0] in DISTRIBUTIONS
        if distribution.place == distributions.FILE:
            assert distribution.config_path is not None
            assert distribution.config_path in DISTRIBUTIONS
        if distribution.place == distributions.DROP_IN:
            assert "%s/%s" % (distribution.config_dir, distributions.DROP_IN_NAME) in DISTRIBUTIONS
            assert distribution.flag_files[0].path + ".d/" + distributions.KUBELET_ARG_NAME in DISTRIBUTIONS
        if distribution.place == distributions.FLAGS:
            assert distribution.flag_files[0].path in DISTRIBUTIONS
        if distribution.log_file is not None:
            assert distribution.log_file in DISTRIBUTIONS
        for service in distribution.services:
            assert "``%s``" % service in DISTRIBUTIONS or distribution.place == distributions.NOWHERE
