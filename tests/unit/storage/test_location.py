"""The laws of locations, over a disk, an S3 server and the memory of this process."""

from __future__ import annotations

import errno
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memory_location import Memory, MemoryLocation
from penstock.errors import ChangedFileError, NoSuchPathError, PathError, StoreError
from penstock.storage.location import ABSENT, Entry, FolderKind, Location, Part, naming_original
from penstock.storage.paths import locate
from penstock.storage.store_path import StorePath, parse_store_path

EXPORT = FolderKind("an export", "export.json")


@pytest.fixture(params=["disk", "store", "memory"])
def root(request, tmp_path) -> Location:
    """An empty folder."""
    if request.param == "disk":
        return locate(tmp_path / "pets")
    if request.param == "memory":
        return MemoryLocation(Memory(), StorePath("s3", "memory", "pets"))
    request.getfixturevalue("s3")
    return locate("s3://animals/pets")


def names_in(folder: Location) -> list[str]:
    return [each.name for each in folder.list()]


def fail_after(write: Callable[[bytes], object], data: bytes) -> None:
    write(data)
    raise KeyError


def content_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_names_are_parts_of_the_path(root):
    file = root / "a/b.txt"
    assert (file.name, file.parent.name, file.parent.parent) == ("b.txt", "a", root)
    assert str(file) == f"{root}/a/b.txt" == file.__fspath__()
    assert file == root / "a" / "b.txt" != root / "a"
    assert len({file, root / "a" / "b.txt"}) == 1
    assert root.look_up() is None
    assert names_in(root) == []


def test_written_file_is_found_and_read(root):
    file = root / "a/notes.txt"
    assert file.look_up() is None
    assert file.write(b"some words")
    found = file.look_up()
    assert (found.name, found.num_bytes) == ("notes.txt", 10)
    assert file.read() == b"some words"
    assert file.fetch() == (b"some words", found.version)
    assert file.fetch(5, version=found.version) == (b"words", found.version)
    assert file.fetch(2, 7).data == b"me wo"
    assert file.fetch(7, 70).data == b"rds"
    assert file.read(version=found.version, most=10) == b"some words"
    assert (root / "a").look_up() is None  # a folder is not a file


def test_each_write_makes_another_version(root):
    file = root / "count"
    versions = set()
    for number in range(8):
        last = file.look_up()
        assert file.write(b"%d" % number, over=ABSENT if last is None else last.version)
        versions.add(file.look_up().version)
    assert len(versions) == 8


def test_missing_file_is_an_error_that_names_it(root):
    for read in (lambda at: at.read(), lambda at: at.open().read(0, 1)):
        with pytest.raises(NoSuchPathError) as caught:
            read(root / "none")
        assert caught.value.path == str(root / "none")


def test_another_version_and_a_larger_file_are_refused(root):
    file = root / "notes"
    file.write(b"old")
    old = file.look_up().version
    file.write(b"newer")
    with pytest.raises(ChangedFileError) as caught:
        file.read(version=old)
    assert caught.value.path == str(file)
    with pytest.raises(OSError, match="too large") as failed:
        file.read(most=4)
    assert failed.value.errno == errno.EFBIG


def test_conditional_write_replaces_only_the_given_version(root):
    file = root / "owner.json"
    assert file.write(b"first", over=ABSENT)
    first = file.look_up().version
    assert not file.write(b"second", over=ABSENT)
    assert file.write(b"second", over=first)
    assert not file.write(b"third", over=first)
    assert file.read() == b"second"
    second = file.look_up().version
    file.remove()
    assert not file.write(b"third", over=second)
    assert file.look_up() is None


def test_of_many_conditional_writers_one_wins(root):
    file = root / "owner.json"
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            last = file.look_up()
            over = ABSENT if last is None else last.version
            owners = [f"{over} {number}".encode() for number in range(8)]
            won = list(pool.map(lambda data, over=over: file.write(data, over=over), owners))
            assert sum(won) == 1
            assert file.read() == owners[won.index(True)]


