"""The line `Next:` of the commands for data: pasted into a shell, it works, whatever the names are."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pasted_lines import find_next, run_pasted, split_words
from penstock.cli import next_command
from penstock.cli.bench import _suggest
from penstock.cli.main import main
from penstock.cli.next_command import choose_unused, name_output, quote, repeat_words
from penstock.settings.command_line import Call
from penstock.settings.commands import BENCH, CONVERT, INSPECT
from penstock.settings.loading import BenchOptions
from record_files import FRAME_BYTES, flip

NAMES = ["pets", "my pets", "it's 50% $HOME", "-pets", "pets\nand more", "größe 大"]


@pytest.fixture(params=NAMES)
def name(request, tmp_path, monkeypatch):
    """A name of a file or folder, and a table of that name in the working folder."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},{n % 7},{'ab'[n % 2]}\n" for n in range(60))
    Path(f"{request.param}.csv").write_text(f"id,age,kind\n{rows}")
    return request.param


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A data set with a target in a folder whose name has a space."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n % 7},{'ab'[n % 2]}\n" for n in range(200))
    Path("my pets.csv").write_text(f"age,kind\n{rows}")
    assert main(["convert", "my pets.csv", "my pets", "--target", "kind", "--quiet"]) == 0
    return "my pets"


def run(capsys, *argv):
    """Run a command, and return what it writes to stderr."""
    capsys.readouterr()
    status = main(list(argv))
    return status, capsys.readouterr().err


@pytest.mark.parametrize("word", [*NAMES, "", "a b", "\x1b[2J", "\udcff", "\\n", "a'b\t"])
def test_quoted_word_is_read_back_by_bash(word) -> None:
    assert split_words(quote(word)) == [word]


def test_path_that_looks_like_an_option_is_quoted_as_a_path() -> None:
    assert quote(Path("-x")) == "./-x"
    assert quote("-x") == "-x"


