# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run as `python tests/cluster/kubelet ...`, from a plain checkout."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import collection_path

collection_path.register()

# Only now, as the collection is importable.
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.cluster import kubelet as package  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.cluster.kubelet.faults import read_faults  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.cluster.kubelet.run import Kubelet  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python tests/cluster/kubelet",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--node", metavar="DIR", required=True, type=os.path.abspath, help="the node's files")
    parser.add_argument("--release", default="1.36.0", help="of Kubernetes, such as 1.36.0")
    parser.add_argument("--faults", metavar="FILE", type=Path, help="what goes wrong, see faults.py")
    parser.add_argument("arguments", metavar="FLAG", nargs="*", help="of the kubelet")
    options = parser.parse_args()
    sys.exit(Kubelet(Tree(options.node), options.release, options.arguments, read_faults(options.faults)).run())


if __name__ == "__main__":
    main()