def test_files_are_listed_by_their_names_within_each_folder(root):
    names = ["a-b", "a/z", "a/b/c", "ab", "é", "B", ".hidden/x", "a/.y"]
    for name in names:
        (root / name).write(name.encode())
    expected = [".hidden/x", "B", "a/.y", "a/b/c", "a/z", "a-b", "ab", "é"]
    assert names_in(root) == expected
    shown = list(root.list(lambda name: name.startswith(".")))
    assert [each.name for each in shown] == ["B", "a/b/c", "a/z", "a-b", "ab", "é"]
    assert [each.num_bytes for each in shown] == [len(each.name.encode()) for each in shown]
    assert list(root.list_folders()) == [".hidden", "a"]
    assert list((root / "a").list_folders()) == ["b"]
    assert list(root.list_folders(lambda name: name.startswith("."))) == ["a"]
    assert names_in(root / "none") == list((root / "none").list_folders()) == []


def test_open_file_is_read_at_any_offset(root):
    (root / "digits").write(b"0123456789")
    file = (root / "digits").open()
    assert (file.size, file.identity.size, file.path) == (10, 10, (root / "digits").path)
    assert [bytes(file.read(at, 4)) for at in (0, 3, 8)] == [b"0123", b"3456", b"89"]
    file.check_unchanged(file.identity)


@pytest.mark.parametrize("is_pickled", [False, True])
def test_ranges_fill_arrays_of_many_files(root, is_pickled):
    if is_pickled and isinstance(root, MemoryLocation):
        pytest.skip("the memory of a process stays in it")
    for number in range(70):
        (root / str(number)).write(bytes([number]) * 5 + b"end")
    folder = pickle.loads(pickle.dumps(root)) if is_pickled else root  # noqa: S301 - as a worker gets it
    ranges = folder.open_ranges()
    arrays = [np.zeros((2, 2), np.uint16) for _ in range(70)]
    empty = np.empty(0, np.float64)
    ranges.fill([Part("none", 0, empty), *(Part(str(i), 0, each) for i, each in enumerate(arrays))])
    assert [each.tobytes() for each in arrays] == [bytes([i]) * 5 + b"end" for i in range(70)]
    ranges.close()
    ranges.fill([Part("3", 5, arrays[0][0][:1]), Part("3", 6, arrays[1][0][:1])])
    assert arrays[0].tobytes()[:2] == b"en"
    assert arrays[1].tobytes()[:2] == b"nd"
    ranges.close()


@pytest.mark.parametrize(("name", "offset", "size"), [("none", 0, 1), ("short", 0, 4), ("short", 2, 2)])
def test_ranges_beyond_a_file_are_errors(root, name, offset, size):
    (root / "short").write(b"abc")
    ranges = root.open_ranges()
    with pytest.raises(FileNotFoundError if name == "none" else (ChangedFileError, StoreError)) as caught:
        ranges.fill([Part(name, offset, np.zeros(size, np.uint8))])
    assert str(root / name) in str(caught.value)
    ranges.close()


def test_copied_file_is_a_local_path_with_its_content(root):
    (root / "a/table.csv").write(b"age\n3\n")
    with (root / "a/table.csv").copied() as path:
        assert isinstance(path, Path)
        assert (path.name, path.read_bytes()) == ("table.csv", b"age\n3\n")
    assert path.exists() == root.has_folders


def test_file_is_copied_once_with_the_version_of_the_copy(root, tmp_path):
    (root / "table.csv").write(b"age\n3\n")
    made = []

    def make_folder() -> Path:
        made.append(tmp_path / "copy")
        made[-1].mkdir()
        return made[-1]

    local, copied = (root / "table.csv").copy_once(make_folder)
    assert (local.name, local.read_bytes()) == ("table.csv", b"age\n3\n")
    if root.has_folders:
        assert (local, copied, made) == ((root / "table.csv").path, None, [])
        return
    assert local.parent == made[0]
    assert copied == (root / "table.csv").look_up()
    (root / "table.csv").write(b"age\n4\n")
    assert copied != (root / "table.csv").look_up()


def test_named_files_are_found_among_the_files_of_a_folder(root):
    for name in ("a.png", "b/c.png"):
        (root / name).write(b"x")
    names = ["a.png", "b/../a.png", "b", "none.png", f"{root}/b/c.png", "b/c.png"]
    assert root.find_existing(names) == {"a.png", "b/../a.png", f"{root}/b/c.png", "b/c.png"}


def test_file_is_copied_to_another_name(root):
    (root / "a").write(b"words")
    assert (root / "c/b").can_copy(5)
    (root / "c/b").copy_from(root / "a")
    assert (root / "c/b").read() == (root / "a").read() == b"words"
    with pytest.raises(NoSuchPathError):
        (root / "d").copy_from(root / "none")