def test_unused_name_has_a_number(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_unused("a.csv") == Path("a.csv")
    Path("a.csv").touch()
    Path("a-2.csv").touch()
    assert choose_unused("a.csv") == Path("a-3.csv")
    assert name_output("some/pets-*.tfrecord", "-repaired") == Path("pets-repaired")
    assert name_output("*", ".html") == Path("data.html")


def test_repeated_words_leave_out_options_and_their_values() -> None:
    words = ("a", "--head", "3", "--tf", "--head=4", "b")
    call = Call(command=INSPECT, arguments=("a", "b"), values={}, words=words)
    assert repeat_words(call, ["--head", "--tf"], ["--x"]) == ["a", "b", "--x"]
    call = call.replace(words=("--tf", "--", "-a"))
    assert repeat_words(call, ["--tf"], ["--x"]) == ["--x", "--", "-a"]


def test_repeated_words_leave_out_optional_values_and_earlier_flags() -> None:
    for words in (("a", "--shuffle", "--seed=3"), ("a", "--shuffle", "block", "--seed=3")):
        call = Call(command=BENCH, arguments=("a",), values={}, words=words)
        assert repeat_words(call, ["--shuffle"]) == ["a", "--seed=3"]
    call = Call(command=CONVERT, arguments=("a", "b"), values={}, words=("a", "b", "--workers", "3"))
    assert repeat_words(call, ["--threads"]) == ["a", "b"]


def test_plan_convert_inspect_verify_lead_to_each_other(name, capsys) -> None:
    source = f"./{name}.csv" if name.startswith("-") else f"{name}.csv"
    status, err = run(capsys, "convert", source, "--plan")
    assert (status, run_pasted(err)) == (0, 0)
    assert Path(name.lstrip("-"), "penstock.json").is_file()
    err = capsys.readouterr().err
    assert find_next(err)[:2] == ["penstock", "inspect"]
    assert run_pasted(err) == 0
    err = capsys.readouterr().err
    assert find_next(err) == ["penstock", "view", name.lstrip("-")]
    status, err = run(capsys, "verify", name.lstrip("-"))
    assert find_next(err) == ["penstock", "inspect", name.lstrip("-")]
    assert run_pasted(err) == 0


def test_output_that_looks_like_an_option_is_suggested_as_a_path(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x\n" + "1\n" * 20)
    status, err = run(capsys, "convert", "--", "a.csv", "-out")
    assert (status, find_next(err)) == (0, ["penstock", "inspect", "./-out"])
    assert run_pasted(err) == 0


def test_data_with_a_target_leads_to_training(dataset, capsys) -> None:
    for argv in (["inspect", dataset], ["verify", dataset], ["inspect", dataset, "--head", "2", "--tf"]):
        status, err = run(capsys, *argv)
        assert (status, find_next(err)) == (0, ["penstock", "train", dataset])
    status, err = run(capsys, "inspect", dataset, "--target", "age", "--number", "age")
    assert find_next(err) == ["penstock", "train", dataset, "--target", "age", "--number", "age"]


def test_files_that_need_options_do_not_lead_to_training(dataset, capsys) -> None:
    for command, following in (("inspect", "verify"), ("verify", "inspect")):
        status, err = run(capsys, command, dataset, "--max-record-bytes", "100000")
        assert (status, find_next(err)[1]) == (0, following)
        assert run_pasted(err) == 0


def test_data_leads_to_what_is_installed(dataset, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "keras", None)
    assert find_next(run(capsys, "verify", dataset)[1]) == ["penstock", "inspect", dataset]
    assert find_next(run(capsys, "inspect", dataset)[1]) == ["penstock", "view", dataset]
    monkeypatch.setitem(sys.modules, "starlette", None)
    err = run(capsys, "inspect", dataset)[1]
    assert find_next(err) == ["penstock", "verify", dataset]
    assert run_pasted(err) == 0


def test_damaged_files_lead_to_repair_and_back(damaged, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    path = damaged.rename(tmp_path / "my records.tfrecord")
    status, err = run(capsys, "inspect", str(path))
    assert (status, find_next(err)) == (1, ["penstock", "verify", str(path)])
    assert run_pasted(err) == 1
    err = capsys.readouterr().err
    assert find_next(err) == ["penstock", "repair", str(path), "--out", "my records-repaired"]
    assert run_pasted(err) == 0
    assert run_pasted(capsys.readouterr().err) == 0
    assert find_next(capsys.readouterr().err) == ["penstock", "inspect", "my records-repaired"]
    status, err = run(capsys, "verify", str(path))
    assert find_next(err)[-1] == "my records-repaired-2"


def test_files_without_an_intact_record_lead_nowhere(tmp_path, capsys) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(bytes(FRAME_BYTES), 3))
    status, err = run(capsys, "verify", str(path))
    assert (status, err) == (1, "")


def test_table_and_comparison_lead_to_commands_that_work(dataset, capsys) -> None:
    status, err = run(capsys, "convert", dataset, "my table.parquet")
    assert (status, find_next(err)) == (0, ["penstock", "convert", "my table.parquet", "--plan"])
    assert run_pasted(err) == 0
    err = capsys.readouterr().err
    assert find_next(err) == ["penstock", "convert", "my table.parquet", "my table"]
    assert run_pasted(err) == 0
    status, err = run(capsys, "inspect", "my table", "--compare", dataset)
    assert find_next(err) == ["penstock", "inspect", "my table"]


def test_report_leads_to_a_program_that_opens_it(dataset, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("BROWSER", f"{sys.executable} -c 'import sys; print(sys.argv[1])' %s")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    status, err = run(capsys, "report", dataset, "--out", "my report.html")
    program, *words = find_next(err)
    assert (status, program) == (0, sys.executable)
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == (tmp_path / "my report.html").as_uri()
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    status, err = run(capsys, "report", dataset, "--out=-another.html")
    assert find_next(err)[1:] == ["./-another.html"]


def test_bench_leads_to_a_command_that_works(dataset, monkeypatch, capsys) -> None:
    monkeypatch.setattr("penstock.cli.next_command.can_train", lambda: False)
    status, err = run(capsys, "bench", dataset, "--batch-size", "16", "--batches", "2")
    assert status == 0
    assert find_next(err)[1:3] in (["inspect", dataset], ["bench", dataset])
    assert run_pasted(err) == 0


@pytest.mark.parametrize(
    ("limit", "words"), [("threads", "bench a --batch-size 8 --threads 4"), ("consumer", "train a")]
)
def test_bench_leads_to_more_threads_if_they_are_the_limit(limit, words) -> None:
    call = Call(command=BENCH, arguments=("a",), values={}, words=("a", "--batch-size", "8", "--threads=2"))
    report = argparse.Namespace(limit=limit, measured=argparse.Namespace(num_cores=4))
    _suggest(call, BenchOptions(), report, has_target=True)
    assert call.next_command == f"penstock {words}"


def test_data_without_an_input_does_not_lead_to_training(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("y.csv").write_text("y\n" + "0\n1\n" * 20)
    for argv in (
        ["inspect", "y.csv", "--target", "y"],
        ["convert", "y.csv", "out", "--target", "y"],
        ["inspect", "out"],
        ["verify", "out"],
    ):
        status, shown = run(capsys, *argv)
        assert status == 0
        assert find_next(shown)[:2] != ["penstock", "train"]


@pytest.mark.parametrize("option", ["--json", "--quiet", "-q"])
def test_line_is_left_out_for_machines_and_with_quiet(option, dataset, capsys) -> None:
    for argv in (["verify", dataset], ["inspect", dataset], ["convert", "my pets.csv", "--plan"]):
        assert run(capsys, *argv, option) == (0, "")


def test_line_goes_to_stderr_after_the_result(dataset) -> None:
    program = "import sys; from penstock.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "inspect", dataset]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "Next: penstock train 'my pets'"
    done = subprocess.run([*command, "--tf"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    compile(done.stdout, "code", "exec")


def test_failed_command_has_no_line(tmp_path, capsys) -> None:
    status, err = run(capsys, "verify", str(tmp_path / "none"))
    assert (status, err.count("\n"), "Next" in err) == (2, 1, False)


def test_program_is_named_as_it_was_called(monkeypatch, tmp_path) -> None:
    script = tmp_path / "my bin" / "penstock"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert next_command._name_program() == f"'{script}'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert next_command._name_program() == "penstock"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert next_command._name_program() == "penstock"


def test_closed_stderr_leaves_stdout_to_the_result(dataset) -> None:
    program = "import sys; from penstock.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = f"{sys.executable} -c '{program}' verify '{dataset}' -v"
    done = subprocess.run(["bash", "-c", f"{command} 2>&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    command = command.removesuffix(" -v")
    done = subprocess.run(["bash", "-c", f"{command} 2>/dev/full"], capture_output=True, check=False)
    assert done.returncode == 0
