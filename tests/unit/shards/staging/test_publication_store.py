"""Conversions to an object store: written objects, their order, and what an unfinished one leaves."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.errors import BusyError, MissingShardError, NoSuchPathError, OptionError, PathError, StoreError
from penstock.format.index import INDEX_FOLDER
from store_server import Proxy, get_object, list_keys, put_object, send, set_environment, upload_folder

NUM_ROWS = 2000
OUT = "s3://animals/pets"


def table(seed: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    return {
        "height": rng.normal(size=NUM_ROWS).round(4),
        "word": [f"word {number}" for number in rng.integers(0, 10**6, NUM_ROWS)],
        "sold": rng.integers(0, 2, NUM_ROWS),
    }


def convert(seed: int = 0, out: str = OUT, **options: object):
    return ps.convert(table(seed), out, target="sold", num_shards=4, num_threads=1, **options)


def hashes(dataset) -> dict[str, str]:
    return {shard.name: shard.sha256 for shard in dataset.manifest.shards()}


def folders(port: int) -> set[str]:
    return {key.split("/")[1] for key in list_keys(port, "animals", "pets/.shards-")}


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_shards_equal_shards_of_a_disk(s3, s3_port, tmp_path, compression):
    near = convert(out=tmp_path / "pets", compression=compression)
    remote = convert(compression=compression)
    assert hashes(remote) == hashes(near)
    assert remote.manifest.statistics == near.manifest.statistics
    (folder,) = folders(s3_port)
    assert remote.manifest.folder == folder
    for shard in near.manifest.shards():
        data = get_object(s3_port, "animals", f"pets/{folder}/{shard.name}")
        assert data == (tmp_path / "pets" / shard.name).read_bytes()
        index = f"{INDEX_FOLDER}/{shard.name}.idx"
        data = get_object(s3_port, "animals", f"pets/{folder}/{index}")
        assert data == (tmp_path / "pets" / index).read_bytes()
    assert list(remote["test"]) == list(near["test"])


def test_statistics_that_are_read_from_shards_are_the_same(s3, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.shards.conversion._MAX_HELD_BYTES", 0)
    near = convert(out=tmp_path / "pets", stratify=True)
    assert convert(stratify=True).manifest.statistics == near.manifest.statistics


def test_first_batch_needs_two_requests_before_its_ranges(s3):
    for shuffle in (False, True):
        # Another name each time: requests of an iteration that has ended early may arrive in the next one.
        out = f"{OUT}-{shuffle}"
        convert(out=out)
        s3.clear()
        with iter(ps.open(out)["train"].loader(batch_size=64, shuffle=shuffle)) as batches:
            next(batches)
        keys = [each.key for each in s3.requests if each.key.startswith(f"pets-{shuffle}/")]
        kinds = [key.rpartition(".")[2] for key in keys]
        assert kinds[:2] == ["json", "idx"]
        assert set(kinds[2:]) == {"tfrecord"}


def test_the_manifest_is_put_last_and_only_if_absent(s3):
    convert()
    puts = [each for each in s3.requests if each.method == "PUT"]
    assert puts[-1].key == "pets/penstock.json"
    assert puts[-1].headers["if-none-match"] == "*"
    assert [each.key for each in puts].count("pets/penstock.json") == 1


def test_a_copy_of_the_objects_on_a_disk_opens(s3, s3_port, tmp_path):
    remote = convert()
    for key in list_keys(s3_port, "animals", "pets/"):
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(get_object(s3_port, "animals", key) or b"")
    near = ps.open(tmp_path / "pets")
    assert list(near["train"]) == list(remote["train"])
    assert near.notes == remote.notes


def test_existing_data_is_refused_and_stays(s3, s3_port):
    before = hashes(convert())
    with pytest.raises(PathError) as caught:
        convert(seed=1)
    assert caught.value.path == OUT
    assert hashes(ps.open(OUT)) == before
    assert len(folders(s3_port)) == 1


def test_overwrite_keeps_readers_of_the_old_data_working(s3, s3_port):
    old = convert()
    new = convert(seed=1, overwrite=True)
    s3.clear()
    seen = [inputs["height"] for inputs, _ in old["train"].loader(batch_size=64)]
    assert s3.count("GET", ".tfrecord")  # nothing was read before
    assert sum(map(len, seen)) == len(old["train"])
    assert set(np.concatenate(seen).tolist()) <= set(np.float32(table()["height"]).tolist())
    assert hashes(ps.open(OUT)) == hashes(new) != hashes(old)
    assert len(folders(s3_port)) == 2
    convert(seed=1, resume=True, clean=True)
    assert folders(s3_port) == {new.manifest.folder}
    assert hashes(ps.open(OUT)) == hashes(new)


def once(s3, ending, call):
    """Call a function at the first upload of an object, before it arrives; return a list for its result."""
    results: list[object] = []

    def fault(request):
        if request.method in ("PUT", "POST") and request.key.endswith(ending) and not results:
            results.append(None)
            s3._lock.release()  # the function sends requests, too
            try:
                results[0] = call()
            finally:
                s3._lock.acquire()

    s3.fault = fault
    return results


def interrupt(s3, seed: int = 0, **options: object) -> None:
    """Run a conversion that fails at one of its shards, and leaves the others."""
    s3.fault = lambda each: 403 if each.method == "PUT" and "train-00003-of" in each.key else None
    with pytest.raises(StoreError):
        convert(seed, **options)
    s3.fault = None


def is_upload(request) -> bool:
    return request.method in ("PUT", "POST") and "x-amz-copy-source" not in request.headers


@pytest.mark.parametrize("overwrite", [False, True])
def test_of_two_writers_one_wins(s3, s3_port, overwrite):
    if overwrite:
        convert(seed=5)
    won = []

    def race(request):
        if request.method == "PUT" and request.key == "pets/penstock.json" and not won:
            won.append(True)
            s3.fault = None
            s3._lock.release()  # the other conversion sends requests, too
            try:
                won.append(hashes(convert(seed=1, overwrite=overwrite)))
            finally:
                s3._lock.acquire()

    s3.fault = race
    with pytest.raises(BusyError) as caught:
        convert(seed=2, overwrite=overwrite)
    assert caught.value.path == OUT
    assert hashes(ps.open(OUT)) == won[1]


def test_a_lost_answer_to_the_last_write_is_not_an_error(s3):
    lost = []

    def lose(request):
        if request.method == "PUT" and request.key == "pets/penstock.json" and not lost:
            lost.append(request)
            return "lose"
        return None

    s3.fault = lose
    dataset = convert()
    assert lost
    assert hashes(ps.open(OUT)) == hashes(dataset)


_CHILD = """
import sys
sys.path[:0] = {paths!r}
from test_publication_store import convert
convert(resume={resume!r})
"""


def kill_at(s3, number: int) -> int:
    """Kill a conversion when it sends its `number`-th upload; return the number of uploads."""
    child: list[subprocess.Popen] = []
    count = [0]

    def fault(request):
        if request.method in ("PUT", "POST"):
            count[0] += 1
            if count[0] == number:
                child[0].send_signal(signal.SIGKILL)
                return "drop"
        return None

    s3.fault = fault
    here = Path(__file__).parent
    code = _CHILD.format(paths=[str(here), str(here.parents[2])], resume=True)
    s3._lock.acquire()
    try:
        child.append(subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE))
    finally:
        s3._lock.release()
    _, errors = child[0].communicate()
    assert child[0].returncode in (0, -signal.SIGKILL), errors.decode()
    s3.fault = None
    return count[0]


@pytest.mark.parametrize("number", [1, 3, 7, 20])
def test_a_killed_writer_leaves_nothing_that_a_reader_sees(s3, s3_port, tmp_path, number):
    kill_at(s3, number)
    with pytest.raises(NoSuchPathError):
        ps.open(OUT)
    left = list_keys(s3_port, "animals", "pets/")
    assert all(key.startswith("pets/.shards-") for key in left)
    s3.clear()
    dataset = convert(resume=True)
    assert hashes(dataset) == hashes(convert(out=tmp_path / "pets"))
    assert len(folders(s3_port)) == 1
    whole = [key for key in left if key.endswith(".idx") and not key.endswith("all.idx")]
    names = [key.rpartition("/")[2].removesuffix(".idx") for key in whole]
    sent = {each.key.rpartition("/")[2] for each in s3.requests if is_upload(each)}
    assert not sent.intersection(names)  # complete shards are not sent again


def test_leftovers_are_cleaned(s3, s3_port):
    kill_at(s3, 9)
    assert folders(s3_port)
    dataset = convert(seed=3, clean=True)
    assert folders(s3_port) == {dataset.manifest.folder}


def test_a_resumed_run_that_fails_leaves_the_run_that_it_continues(s3, s3_port, monkeypatch):
    def fail(self, num_rows, digest):
        raise ValueError("broken source")

    def resume():
        with monkeypatch.context() as patch:
            patch.setattr("penstock.shards.staging.publication_store.StorePublication.recover", fail)
            with pytest.raises(ValueError, match="broken source"):
                convert(resume=True)
        return list_keys(s3_port, "animals", "pets/")

    left = once(s3, ".tfrecord", resume)
    dataset = convert()
    assert {key.split("/")[1] for key in left[0]} == {dataset.manifest.folder}
    assert folders(s3_port) == {dataset.manifest.folder}
    assert main(["verify", OUT]) == 0


def test_a_run_that_fails_after_another_resumed_it_leaves_the_data_set(s3, s3_port):
    won = once(s3, ".tfrecord", lambda: hashes(convert(resume=True)))
    with pytest.raises(BusyError) as caught:
        convert()
    assert caught.value.path == OUT
    assert hashes(ps.open(OUT)) == won[0]
    assert main(["verify", OUT]) == 0


@pytest.mark.parametrize("ending", ["rows.json", ".tfrecord", "all.idx"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_live_run_and_one_that_resumes_it_do_not_mix(s3, ending, seed):
    """At first the content of the running conversion is not known, and later it may be the same or not."""

    def resume():
        if seed and ending != "rows.json":
            with pytest.raises(OptionError) as caught:
                convert(seed, resume=True, overwrite=True)
            assert caught.value.field == "source"
            assert caught.value.path == OUT
            return None
        return hashes(convert(seed, resume=True, overwrite=True))

    won = once(s3, ending, resume)
    if seed and ending != "rows.json":
        assert hashes(convert(overwrite=True)) == hashes(ps.open(OUT))
    else:
        with pytest.raises(BusyError):
            convert(overwrite=True)
        assert hashes(ps.open(OUT)) == won[0]
    s3.fault = None
    assert main(["verify", OUT]) == 0


def test_shards_that_another_process_removes_are_noticed_before_the_manifest(s3, s3_port):
    old = hashes(convert())
    removed = once(s3, "all.idx", lambda: convert(resume=True, clean=True))
    with pytest.raises(MissingShardError) as caught:
        convert(seed=1, overwrite=True)
    assert removed
    assert "/.shards-" in str(caught.value.path)
    assert caught.value.got == "no object"
    s3.fault = None
    assert hashes(ps.open(OUT)) == old
    assert main(["verify", OUT]) == 0


class _CarelessProxy(Proxy):
    """A proxy before a store that ignores some conditions of writes."""

    ignored = ("if-none-match", "if-match")

    def _handle(self, handler):
        for name in self.ignored:
            del handler.headers[name]
        super()._handle(handler)


@pytest.mark.parametrize("ignored", ["if-none-match", "if-match"])
def test_a_store_that_ignores_conditions_is_refused(s3, s3_port, monkeypatch, ignored):
    old = hashes(convert())
    careless = _CarelessProxy(s3_port)
    careless.ignored = (ignored,)
    for name, value in set_environment(careless.url, {}).items():
        monkeypatch.setenv(name, value)
    try:
        with pytest.raises(StoreError) as caught:
            convert(seed=1, overwrite=True)
        assert caught.value.path == OUT
        assert hashes(ps.open(OUT)) == old
        assert len(folders(s3_port)) == 1
    finally:
        careless.close()


def test_clean_removes_a_replaced_data_set_that_was_copied_from_a_disk(s3, s3_port, tmp_path):
    convert(out=tmp_path / "pets")
    upload_folder(s3_port, tmp_path / "pets", "animals", "pets")
    put_object(s3_port, "animals", "pets/notes.txt", b"mine")
    dataset = convert(seed=1, overwrite=True, clean=True)
    keys = list_keys(s3_port, "animals", "pets/")
    assert {key for key in keys if dataset.manifest.folder not in key} == {
        "pets/notes.txt",
        "pets/penstock.json",
    }
    assert main(["verify", OUT]) == 0


def test_replaced_versions_are_not_unfinished_conversions(s3, s3_port):
    first = convert()
    convert(seed=1, overwrite=True)
    convert(seed=2, overwrite=True, resume=True, shuffle=False)
    s3.clear()
    again = convert(overwrite=True, resume=True)  # the shards of the first version are used again
    assert hashes(again) == hashes(first)
    assert not [each.key for each in s3.requests if is_upload(each) and each.key.endswith(".tfrecord")]
    assert len(folders(s3_port)) == 4  # a reader may use any of them


def test_of_several_unfinished_conversions_the_one_with_the_same_content_is_resumed(s3, s3_port):
    for seed in (0, 1):
        interrupt(s3, seed)
    assert len(folders(s3_port)) == 2
    with pytest.raises(OptionError) as caught:
        convert(seed=2, resume=True)
    assert caught.value.path == OUT
    assert caught.value.field == "source"
    assert len(folders(s3_port)) == 2
    s3.clear()
    dataset = convert(seed=1, resume=True)
    sent = [each.key for each in s3.requests if is_upload(each) and each.key.endswith(".tfrecord")]
    assert [key.rpartition("/")[2] for key in sent] == ["train-00003-of-00004.tfrecord"]
    assert len(folders(s3_port)) == 2  # the folder of the other content is kept
    assert dataset.manifest.folder in folders(s3_port)
    assert main(["verify", OUT]) == 0


def test_resume_reads_each_index_once(s3):
    interrupt(s3)
    s3.clear()
    convert(resume=True)
    read = [each.key for each in s3.requests if each.method == "GET" and each.key.endswith(".idx")]
    assert len(read) == len(set(read)) >= 3


def test_a_resumed_run_that_fails_again_leaves_no_second_copy(s3, s3_port):
    interrupt(s3)
    left = folders(s3_port)
    interrupt(s3, resume=True)
    assert folders(s3_port) == left


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]\n"])
def test_a_damaged_index_does_not_prevent_a_resumed_run(s3, s3_port, damage):
    interrupt(s3)
    indexes = [key for key in list_keys(s3_port, "animals", "pets/") if key.endswith(".idx")]
    put_object(s3_port, "animals", indexes[0], damage)
    convert(resume=True)
    assert main(["verify", OUT]) == 0


def test_a_manifest_that_is_removed_in_the_meantime(s3, s3_port):
    convert()
    once(s3, "pets/penstock.json", lambda: send(s3_port, "DELETE", "/animals/pets/penstock.json"))
    with pytest.raises(NoSuchPathError) as caught:
        convert(seed=1, overwrite=True)
    assert caught.value.path == f"{OUT}/penstock.json"
    s3.fault = None
    assert hashes(convert(seed=1, resume=True)) == hashes(ps.open(OUT))


def test_resume_with_another_request_is_refused(s3):
    kill_at(s3, 9)
    with pytest.raises(OptionError) as caught:
        convert(resume=True, seed=4, shuffle=False)
    assert caught.value.field is not None


def test_resume_of_a_finished_data_set_sends_nothing(s3):
    convert()
    s3.clear()
    convert(resume=True)
    assert not [each for each in s3.requests if each.method in ("PUT", "POST", "DELETE")]


def test_an_error_in_the_source_leaves_nothing(s3, s3_port):
    def rows():
        yield {"height": 1.5, "sold": 0}
        raise ValueError("broken source")

    with pytest.raises(ValueError, match="broken source"):
        ps.convert(rows, OUT, target="sold")
    assert list_keys(s3_port, "animals", "pets/") == []


def test_writer_writes_to_a_store(s3):
    schema = ps.Schema({"height": ps.fields.Number()})
    with ps.Writer(OUT, schema) as writer:
        for height in range(50):
            writer.write({"height": height * 0.5})
    assert sum(len(writer.dataset[name]) for name in writer.dataset.splits) == 50


def test_command_line_converts_and_verifies(s3, tmp_path, capsys):
    path = tmp_path / "pets.csv"
    path.write_text("height,sold\n" + "".join(f"{i * 0.5},{i % 2}\n" for i in range(300)))
    assert main(["convert", str(path), OUT, "--target", "sold", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == OUT
    assert main(["verify", OUT]) == 0
    assert main(["inspect", OUT, "--json"]) == 0
    assert main(["convert", str(path), OUT, "--target", "sold"]) == 2
    assert main(["convert", str(path), OUT, "--target", "sold", "--resume", "--clean"]) == 0


def test_https_cannot_be_written(s3, tmp_path):
    with pytest.raises(PathError):
        convert(out=f"{s3.url}/animals/pets")


def test_no_manifest_means_no_data_set(s3, s3_port):
    dataset = convert()
    assert send(s3_port, "DELETE", "/animals/pets/penstock.json")[0] == 204
    with pytest.raises(NoSuchPathError):
        ps.open(OUT)
    assert dataset.manifest.folder in folders(s3_port)


def test_tables_are_written_to_a_store(s3, s3_port):
    convert()
    assert main(["convert", OUT, "s3://animals/pets.parquet"]) == 0
    table = pq.read_table(io.BytesIO(get_object(s3_port, "animals", "pets.parquet") or b""))
    assert table.num_rows == NUM_ROWS
    assert main(["convert", OUT, "s3://animals/pets.parquet"]) == 2
    assert main(["convert", OUT, "s3://animals/pets.parquet", "--overwrite"]) == 0


def test_two_writers_that_run_at_once(s3, s3_port):
    """Both read, encode and upload at the same time; one manifest is written, and its shards are whole."""
    results: list[object] = [None, None]
    both = threading.Barrier(2)

    def write(number: int) -> None:
        both.wait()
        try:
            results[number] = hashes(convert(seed=number))
        except (BusyError, PathError) as error:
            results[number] = error

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [each for each in results if isinstance(each, dict)]
    assert len(won) == 1
    opened = ps.open(OUT)
    assert hashes(opened) == won[0]
    assert sum(len(opened[name]) for name in opened.splits) == NUM_ROWS
    assert main(["verify", OUT]) == 0
    convert(seed=results.index(won[0]), resume=True, clean=True)
    assert folders(s3_port) == {opened.manifest.folder}


def test_a_writer_killed_again_and_again_is_resumed_and_cleaned(s3, s3_port, tmp_path):
    for number in np.random.default_rng(8).integers(2, 16, 3).tolist():
        kill_at(s3, number)
        with pytest.raises(NoSuchPathError):
            ps.open(OUT)
    dataset = convert(resume=True, clean=True)
    assert hashes(dataset) == hashes(convert(out=tmp_path / "pets"))
    assert folders(s3_port) == {dataset.manifest.folder}
    assert main(["verify", OUT]) == 0


@pytest.mark.parametrize("debug", [False, True])
def test_the_command_line_shows_no_credentials(s3, s3_port, tmp_path, debug):
    (tmp_path / "pets.csv").write_text("height,sold\n1.5,0\n2.5,1\n")
    s3.fault = lambda request: 403 if request.method == "PUT" else None
    environment = {**os.environ, "AWS_SESSION_TOKEN": "session-token-of-tests"}
    if debug:
        environment["PENSTOCK_DEBUG"] = "1"
    code = "from penstock.cli.main import main; raise SystemExit(main())"
    command = [sys.executable, "-c", code, "convert", str(tmp_path / "pets.csv"), OUT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    shown = done.stdout + done.stderr
    assert done.returncode == 1
    assert OUT in shown
    secrets = (os.environ["AWS_SECRET_ACCESS_KEY"], os.environ["AWS_ACCESS_KEY_ID"], "session-token-of-tests")
    assert not any(secret in shown for secret in secrets)
