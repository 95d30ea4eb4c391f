"""Flags, helps and errors that are made from declarations."""

import subprocess
import sys

import pytest

from penstock.errors import OptionError
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Common, WrongCall, format_help, make_parser, parse
from penstock.settings.commands import (
    BENCH,
    COMMANDS,
    CONVERT,
    EXPORT,
    PREDICT,
    TRAIN,
    VERIFY,
    ColumnTypes,
    OwnModel,
)
from penstock.settings.conversion import ConvertOptions, RawFiles
from penstock.settings.groups import Roles, TextFiles
from penstock.settings.loading import BenchOptions
from penstock.settings.prediction import PredictOptions
from penstock.settings.training import TrainOptions, Workers


def read(command, words, group):
    return parse(command, words.split()).read(group)


def test_flags_give_the_same_objects_as_keywords():
    words = "a.csv b.csv out --drop a,b --drop c --rename x=y --no-shuffle --shard-size 1.5GiB --stratify"
    call = parse(CONVERT, words.split())
    assert call.arguments == ("a.csv", "b.csv", "out")
    assert call.read(ConvertOptions) == ConvertOptions(
        drop=("a", "b", "c"), rename={"x": "y"}, shuffle=False, shard_bytes=3 << 29, stratify=True
    )
    assert call.words == tuple(words.split())


def test_argument_after_an_option_that_follows_an_argument_is_an_argument():
    assert parse(CONVERT, ["a.csv", "--seed", "3", "out"]).arguments == ("a.csv", "out")
    assert parse(VERIFY, ["--", "-x"]).arguments == ("-x",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--delimitr x", "unknown option --delimitr. Did you mean --delimiter?"),
        (
            "--header frist",
            "argument --header: expected 'first' or 'none', got 'frist'. Did you mean 'first'?",
        ),
        ("--shard-size 1x", "argument --shard-size: expected a size such as 128MB or 1GiB, got '1x'."),
        ("--shard-size 0", "argument --shard-size: expected a size such as 128MB or 1GiB, got '0'."),
        ("--rename a=b --rename a=c", "argument --rename: expected one value for 'a'"),
        ("--seed -1", "argument --seed: expected an integer from 0 to 9223372036854775807, got '-1'."),
        ("--seed", "argument --seed: expected one argument."),
    ],
)
def test_wrong_words_are_refused_in_one_line(words, message):
    with pytest.raises(WrongCall) as caught:
        parse(CONVERT, ["a.csv", "out", *words.split()])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("0.5GB", 500_000_000), ("0.25KiB", 256), ("0.5", 1), ("18446744073709551616", 2**64)],
)
def test_size_may_be_a_fraction_of_its_unit(text, num_bytes):
    assert read(CONVERT, f"a.csv b --shard-size {text}", ConvertOptions).shard_bytes == num_bytes


def test_missing_and_unexpected_arguments_are_named():
    with pytest.raises(WrongCall, match=r"the following arguments are required: DATA"):
        parse(PREDICT, ["run"])
    with pytest.raises(WrongCall, match="unexpected argument 'more'"):
        parse(EXPORT, ["run", "out", "more"])


def test_values_that_do_not_fit_together_name_the_flag():
    with pytest.raises(OptionError, match=r"^--address: expected no value together with"):
        read(CONVERT, "a b --address h:1", ConvertOptions)
    with pytest.raises(
        OptionError, match=r"^--verbose: expected no value together with `quiet=True`, got both"
    ):
        parse(VERIFY, ["a", "-q", "-v"])
    with pytest.raises(
        OptionError, match=r"^--write-model: expected no value together with `model='m.py:f'`"
    ):
        read(TRAIN, "a --model m.py:f --write-model code.py", OwnModel)
    with pytest.raises(OptionError) as caught:
        read(PREDICT, "run a.csv --resume", PredictOptions)
    shown = "--resume: expected no value together with '--engine local', got both. Use '--engine ray'."
    assert to_flags(str(caught.value)) == shown
    for words, start in (
        ("--split a=1 --split-by part", "--split: expected no value together with '--split-by part', got"),
        ("--decimal , --thousands ,", "--thousands: expected another separator than the decimal"),
    ):
        with pytest.raises(OptionError) as caught:
            read(CONVERT, f"a b {words}", ConvertOptions)
        assert to_flags(str(caught.value)).startswith(start)


def test_earlier_flags_are_accepted_with_a_note():
    for words, flag in (("--workers 3 --max-rejects 5", "--threads"), ("--threads 3 --max-skipped 5", "")):
        call = parse(CONVERT, ["a", "b", *words.split()])
        assert call.read(ConvertOptions) == ConvertOptions(num_threads=3, max_skipped=5)
        assert bool(call.notes) == bool(flag)
    assert parse(CONVERT, ["a", "b", "--workers", "3"]).notes == ("--workers is now --threads",)


def test_workers_train_together_and_threads_load():
    call = parse(TRAIN, ["a.csv", "--workers", "2", "--num-threads", "3", "--seed", "4"])
    assert call.read(Workers).num_workers == 2
    assert call.read(TrainOptions) == TrainOptions(num_threads=3, seed=4)
    assert call.read(RawFiles) == RawFiles(seed=4)


def test_settings_of_a_file_give_way_to_flags():
    options = parse(TRAIN, ["a.csv", "--epochs", "3", "--patience", "-1"]).read(
        TrainOptions, epochs=9, seed=4
    )
    assert (options.epochs, options.seed, options.patience) == (3, 4, None)
    assert options.given == {"epochs", "seed", "patience"}


def test_flag_with_an_optional_value_and_its_opposite():
    for words, expected in (
        ("", True),
        ("--shuffle", True),
        ("--shuffle block", "block"),
        ("--no-shuffle", False),
    ):
        assert read(BENCH, f"a {words}", BenchOptions).shuffle == expected


def test_empty_cell_is_always_missing_on_the_command_line():
    assert read(CONVERT, "a b --missing NA --missing -", TextFiles).missing == ("", "NA", "-")


def test_types_and_roles_of_columns():
    words = "a b --image photo,scan --image x --target y --tensor m:8x8:uint8"
    call = parse(CONVERT, words.split())
    assert call.read(ColumnTypes).image == ("photo", "scan", "x")
    assert call.read(ColumnTypes).tensor == ("m:8x8:uint8",)
    assert call.read(Roles).target == ("y",)


@pytest.mark.parametrize("name", COMMANDS)
def test_full_help_has_every_flag_and_the_main_options_exist(name):
    command = COMMANDS[name]
    text = format_help(make_parser(command), command, is_full=True)
    assert all(flag in text for flag in command.list_flags())
    assert set(command.main.split()) <= {*command.list_flags(), "--no-shuffle"}
    assert "(default: " not in "".join(each.text for each in command.list_flags().values())


def test_common_options_are_last_in_the_help(capsys):
    with pytest.raises(SystemExit):
        parse(VERIFY, ["--help"])
    text = capsys.readouterr().out
    assert text.index("reading TFRecords:") < text.index(f"{Common.title}:")


def test_help_imports_nothing_large():
    code = (
        "import sys; from penstock.settings import commands, command_line;"
        "print([name for name in ('numpy', 'yaml', 'pyarrow', 'keras') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