def test_copied_folder_has_the_needed_files_and_is_copied_again_when_they_change(root):
    for name in ("run.yaml", "part/weights", "data/shard"):
        (root / name).write(name.encode())

    def copy() -> Path:
        return root.copy_folder(lambda name: not name.startswith("data/"), lambda _: ["run.yaml"])

    first = copy()
    assert {"run.yaml": b"run.yaml", "part/weights": b"part/weights"}.items() <= content_of(first).items()
    assert "data/shard" not in content_of(first) or first == root.path
    assert copy() == first
    (root / "run.yaml").write(b"other")
    assert (copy() / "run.yaml").read_bytes() == b"other"
    with (
        naming_original(first, root.path),
        pytest.raises(PathError) as caught,
        naming_original(first, root.path),
    ):
        raise PathError("broken", path=first / "run.yaml")
    assert caught.value.path == str(root / "run.yaml")


def test_folder_without_needed_files_is_not_copied(root):
    (root / "other").write(b"")
    if root.has_folders:
        assert root.copy_folder(lambda _: False, lambda _: []) == root.path
        return
    with pytest.raises(NoSuchPathError) as caught:
        root.copy_folder(lambda _: False, lambda _: [])
    assert caught.value.path == str(root)


def test_listed_files_are_copied_in_the_version_that_was_listed(root, tmp_path):
    for name in ("a", "b/c"):
        (root / name).write(name.encode())
    entries = list(root.list())
    root.copy_files(entries, tmp_path / "copy")
    assert content_of(tmp_path / "copy") == {"a": b"a", "b/c": b"b/c"}
    (root / "a").write(b"other")
    listed = [Entry("a", 1, (root / "a").look_up().version), entries[0]._replace(version="another")]
    with pytest.raises(ChangedFileError):
        root.copy_files(listed, tmp_path / "later")
    for name in ("../a", "b/../c", "."):
        with pytest.raises(PathError) as caught:
            root.copy_files([Entry(name, 1, None)], tmp_path / "outside")
        assert not isinstance(caught.value, NoSuchPathError)


def test_output_appears_at_the_end_and_not_after_an_error(root):
    out = root / "a/out.csv"
    with out.creating(overwrite=False) as file:
        file.write(b"age\n")
        assert out.look_up() is None
    assert out.read() == b"age\n"
    with pytest.raises(KeyError), out.creating(overwrite=True) as file:
        fail_after(file.write, b"half")
    assert out.read() == b"age\n"
    assert names_in(root) == ["a/out.csv"]


def test_existing_output_is_refused_unless_it_is_overwritten(root):
    out = root / "out.csv"
    out.refuse_output(overwrite=False)
    out.write(b"old")
    with pytest.raises(PathError, match="already exists") as caught:
        out.refuse_output(overwrite=False)
    assert caught.value.path == str(out)
    with pytest.raises(PathError, match="already exists"), out.creating(overwrite=False):
        pytest.fail("the file was opened")
    out.refuse_output(overwrite=True)
    with out.creating(overwrite=True) as file:
        file.write(b"new")
    assert out.read() == b"new"


def test_output_that_another_program_creates_meanwhile_is_refused(root):
    out = root / "out.csv"
    with pytest.raises(PathError, match="already exists"), out.creating(overwrite=False):
        out.write(b"theirs")
    assert out.read() == b"theirs"


def test_large_file_is_written_by_its_path(root, tmp_path):
    data = np.random.default_rng(0).bytes(40 << 20)
    with (root / "runs/run-0").writing() as path:
        path.write_bytes(data)
    assert (root / "runs/run-0").read() == data
    (tmp_path / "local").write_bytes(b"from a file")
    (root / "runs/run-1").write_file(tmp_path / "local")
    assert (root / "runs/run-1").read() == b"from a file"
    assert names_in(root / "runs") == ["run-0", "run-1"]
    assert (tmp_path / "local").exists()


