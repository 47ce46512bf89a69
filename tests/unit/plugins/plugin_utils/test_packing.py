# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/packing.py. What each ansible-core does is in tests/playbooks."""

from __future__ import annotations

import base64
import dataclasses
import io
import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping

import pytest
from ansible import constants
from ansible.executor import module_common
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils import packing
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.guarded_action import GuardedAction
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.packing import quick_finder, with_bytecode
from ansible_collections.kubenode.cpu_manager.tests.support import pythons

CHECKOUT = Path(__file__).parents[4]
COLLECTION = "ansible_collections/kubenode/cpu_manager/"
UTILS = COLLECTION + "plugins/module_utils/"
# A module, what it imports, and what only a function of that imports; and one that Ansible would have written itself.
PACKED = (
    COLLECTION + "plugins/modules/checkpoint_info.py",
    UTILS + "_base/ansible_module.py",
    UTILS + "_base/errors.py",
    UTILS + "_base/__init__.py",
    UTILS + "__init__.py",
    UTILS + "_kubelet/yaml_scanner.py",
)
# Packages that Ansible makes itself.
EMPTY = tuple(
    "ansible_collections/%s__init__.py" % package
    for package in ("", "kubenode/", "kubenode/cpu_manager/", "kubenode/cpu_manager/plugins/")
)
MINE = "%d.%d" % sys.version_info[:2]
FORMS = {
    "2.18": b"    ZIPDATA = '%s'\n    more = 1\n",
    "2.19": b"_main(\nparams='zip_data=\\'AA\\'',\nzip_data='%s',\n)\n",
}


def archive_of(*names: str, others: Mapping[str, str] = MappingProxyType({})) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as files:
        for name in names:
            files.writestr(name, (CHECKOUT / name.removeprefix(COLLECTION)).read_bytes())
        for name, source in {**dict.fromkeys(EMPTY, ""), **others}.items():
            files.writestr(name, source)
    return packed.getvalue()


def archive_in(script: bytes, form: bytes) -> bytes:
    before, after = form.split(b"%s")
    assert script.startswith(before)
    assert script.endswith(after)
    return base64.b64decode(script[len(before) : -len(after)])


@pytest.fixture(autouse=True)
def _own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("interpreter", ["/usr/bin/python3", "/opt/python/bin/python"])
def test_what_a_module_imports_at_once_has_bytecode(form: bytes, interpreter: str) -> None:
    sources = archive_of(*PACKED)
    script = with_bytecode(form % base64.b64encode(sources), interpreter)
    with zipfile.ZipFile(io.BytesIO(archive_in(script, form))) as made, zipfile.ZipFile(io.BytesIO(sources)) as given:
        assert set(made.namelist()) == {*EMPTY, *PACKED, *(name + "c" for name in PACKED[:5])}
        assert [made.read(name) for name in PACKED] == [given.read(name) for name in PACKED]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_an_interpreter_of_the_controllers_version_gets_bytecode_alone(form: bytes) -> None:
    sources = archive_of(*PACKED)
    script = with_bytecode(form % base64.b64encode(sources), "#!/usr/bin/python" + MINE)
    with zipfile.ZipFile(io.BytesIO(archive_in(script, form))) as made:
        assert set(made.namelist()) == {*EMPTY, *(name + "c" for name in PACKED)}
    assert len(script) < len(with_bytecode(form % base64.b64encode(sources), "/usr/bin/python3"))


@pytest.mark.parametrize(
    "interpreter",
    [
        "/usr/bin/pypy" + MINE,
        "/usr/bin/graalpython" + MINE,
        "/opt/pypy/bin/python" + MINE,
        "/root/.pyenv/versions/graalpy-24.1/bin/python" + MINE,
        "/usr/bin/python%st" % MINE,
    ],
)
def test_what_may_be_another_implementation_of_this_version_has_the_sources(interpreter: str) -> None:
    """PyPy's own archives have a link with the name of a Python, and it cannot read the bytecode."""
    sources = FORMS["2.19"] % base64.b64encode(archive_of(*PACKED))
    assert with_bytecode(sources, "#!" + interpreter) == with_bytecode(sources, "/usr/bin/python3")


