# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Kubernetes control plane on this machine's loopback interface, from a plain checkout:

python tests/cluster build [kubelet ...]     # prints the directory with the programs
python tests/cluster up DIR                  # prints the path of the administrator's kubeconfig
python tests/cluster node DIR NAME           # prints the path of a kubeconfig for the kubelet of a QEMU guest
python tests/cluster down DIR
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import collection_path

collection_path.register()

# Only now, as the collection is importable.
from ansible_collections.kubenode.cpu_manager.tests.cluster.binaries import ALL, CONTROL_PLANE, binaries  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.cluster.control_plane import QEMU_HOST, ControlPlane  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.cluster.daemons import DaemonError  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.cluster.debian import UnavailableError  # noqa: E402


def build(options: argparse.Namespace) -> object:
    return binaries(options.names or ALL)


def up(options: argparse.Namespace) -> object:
    control_plane = ControlPlane(options.directory, binaries(CONTROL_PLANE), outlive=True)
    control_plane.start()
    return control_plane.admin


def node(options: argparse.Namespace) -> object:
    return ControlPlane(options.directory, binaries(CONTROL_PLANE)).node_kubeconfig(options.name, QEMU_HOST)


def down(options: argparse.Namespace) -> object:
    ControlPlane(options.directory, Path()).stop()
    return "%s is gone" % options.directory


def main() -> None:
    """Do one of these. Ends with the status 1 and the reason where it cannot be done here."""
    parser = argparse.ArgumentParser(
        prog="python tests/cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for work in (build, up, node, down):
        command = commands.add_parser(work.__name__)
        command.set_defaults(work=work)
        if work is build:
            command.add_argument("names", metavar="NAME", nargs="*", help="of %s" % ", ".join(ALL))
        else:
            command.add_argument("directory", metavar="DIR", type=lambda path: Path(path).resolve())
        if work is node:
            command.add_argument("name", metavar="NAME")
    options = parser.parse_args()
    try:
        print(options.work(options))
    except (DaemonError, UnavailableError, OSError) as error:
        parser.exit(1, "%s\n" % error)


if __name__ == "__main__":
    main()
