# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line of the machines."""

from __future__ import annotations

import argparse
import os
import sys
import time

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError

from . import __doc__ as about
from . import guest, host, image
from .machine import GuestError, ssh_arguments
from .monitor import MonitorError
from .shape import Shape, find_shape, read_shapes


def main(arguments: list[str] | None = None) -> None:
    """Run one command. Ends the process with a message if it cannot be done."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (InputError, OSError, MonitorError, GuestError, host.NoMachinesError, image.ImageError) as error:
        sys.exit("python tests/vm: %s" % error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/vm", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=text, description=text)
        subparser.set_defaults(run=run)
        return subparser

    command("shapes", _shapes, "say which shapes there are")
    subparser = command("image", _image, "make an image, which the first start would do by itself")
    subparser.add_argument("image", nargs="?", default="base", help="of images.yml (base)")
    subparser = command("up", _up, "start a machine and wait for ssh")
    subparser.add_argument("name", help="its host name")
    subparser.add_argument("shape", help="of shapes.yml")
    subparser.add_argument("--image", default="base", help="of images.yml (base)")
    subparser.add_argument("--boot", action="store_true", help="boot it; otherwise it is restored from a snapshot")
    subparser = command("ssh", _ssh, "log in, or run a command there")
    subparser.add_argument("name")
    subparser.add_argument("command", nargs=argparse.REMAINDER)
    subparser = command("reboot", _reboot, "boot a machine again with the kernel's arguments that its GRUB has")
    subparser.add_argument("name")
    subparser.add_argument("--configuration", default="/boot/grub/grub.cfg", help="of GRUB, there (%(default)s)")
    subparser = command("plug", _plug, "plug the CPUs that its shape leaves for later")
    subparser.add_argument("name")
    command("list", _list, "say which machines of this checkout run")
    subparser = command("down", _down, "end machines and remove their files")
    subparser.add_argument("names", nargs="*", metavar="name", help="none: all of this checkout")
    return parser


def _shapes(_options: argparse.Namespace) -> None:
    for shape in read_shapes().values():
        print("%-22s %s" % (shape.name, _summary(shape)))


def _summary(shape: Shape) -> str:
    counts = [(shape.sockets, "socket"), (shape.dies, "die"), (shape.cores, "core"), (shape.threads, "thread")]
    parts = ["%d %s%s" % (count, word, "s" * (count > 1)) for count, word in counts]
    nodes = ["%s: %d MiB" % (node.cores or "no core", node.memory) for node in shape.numa_nodes]
    return "%d CPUs: %s; NUMA nodes: %s" % (shape.cpus, " x ".join(parts), ", ".join(nodes))


def _image(options: argparse.Namespace) -> None:
    host.prepare()
    print(image.make(options.image).directory)


def _up(options: argparse.Namespace) -> None:
    start = time.monotonic()
    how = guest.start(options.name, find_shape(options.shape), options.image, from_snapshot=not options.boot)
    print("%s: %s, %s, up after %.1f s" % (options.name, options.shape, how, time.monotonic() - start))


def _ssh(options: argparse.Namespace) -> None:
    arguments = ssh_arguments(options.name, *options.command)
    os.execvp(arguments[0], arguments)


def _reboot(options: argparse.Namespace) -> None:
    print(" ".join(guest.reboot(options.name, options.configuration)))


def _plug(options: argparse.Namespace) -> None:
    print("%d CPUs plugged" % guest.plug(options.name))


def _list(_options: argparse.Namespace) -> None:
    for machine in guest.running():
        print("%-16s %-22s process %d, ssh at 127.0.0.1:%d" % (machine.name, machine.shape, machine.pid, machine.port))


def _down(options: argparse.Namespace) -> None:
    for name in options.names or guest.left_behind():
        guest.stop(name)
