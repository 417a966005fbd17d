"""The runner: what it refuses, what it leaves behind, and what it does not do twice."""

from types import SimpleNamespace

import pytest

from runner.project import Manifest, Project


def test_tables_alone_can_be_brought_up_to_date(project):
    project.write()
    project.run_here()
    after = (project / "README.md").read_text()
    merged = after.replace("9.500 ± 0.10", "merged badly")
    assert merged != after
    (project / "README.md").write_text(merged)
    (project / "build/manifest/default.json").unlink()
    assert project.run("--tables") == 0
    assert (project / "README.md").read_text() == after
    assert not (project / "build/manifest/default.json").exists()


def test_parameters_and_lock_are_part_of_the_key(project):
    project.write()
    (book,) = Project(project.path).notebooks()
    bare = Project(project.path).environment
    (project / "requirements.txt").write_text("numpy==0\n")
    assert Project(project.path).environment != bare
    assert book.key({}, "one") != book.key({}, "two")
    assert book.key({}, "one") != book.key({"n": 3}, "one")


def test_what_ran_is_made_again_where_a_file_is_gone_or_other(tmp_path):
    figure, run = tmp_path / "07_line.png", SimpleNamespace(seconds=1.0, cpu=1.0, peak_gib=0.1)
    figure.write_bytes(b"one")
    Manifest(Project(tmp_path), "default").record("07_sample", "key", run, [figure])

    def held(key="key"):
        return Manifest(Project(tmp_path), "default").holds("07_sample", key)

    assert held() and not held("another")
    figure.write_bytes(b"two")
    assert not held()
    figure.unlink()
    assert not held()


@pytest.mark.parametrize("change", ["theory/spectra.py", "theory/new.py", "checks.py"])
def test_every_file_of_the_library_is_part_of_the_key(project, monkeypatch, change):
    library = project / "library"
    for name in ("theory/spectra.py", "checks.py"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("x = 1\n")
    monkeypatch.setattr("runner.project.LIBRARY", library)
    before = Project(project.path).environment
    (library / change).write_text("x = 2\n")
    assert Project(project.path).environment != before