def test_removed_files_are_gone_and_missing_ones_ignored(root):
    for name in ("a", "b", "c/d", "c/e/f"):
        (root / name).write(b"x")
    (root / "a").remove()
    (root / "a").remove()
    root.remove_files(["b", "none", "c/d"])
    root.remove_files([])
    assert names_in(root) == ["c/e/f"]
    (root / "c").remove_folder()
    (root / "c").remove_folder()
    assert names_in(root) == []
    root.remove_folder()
    assert list(root.parent.list_folders()) == []


def test_replaced_folder_has_only_the_new_files(root):
    out = root / "served"
    for content in ({"export.json": b"1", "old": b"1"}, {"export.json": b"2", "a/new": b"2"}):
        with out.replacing_folder(EXPORT, overwrite=True) as made:
            for name, data in content.items():
                (made / name).parent.mkdir(exist_ok=True)
                (made / name).write_bytes(data)
        assert {name: (out / name).read() for name in names_in(out)} == content
    assert names_in(root) == ["served/a/new", "served/export.json"]


def test_folder_is_not_replaced_after_an_error(root):
    out = root / "served"
    (out / "export.json").write(b"old")
    with pytest.raises(KeyError), out.replacing_folder(EXPORT, overwrite=True) as made:
        fail_after((made / "export.json").write_bytes, b"half")
    assert (out / "export.json").read() == b"old"
    assert names_in(root) == ["served/export.json"]


def test_folder_of_another_kind_is_never_replaced(root):
    out = root / "served"
    assert not out.check_folder(EXPORT, overwrite=False)
    (out / "thesis.txt").write(b"years of work")
    for overwrite in (False, True):
        with pytest.raises(PathError, match="but is not an export") as caught:
            out.check_folder(EXPORT, overwrite=overwrite)
        assert caught.value.path == str(out)
        with pytest.raises(PathError), out.replacing_folder(EXPORT, overwrite=overwrite):
            pytest.fail("the folder was made")
    (out / "export.json").write(b"{}")
    with pytest.raises(PathError, match="already exists"):
        out.check_folder(EXPORT, overwrite=False)
    assert out.check_folder(EXPORT, overwrite=True)
    assert names_in(root) == ["served/export.json", "served/thesis.txt"]


def test_folder_that_another_program_fills_meanwhile_is_refused(root):
    out = root / "served"
    with pytest.raises(PathError, match="already exists"), out.replacing_folder(EXPORT, overwrite=False):
        (out / "export.json").write(b"theirs")
    assert (out / "export.json").read() == b"theirs"


def test_replaced_folder_in_a_store_gets_its_last_file_last(s3):
    root = locate("s3://animals/served")
    for number in range(2):
        s3.clear()
        with root.replacing_folder(EXPORT, overwrite=True) as made:
            for name in ("a", "export.json", "z"):
                (made / name).write_bytes(b"%d" % number)
        written = [each.key for each in s3.requests if each.method == "PUT"]
        assert written == ["served/a", "served/z", "served/export.json"]
        removed = [each for each in s3.requests if each.method == "POST" and "delete" in each.path]
        assert len(removed) == 2 * number  # the last file first, and then all others


def test_error_of_a_store_keeps_the_file_that_was_to_be_uploaded(s3, impatient):
    s3.fault = lambda request: 403 if request.method == "PUT" else None
    with pytest.raises(StoreError) as caught, locate("s3://animals/out.csv").creating(overwrite=True) as file:
        file.write(b"age\n")
    folder = Path(caught.value.advice.rpartition("is kept in ")[2].rstrip("."))
    assert content_of(folder) == {"out.csv": b"age\n"}
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("path", "what"), [("https://animals.org/out.csv", "read-only"), ("s3://animals", "whole bucket")]
)
def test_location_that_cannot_be_written_is_refused(path, what):
    pytest.importorskip("obstore")
    with pytest.raises(PathError, match=what) as caught:
        locate(path).refuse_output(overwrite=True)
    assert caught.value.path == path


def test_folder_is_refused_as_an_output_file(tmp_path):
    with pytest.raises(PathError, match="is a folder"):
        locate(tmp_path).refuse_output(overwrite=True)


def test_path_itself_is_taken_for_its_location(tmp_path):
    assert locate(str(tmp_path)) == locate(tmp_path)
    assert locate(tmp_path).path == tmp_path
    assert locate(locate(tmp_path)) == locate(tmp_path)
    pytest.importorskip("obstore")
    assert locate(parse_store_path("s3://a/b")) == locate("s3://a/b") != locate("s3://a/c")
