# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test with GRUB's own programs takes them from the system, or from where GRUB_ROOT says that the files of Debian's
package grub-common are unpacked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import (
    Argument,
    block_text,
    parse_line,
    split_words,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import grub
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.grub import (
    changes,
    commands,
    configured_line,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loader_entries import (
    GRUB,
    ConfiguredLine,
    Loader,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import loaders
from ansible_collections.kubenode.cpu_manager.tests.machines.loaders import DEBIAN, make, read, write
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

OWN = "/etc/default/grub.d/99-kubenode-housekeeping.cfg"
DEFAULTS = "/etc/default/grub"
RUN = [["/usr/sbin/grub-mkconfig", "-o", "/boot/grub/grub.cfg"]]
WANTED = (Argument("irqaffinity", "0-1", "why"), Argument("isolcpus", "managed_irq,2-7", "why"))
OTHERS = (Argument("rcu_nocbs", "3", "why"),)
BLOCK = block_text(WANTED)


found = partial(loaders.found_by, grub.find_grub)


# --- finding it -------------------------------------------------------------------------------------


def test_debian(tmp_path: Path) -> None:
    loader = found(loaders.grub(tmp_path, directory={}))
    assert loader == Loader(GRUB, "/boot/grub/grub.cfg", OWN, ("/boot/grub/grub.cfg",), "/usr/sbin/grub-mkconfig")


def test_a_program_that_does_not_read_the_directory(tmp_path: Path) -> None:
    tree = loaders.grub(tmp_path, place="/boot/efi/EFI/suse/grub.cfg", program="/usr/sbin/grub2-mkconfig")
    write(tmp_path, "/boot/grub2/grub.cfg", "configfile $prefix/grub.cfg\n")
    loader = found(tree)
    assert (loader.file, loader.results, loader.program) == (
        DEFAULTS,
        ("/boot/efi/EFI/suse/grub.cfg",),
        "/usr/sbin/grub2-mkconfig",
    )


@pytest.mark.parametrize("lacks", ["/usr/sbin/grub-mkconfig", "/boot/grub/grub.cfg"])
def test_half_of_it(tmp_path: Path, lacks: str) -> None:
    tree = loaders.grub(tmp_path)
    (tmp_path / lacks[1:]).unlink()
    assert grub.find_grub(tree) is None


def test_entries_elsewhere(tmp_path: Path) -> None:
    tree = loaders.grub(tmp_path)
    write(tmp_path, "/boot/grub/grub.cfg", "### BEGIN /etc/grub.d/10_linux ###\nblscfg\n")
    assert grub.find_grub(tree) is None


@pytest.mark.parametrize(
    ("line", "default", "environment", "text", "problem"),
    [
        ("quiet rcu_nocbs=1", "0", "", "root=/dev/vda ro quiet rcu_nocbs=1", ""),
        ("a", "${saved_entry}", "saved_entry=\n", "root=/dev/vda ro a", ""),
        ("a", "${saved_entry}", "saved_entry=1>2\n", "root=/dev/vda ro a", "'1>2'"),
        ("a", "Debian>x", "", "root=/dev/vda ro a", "'Debian>x'"),
    ],
)
def test_configured_line(tmp_path: Path, line: str, default: str, environment: str, text: str, problem: str) -> None:
    tree = loaders.grub(tmp_path)
    write(tmp_path, "/boot/grub/grub.cfg", loaders.grub_cfg(line, default))
    write(tmp_path, "/boot/grub/grubenv", environment)
    expected = "the default entry is %s, and the first was read" % problem if problem else ""
    assert configured_line(tree, found(tree)) == ConfiguredLine(text, "/boot/grub/grub.cfg", expected)


def test_the_line_is_gone(tmp_path: Path) -> None:
    tree = loaders.grub(tmp_path)
    loader = found(tree)
    write(tmp_path, "/boot/grub/grub.cfg", "")
    assert configured_line(tree, loader).text is None


# --- writing ----------------------------------------------------------------------------------------


def shell_line(root: Path) -> str:
    """Return what the system's shell makes of the files, as grub-mkconfig reads them."""
    script = (
        'set -e; for x in "$1" "$1".d/*.cfg; do if [ -e "$x" ]; then . "$x"; fi; done; '
        'printf "%s %s" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"'
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(root / DEFAULTS[1:])], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_a_file_of_our_own(tmp_path: Path) -> None:
    tree = loaders.grub(tmp_path, directory={"50-cloud.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="console=ttyS0"\n'})
    loader = found(tree)
    (change,) = changes(tree, loader, WANTED)
    assert change.path == str(tmp_path / OWN[1:])
    assert (change.before, change.mode) == (None, 0o644)
    assert change.after is not None
    assert change.after.decode() == (
        "# The role housekeeping of kubenode.cpu_manager writes this, and removes it again.\n"
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX kubenode.housekeeping=irqaffinity,isolcpus irqaffinity=0-1 '
        'isolcpus=managed_irq,2-7"\n'
    )
    assert commands(tree, loader, WANTED) == RUN
    make([change])
    assert parse_line(shell_line(tmp_path)) == parse_line(BLOCK + " console=ttyS0")
    assert changes(tree, loader, WANTED) == []
    assert commands(tree, loader, WANTED) == RUN  # a run that was killed before it
    write(tmp_path, "/boot/grub/grub.cfg", loaders.grub_cfg(BLOCK + " quiet"))
    assert commands(tree, loader, WANTED) == []
    assert commands(tree, loader, OTHERS) == RUN
    assert commands(tree, loader, None) == RUN
    make(changes(tree, loader, None))
    assert read(tmp_path, OWN) is None
    assert commands(tree, loader, None) == RUN
    write(tmp_path, "/boot/grub/grub.cfg", loaders.grub_cfg("quiet"))
    assert commands(tree, loader, None) == []


def test_a_block(tmp_path: Path) -> None:
    tree = loaders.grub(tmp_path)
    loader = found(tree)
    make(changes(tree, loader, WANTED))
    assert (read(tmp_path, DEFAULTS) or b"").decode() == (
        DEBIAN + "# BEGIN kubenode.cpu_manager housekeeping\n"
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"\n'
        "# END kubenode.cpu_manager housekeeping\n" % BLOCK
    )
    write(tmp_path, DEFAULTS, (read(tmp_path, DEFAULTS) or b"").decode() + "GRUB_TIMEOUT=1\n")
    assert changes(tree, loader, WANTED) == []
    make(changes(tree, loader, None))
    assert read(tmp_path, DEFAULTS) == (DEBIAN + "GRUB_TIMEOUT=1\n").encode()


def test_a_later_line_takes_it_away(tmp_path: Path) -> None:
    """A block is moved behind what somebody has added; a file cannot be."""
    tree = loaders.grub(tmp_path)
    loader = found(tree)
    make(changes(tree, loader, WANTED))
    later = 'GRUB_CMDLINE_LINUX="mine"\n'
    write(tmp_path, DEFAULTS, (read(tmp_path, DEFAULTS) or b"").decode() + later)
    make(changes(tree, loader, WANTED))
    assert parse_line(shell_line(tmp_path)) == parse_line("mine %s quiet" % BLOCK)
    make(changes(tree, loader, None))
    assert read(tmp_path, DEFAULTS) == (DEBIAN + later).encode()

    tree = loaders.grub(tmp_path / "other", directory={"99-z.cfg": later})
    with pytest.raises(RefusedError, match="sets GRUB_CMDLINE_LINUX anew") as caught:
        changes(tree, found(tree), WANTED)
    assert caught.value.where == "%s, line 1" % tree.path("/etc/default/grub.d/99-z.cfg")


CONTENTS = st.lists(
    st.sampled_from(
        [
            "GRUB_TIMEOUT=1",
            "\n",
            "# x",
            'GRUB_CMDLINE_LINUX="a b"',
            "A=\xe9",
            "\n\n",
            "B='1\n2'",
            " ",
            "\\\n",
            "# BEGIN x",
        ]
    ),
    max_size=8,
).map("".join)


@given(st.none() | CONTENTS, st.booleans())
def test_undone_to_the_byte(content: str | None, has_directory: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        tree = loaders.grub(root, content, {} if has_directory else None)
        loader = found(tree)
        before = {path: read(root, path) for path in (DEFAULTS, OWN)}
        try:
            foreign = parse_line(shell_line(root))
            first = changes(tree, loader, WANTED)
        except (RefusedError, subprocess.CalledProcessError):
            return
        make(first)
        assert split_words(parse_line(shell_line(root))) == (foreign, parse_line(BLOCK))
        assert changes(tree, loader, WANTED) == []
        make(changes(tree, loader, OTHERS))
        assert split_words(parse_line(shell_line(root))) == (foreign, parse_line(block_text(OTHERS)))
        make(changes(tree, loader, None))
        assert {path: read(root, path) for path in (DEFAULTS, OWN)} == before
        assert changes(tree, loader, None) == []


def test_what_somebody_else_has_set(tmp_path: Path) -> None:
    """The same is not written again; another value is refused, and so is what is not known."""
    tree = loaders.grub(tmp_path, 'GRUB_CMDLINE_LINUX="irqaffinity=0,1"\n', {})
    loader = found(tree)
    (change,) = changes(tree, loader, WANTED)
    assert b"kubenode.housekeeping=isolcpus isolcpus=managed_irq,2-7" in (change.after or b"")
    write(tmp_path, DEFAULTS, 'GRUB_CMDLINE_LINUX="irqaffinity=0,1 isolcpus=managed_irq,2-7"\n')
    assert changes(tree, loader, WANTED) == []
    assert commands(tree, loader, WANTED) == []


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        ('GRUB_CMDLINE_LINUX="irqaffinity=3"\n', "which somebody else sets, and", ""),
        ("A=1\nGRUB_CMDLINE_LINUX=$(cat x)\n", "known only to a shell", ", line 2"),
        ("if true; then\n", "is not understood", ", line 1"),
        ('GRUB_CMDLINE_LINUX_DEFAULT="a -- b"\n', "all is for init", ""),
        ("# BEGIN kubenode.cpu_manager housekeeping\nA=1\n", "without '# END", None),
    ],
)
def test_refused(tmp_path: Path, content: str, what: str, where: str | None) -> None:
    tree = loaders.grub(tmp_path, content)
    loader = found(tree)
    for act in (changes, commands):
        with pytest.raises(RefusedError, match=what) as caught:
            act(tree, loader, WANTED)
        assert caught.value.where == (DEFAULTS if where is None else tree.path(DEFAULTS) + where)
    assert read(tmp_path, DEFAULTS) == content.encode()


# --- GRUB's own answer ------------------------------------------------------------------------------


@pytest.fixture
def mkconfig(tmp_path: Path) -> Callable[[], list[str]]:
    """Return a function that runs GRUB's programs on a tree with a kernel, and returns the arguments in the lines
    that start it."""
    top = Path(os.environ.get("GRUB_ROOT", "/"))
    program = top / "usr/sbin/grub-mkconfig"
    if not program.exists():
        lacking(TOOL, "no grub-mkconfig (Debian package grub-common), nor GRUB_ROOT with its files")
    root = tmp_path / "root"
    tools = tmp_path / "tools"
    for name in ("probe", "mkrelpath"):
        write(tools, name, '#!/bin/sh\ncase "$*" in *target=device*) echo /dev/vda;; *) echo "$1";; esac\n')
        (tools / name).chmod(0o755)
    places = {
        '"${sbindir}/grub-probe"': str(tools / "probe"),
        'sysconfdir="/etc"': 'sysconfdir="%s"' % (root / "etc"),
        'grub_mkconfig_dir="${sysconfdir}"/grub.d': 'grub_mkconfig_dir="%s"' % (tmp_path / "grub.d"),
        "/boot/vmlinuz-*": "%s/boot/vmlinuz-*" % root,
    }

    def copied(source: Path, target: str) -> Path:
        text = source.read_text("utf-8")
        for old, new in places.items():
            text = text.replace(old, new)
        write(tmp_path, target, text)
        (tmp_path / target).chmod(0o755)
        return tmp_path / target

    script = copied(program, "mkconfig")
    copied(top / "etc/grub.d/10_linux", "grub.d/10_linux")
    write(root, "/boot/vmlinuz-6.1.0", "kernel")
    write(root, "/usr/sbin/grub-mkconfig", program.read_text("utf-8"))

    def run() -> list[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "pkgdatadir": str(top / "usr/share/grub"),
            "grub_mkrelpath": str(tools / "mkrelpath"),
        }
        done = subprocess.run([str(script)], env=environment, capture_output=True, check=True, text=True)
        write(root, "/boot/grub/grub.cfg", done.stdout.replace(str(tmp_path / "grub.d"), "/etc/grub.d"))
        return re.findall(r"^\s*linux\s+\S+ (.*)$", done.stdout, re.MULTILINE)

    return run


@pytest.mark.skipif(os.geteuid() != 0, reason="grub-mkconfig runs as root alone")
@pytest.mark.skipif(shutil.which("awk") is None, reason="grub-mkconfig uses awk")
def test_grub_itself(tmp_path: Path, mkconfig: Callable[[], list[str]]) -> None:
    root = tmp_path / "root"
    write(root, DEFAULTS, DEBIAN)
    write(root, "/etc/default/grub.d/50-cloud.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX nomodeset"\n')
    tree = Tree(str(root))
    plain = mkconfig()
    assert len(plain) == 3  # the simple entry, and that of the submenu with its one for recovery
    before = read(root, "/boot/grub/grub.cfg")
    loader = found(tree)
    assert loader.file == OWN
    make(changes(tree, loader, WANTED))
    lines = mkconfig()
    assert len(lines) == len(plain)
    for line, was in zip(lines, plain):
        assert split_words(parse_line(line)) == (parse_line(was), parse_line(BLOCK))
    assert commands(tree, loader, WANTED) == []
    assert configured_line(tree, loader) == ConfiguredLine(lines[0].strip(), "/boot/grub/grub.cfg")
    make(changes(tree, loader, None))
    assert mkconfig() == plain
    assert read(root, "/boot/grub/grub.cfg") == before
