# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test with systemd's own plugin takes it from the system, or from where SYSTEMD_ROOT says that the files of
Debian's package systemd are unpacked."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import FileChange
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import (
    Argument,
    Word,
    block_text,
    parse_line,
    split_words,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import loader_entries as systemd_boot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loader_entries import (
    SYSTEMD_BOOT,
    ConfiguredLine,
    Loader,
    changes,
    cmdline_commands,
    configured_cmdline,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import loaders
from ansible_collections.kubenode.cpu_manager.tests.machines.loaders import ENTRY, make, read, write
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

WANTED = (Argument("irqaffinity", "0-1", "why"), Argument("isolcpus", "managed_irq,2-7", "why"))
OTHERS = (Argument("rcu_nocbs", "3", "why"),)
BLOCK = block_text(WANTED)
CMDLINE = "/etc/kernel/cmdline"
PLACE = "/efi/loader/entries/" + ENTRY
ADD = ["/usr/bin/kernel-install", "add"]


found = partial(loaders.found_by, systemd_boot.find_systemd_boot)


def test_found(tmp_path: Path) -> None:
    loader = found(loaders.systemd_boot(tmp_path, {"6.1": "ro", "6.12": "ro"}))
    names = tuple(PLACE % version for version in ("6.12", "6.1"))
    assert loader == Loader(SYSTEMD_BOOT, "/efi/loader", CMDLINE, names, "/usr/bin/kernel-install")


@pytest.mark.parametrize("lacks", ["usr/bin/kernel-install", "efi/loader/entries", "efi/loader/loader.conf"])
def test_half_of_it(tmp_path: Path, lacks: str) -> None:
    tree = loaders.systemd_boot(tmp_path, {"6.1": "ro"})
    (tmp_path / lacks).rename(tmp_path / "gone")
    assert systemd_boot.find_systemd_boot(tree) is None


@pytest.mark.parametrize(
    ("loader", "version", "problem"),
    [
        ("timeout 3\n", "6.12", ""),
        ("default *-6.1.conf\n", "6.1", ""),
        ("default x\ndefault @saved\n", "6.12", "the default entry is '@saved', and the newest was read"),
    ],
)
def test_configured_line(tmp_path: Path, loader: str, version: str, problem: str) -> None:
    tree = loaders.systemd_boot(tmp_path, {"6.1": "old a=1", "6.12": "new a=2"}, loader=loader)
    text = {"6.1": "old a=1", "6.12": "new a=2"}[version]
    assert configured_cmdline(tree, found(tree)) == ConfiguredLine(text, PLACE % version, problem)


def test_images(tmp_path: Path) -> None:
    tree = loaders.systemd_boot(tmp_path, {}, "# x\nroot=/dev/vda\n rw\n")
    write(tmp_path, "/efi/EFI/Linux/x.efi", "MZ")
    loader = found(tree)
    configured = configured_cmdline(tree, loader)
    assert configured.text == "root=/dev/vda rw"
    assert configured.problem
    write(tmp_path, "/usr/lib/modules/6.1/vmlinuz", "")
    assert cmdline_commands(tree, loader, WANTED) == [[*ADD, "6.1", "/usr/lib/modules/6.1/vmlinuz"]]
    make(changes(tree, WANTED))
    assert cmdline_commands(tree, loader, WANTED) == []
    (tmp_path / CMDLINE[1:]).unlink()
    assert configured_cmdline(tree, loader).text is None


def test_written_and_taken_back(tmp_path: Path) -> None:
    tree = loaders.systemd_boot(tmp_path, {"6.1": "root=/dev/vda rw", "6.12": "root=/dev/vda rw"})
    loader = found(tree)
    write(tmp_path, "/boot/vmlinuz-6.0", "")
    write(tmp_path, "/usr/lib/modules/6.0/x", "")
    write(tmp_path, "/usr/lib/modules/gone/x", "")
    every = [
        [*ADD, "6.0", "/boot/vmlinuz-6.0"],
        [*ADD, "6.1", "/usr/lib/modules/6.1/vmlinuz"],
        [*ADD, "6.12", "/usr/lib/modules/6.12/vmlinuz"],
    ]
    assert cmdline_commands(tree, loader, WANTED) == every
    (change,) = changes(tree, WANTED)
    assert change == FileChange(
        str(tmp_path / CMDLINE[1:]),
        b"root=/dev/vda rw\n",
        b"root=/dev/vda rw %s\n" % BLOCK.encode(),
        0o644,
    )
    make([change])
    assert changes(tree, WANTED) == []
    assert cmdline_commands(tree, loader, WANTED) == every  # a run that was killed before it
    for version in ("6.1", "6.12"):
        write(tmp_path, PLACE % version, "options root=/dev/vda rw %s\n" % BLOCK)
    assert cmdline_commands(tree, loader, WANTED) == []
    assert cmdline_commands(tree, loader, None) == every
    make(changes(tree, None))
    assert read(tmp_path, CMDLINE) == b"root=/dev/vda rw\n"


def test_a_file_that_was_not_there(tmp_path: Path) -> None:
    """It begins as what kernel-install would have taken, and goes again unless somebody has worked on it."""
    booted = "BOOT_IMAGE=/x initrd=/y root=/dev/vda ro %s\n" % BLOCK
    tree = loaders.systemd_boot(tmp_path, {"6.1": ""}, None, booted)
    loader = found(tree)
    make(changes(tree, WANTED))
    written = (read(tmp_path, CMDLINE) or b"").decode()
    assert written.startswith("root=/dev/vda ro kubenode.housekeeping=irqaffinity,isolcpus,new-")
    write(tmp_path, PLACE % "6.1", "options %s systemd.machine_id=1\n" % written.strip())
    write(tmp_path, "/proc/cmdline", "initrd=/y %s systemd.machine_id=1\n" % written.strip())
    assert changes(tree, WANTED) == []
    assert cmdline_commands(tree, loader, WANTED) == []
    write(tmp_path, CMDLINE, written.replace(" ro ", " rw "))
    (change,) = changes(tree, None)
    assert change.after == b"root=/dev/vda rw\n"
    write(tmp_path, CMDLINE, written)
    make(changes(tree, None))
    assert read(tmp_path, CMDLINE) is None


def test_the_vendor_s_file(tmp_path: Path) -> None:
    tree = loaders.systemd_boot(tmp_path, {"6.1": ""}, None, "")
    write(tmp_path, "/usr/lib/kernel/cmdline", "# of the vendor\nroot=/dev/vdb\n")
    (change,) = changes(tree, WANTED)
    assert (change.after or b"").startswith(b"# of the vendor\nroot=/dev/vdb kubenode.housekeeping=")
    make([change])
    make(changes(tree, None))
    assert read(tmp_path, CMDLINE) is None


CONTENTS = st.lists(
    st.sampled_from(["root=/dev/x", " ", "\n", "\t", "# note", "quiet", "a=1", "\xe9", "rcu_nocbs=3", "  "]),
    max_size=10,
).map("".join)


@given(CONTENTS)
def test_undone_to_the_byte(content: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        tree = loaders.systemd_boot(root, {"6.1": ""}, content)
        foreign = words(content)
        for wanted in (WANTED, OTHERS):
            try:
                make(changes(tree, wanted))
            except RefusedError:
                continue
            found_words = words((read(root, CMDLINE) or b"").decode("latin-1"))
            assert split_words(found_words)[0] == foreign
            assert {argument.text for argument in wanted} <= {"%s=%s" % (word.name, word.value) for word in found_words}
            assert changes(tree, wanted) == []
        make(changes(tree, None))
        assert read(root, CMDLINE) == content.encode("latin-1")
        assert changes(tree, None) == []


def words(text: str) -> list[Word]:
    return parse_line(" ".join(line for line in text.splitlines() if not line.lstrip().startswith("#")))


@pytest.mark.parametrize(
    ("cmdline", "booted", "what", "where"),
    [
        ("root=x irqaffinity=3\n", "", "which somebody else sets, and", CMDLINE),
        ("# nothing\n", "", "has no arguments", None),
        (None, "", "is not there, nor what could be in it", CMDLINE),
        (None, 'root=x a="b c"\n', "has a value with a blank", "/proc/cmdline"),
    ],
)
def test_refused(tmp_path: Path, cmdline: str | None, booted: str, what: str, where: str | None) -> None:
    tree = loaders.systemd_boot(tmp_path, {"6.1": ""}, cmdline, booted)
    with pytest.raises(RefusedError, match=what) as caught:
        changes(tree, WANTED)
    assert caught.value.where == (CMDLINE if where is None else tree.path(where))
    assert changes(tree, None) == []


def test_hostile_content(tmp_path: Path) -> None:
    """A mark claims nothing but what is written here, and a file that is no such file is refused."""
    tree = loaders.systemd_boot(tmp_path, {"6.1": "ro"}, "a kubenode.housekeeping=root,a root=/dev/x a=1\n")
    (change,) = changes(tree, None)
    assert change.after == b"a root=/dev/x a=1\n"
    write(tmp_path, CMDLINE, "a kubenode.housekeeping=rcu_nocbs,isolcpus rcu_nocbs=1\n isolcpus=2 isolcpus=3 b\n")
    (change,) = changes(tree, None)
    assert change.after == b"a isolcpus=3 b\n"
    write(tmp_path, CMDLINE, 'a kubenode.housekeeping=rcu_nocbs rcu_nocbs="1 2"\n')
    (change,) = changes(tree, None)
    assert change.after == b'a rcu_nocbs="1 2"\n'
    write(tmp_path, CMDLINE, "kubenode.housekeeping=x " * 4000)
    with pytest.raises(RefusedError, match="it has 96000 bytes"):
        changes(tree, None)
    write(tmp_path, CMDLINE, "x" * (1 << 20) + "y")
    with pytest.raises(NodeError, match="it has 1048577 bytes"):
        changes(tree, None)


def test_kernel_install_itself(tmp_path: Path) -> None:
    top = Path(os.environ.get("SYSTEMD_ROOT", "/"))
    plugin = top / "usr/lib/kernel/install.d/90-loaderentry.install"
    if not plugin.exists():
        lacking(TOOL, "no kernel-install (Debian package systemd), nor SYSTEMD_ROOT with its files")
    tree = loaders.systemd_boot(tmp_path, {"6.1": ""}, "root=/dev/vda  rw\n\tquiet \n\n")
    write(tmp_path, "/efi/token/6.1/initrd", "")
    loader = found(tree)

    def run() -> str:
        directory = str(tmp_path / "efi/token/6.1")
        environment = {
            "PATH": os.environ["PATH"],
            "BOOT_MNT": str(tmp_path / "efi"),
            "KERNEL_INSTALL_LAYOUT": "bls",
            "KERNEL_INSTALL_MACHINE_ID": "machine",
            "KERNEL_INSTALL_ENTRY_TOKEN": ENTRY.partition("-")[0],
            "KERNEL_INSTALL_BOOT_ROOT": str(tmp_path / "efi"),
            "KERNEL_INSTALL_CONF_ROOT": str(tmp_path / "etc/kernel"),
            "KERNEL_INSTALL_VERBOSE": "0",
            "KERNEL_INSTALL_STAGING_AREA": str(tmp_path / "staging"),
        }
        image = str(tmp_path / "usr/lib/modules/6.1/vmlinuz")
        subprocess.run([str(plugin), "add", "6.1", directory, image], check=True, env=environment)
        return (read(tmp_path, PLACE % "6.1") or b"").decode()

    plain = run()
    assert configured_cmdline(tree, loader).text == "root=/dev/vda rw quiet"
    make(changes(tree, WANTED))
    run()
    assert configured_cmdline(tree, loader).text == "root=/dev/vda rw quiet " + BLOCK
    assert cmdline_commands(tree, loader, WANTED) == []
    make(changes(tree, None))
    assert run() == plain


def test_no_kernel(tmp_path: Path) -> None:
    tree = loaders.systemd_boot(tmp_path, {"6.1": "ro"})
    (tmp_path / "usr/lib/modules/6.1/vmlinuz").unlink()
    with pytest.raises(RefusedError, match="no kernel whose entry could be made anew"):
        cmdline_commands(tree, found(tree), WANTED)
    assert cmdline_commands(tree, found(tree), None) == []