def test_where_the_controller_has_another_implementation_nodes_have_the_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = FORMS["2.19"] % base64.b64encode(archive_of(*PACKED))
    any_python = with_bytecode(sources, "/usr/bin/python3")
    monkeypatch.setattr(sys.implementation, "name", "pypy")
    assert with_bytecode(sources, "/usr/bin/python" + MINE) == any_python


def test_what_makes_programs_of_its_sources_has_them() -> None:
    script = FORMS["2.19"] % base64.b64encode(archive_of(*PACKED, UTILS + "_base/zipapp.py"))
    made = with_bytecode(script, "/usr/bin/python" + MINE)
    assert made == with_bytecode(script, "/usr/bin/python3")


def test_bytecode_has_neither_docstrings_nor_columns() -> None:
    script = with_bytecode(FORMS["2.19"] % base64.b64encode(archive_of(*PACKED)), "/usr/bin/python" + MINE)
    with zipfile.ZipFile(io.BytesIO(archive_in(script, FORMS["2.19"]))) as made:
        code = marshal.loads(made.read(UTILS + "_base/errors.pyc")[16:])
    assert "__doc__" not in code.co_names
    positions = list(code.co_positions())
    assert max(line for line, _end, _column, _end_column in positions if line is not None) > 20
    assert {column for _line, _end, column, _end_column in positions} == {None}


@pytest.mark.parametrize(
    ("script", "interpreter"),
    [
        (FORMS["2.19"] % base64.b64encode(archive_of(*PACKED)), "#!/usr/bin/python3.7"),
        (b"#!/bin/sh\necho zip_data='AAAA'\n", "/bin/sh"),
        (b"", ""),
    ],
)
def test_what_could_not_use_it_is_left_as_it_is(script: bytes, interpreter: str) -> None:
    assert with_bytecode(script, interpreter) == script


def test_a_file_that_is_not_the_controllers_has_none() -> None:
    errors = UTILS + "_base/errors.py"
    form = FORMS["2.19"]
    archive = archive_of(PACKED[0], PACKED[1], others={errors: "CHANGED = 1\n"})
    script = with_bytecode(form % base64.b64encode(archive), "")
    with zipfile.ZipFile(io.BytesIO(archive_in(script, form))) as made:
        assert errors + "c" not in made.namelist()
        assert PACKED[1] + "c" in made.namelist()


