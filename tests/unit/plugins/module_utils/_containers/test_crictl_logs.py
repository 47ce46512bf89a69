# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_containers/crictl.py."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import (
    LoggedContainer,
    logged_containers,
)


def test_names_of_containers(tmp_path: Path) -> None:
    directory = tmp_path / "var/log/containers"
    directory.mkdir(parents=True)
    first, second = "a" * 64, "0123456789abcdef" * 4
    for name in (
        "db-0_shop_postgres-%s.log" % first,
        "kube-proxy-x7f2k_kube-system_kube-proxy-%s.log" % second,
        "kube-proxy-x7f2k_kube-system_kube-proxy-%s.log.gz" % second,
        "db-0_shop_postgres-%s.log" % first[1:],
        "README",
    ):
        # Links to the logs of the pods, which may be gone.
        (directory / name).symlink_to("/var/log/pods/nowhere")
    assert logged_containers(Tree(str(tmp_path))) == {
        first: LoggedContainer("shop/db-0", "postgres"),
        second: LoggedContainer("kube-system/kube-proxy-x7f2k", "kube-proxy"),
    }


def test_a_node_without_logs(tmp_path: Path) -> None:
    assert logged_containers(Tree(str(tmp_path))) == {}