def test_an_archive_is_compiled_once_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    script = FORMS["2.19"] % base64.b64encode(archive_of(*PACKED))
    first = with_bytecode(script, "")
    monkeypatch.setattr(subprocess, "run", None)
    assert with_bytecode(script, "") == first


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a file of the collection that can be changed."""
    path = tmp_path / "collection/plugins/module_utils/_base/errors.py"
    path.parent.mkdir(parents=True)
    path.write_text('"""Text."""\nOLD = 1\n', encoding="utf-8")
    os.utime(path, (1, 1))
    monkeypatch.setitem(packing._ROOTS, COLLECTION, tmp_path / "collection")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return path


def code_of(source: str) -> Any:
    packed = archive_of(others={UTILS + "_base/errors.py": source})
    script = with_bytecode(FORMS["2.19"] % base64.b64encode(packed), "/usr/bin/python" + MINE)
    with zipfile.ZipFile(io.BytesIO(archive_in(script, FORMS["2.19"]))) as made:
        return marshal.loads(made.read(UTILS + "_base/errors.pyc")[16:])


def test_what_python_has_kept_is_not_compiled_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = package.read_text(encoding="utf-8")
    first = code_of(source)
    for made in package.parents[4].glob("kubenode-bytecode/*.mine"):
        made.unlink()
    monkeypatch.setattr(subprocess, "run", None)
    assert code_of(source) == first
    assert first.co_names == ("OLD",)


@pytest.mark.parametrize("seconds", [1, 2])
def test_what_python_has_kept_of_an_earlier_source_is_compiled_again(package: Path, seconds: int) -> None:
    code_of(package.read_text(encoding="utf-8"))
    changed = '"""Text."""\n%s = 1\n' % ("NEWER" if seconds == 1 else "NEW")
    package.write_text(changed, encoding="utf-8")
    os.utime(package, (seconds, seconds))
    assert code_of(changed).co_names == (changed.split()[1],)


@pytest.mark.parametrize("version", pythons.VERSIONS)
def test_each_python_reads_the_archive(version: str, tmp_path: Path) -> None:
    """Bytecode of its own version, and otherwise the source."""
    if version not in pythons.installed():
        pytest.skip("no Python %s found" % version)
    form = FORMS["2.18"]
    packed = archive_in(with_bytecode(form % base64.b64encode(archive_of(*PACKED)), ""), form)
    (tmp_path / "code.zip").write_bytes(packed)
    program = "import sys; sys.path.insert(0, sys.argv[1]); import %s as errors; print(errors.__file__)" % (
        (UTILS + "_base/errors").replace("/", ".")
    )
    command = [str(pythons.installed()[version]), "-S", "-c", program, str(tmp_path / "code.zip")]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    assert told.rpartition("/")[2] == ("errors.pyc" if version == MINE else "errors.py")


@dataclasses.dataclass(frozen=True)
class Built:
    """What ansible-core has since 2.19."""

    b_module_data: bytes
    shebang: str | None


@pytest.mark.parametrize(
    ("packed", "script_of"),
    [
        (("new", "#!/usr/bin/python3", b"%s", "/path"), lambda packed: packed[2]),
        ((Built(b"%s", None), "/path"), lambda packed: packed[0].b_module_data),
    ],
    ids=FORMS,
)
def test_every_module_is_sent_so(packed: tuple[Any, ...], script_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS["2.19"]
    script = form % base64.b64encode(archive_of(*PACKED))
    filled = tuple(
        script if part == b"%s" else Built(script, None) if isinstance(part, Built) else part for part in packed
    )
    monkeypatch.setattr(ActionBase, "_configure_module", lambda *_arguments: filled)
    made = GuardedAction._configure_module(object.__new__(GuardedAction), "a.module", {}, {})
    assert script_of(made) == with_bytecode(script, "")
    assert len(script_of(made)) > len(script)
    assert (len(made), made[-1]) == (len(packed), "/path")


@pytest.mark.parametrize("is_ours", [True, False])
def test_ansible_finds_what_modules_import_of_others(is_ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(*given: Any, **options: Any) -> None:
        asked.append((given, options))

    monkeypatch.setattr(module_common, "recursive_finder", ask)
    collection = "kubenode.cpu_manager" if is_ours else "others.theirs"
    name = "ansible_collections.%s.plugins.modules.module" % collection
    ours = b"from ..module_utils.cpuset import CPUSet\nfrom ..module_utils.topology import (\n    model,\n)\n"
    source = ours + b"from ansible.module_utils.basic import AnsibleModule\n"
    with zipfile.ZipFile(io.BytesIO(), "w") as archive:
        with quick_finder():
            module_common.recursive_finder("module", name, source, archive, None, more=1)
        found = set(archive.namelist())
    left = b"from ansible.module_utils.basic import AnsibleModule\n" if is_ours else source
    assert asked == [(("module", name, left, archive, None), {"more": 1})]
    assert (
        found >= {UTILS + "cpuset.py", UTILS + "__init__.py", UTILS + "topology/model.py"}
        if is_ours
        else found == set()
    )
    with pytest.raises(RuntimeError, match="the end"), quick_finder():
        raise RuntimeError("the end")
    assert module_common.recursive_finder is ask


def test_another_ansible_finds_all_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module_common, "recursive_finder")
    with quick_finder():
        assert not hasattr(module_common, "recursive_finder")
    assert not hasattr(module_common, "recursive_finder")
