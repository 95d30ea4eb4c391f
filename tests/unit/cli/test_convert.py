"""What `penstock convert` takes: every flag reaches the option it stands for."""

import pytest

from penstock.cli import convert
from penstock.cli.main import main
from penstock.settings.command_line import parse
from penstock.settings.commands import CONVERT
from penstock.settings.conversion import ConvertOptions
from raising import mentions


def read(monkeypatch, *argv: str) -> ConvertOptions:
    """Return the options that a conversion would get."""
    got = []

    def take(source, out, overrides, options, on_progress):
        got.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(convert, "run_conversion", take)
    with pytest.raises(KeyboardInterrupt):
        convert.run(parse(CONVERT, [*argv, "pets.csv", "pets"]))
    return got[0]


def test_no_flag_leaves_every_default(monkeypatch):
    assert read(monkeypatch) == ConvertOptions()


@pytest.mark.parametrize(
    ("argv", "choice"),
    [
        (("--split", "train=0.9,test=0.1"), {"split": {"train": 0.9, "test": 0.1}}),
        (("--group", "user"), {"group": "user"}),
        (("--stratify", "breed"), {"stratify": "breed"}),
        (("--split-by", "part"), {"split_by": "part"}),
        (("--time", "day"), {"time": "day"}),
        (("--seed", "7"), {"seed": 7}),
        (("--no-shuffle",), {"shuffle": False}),
        (("--shard-size", "256MB"), {"shard_bytes": 256_000_000}),
        (("--shard-size", "1.5k"), {"shard_bytes": 1500}),
        (("--shard-size", "2GiB"), {"shard_bytes": 2 << 30}),
        (("--shard-size", "2GB"), {"shard_bytes": 2_000_000_000}),
        (("--shard-size", "1.5 MiB"), {"shard_bytes": 3 << 19}),
        (("--shard-size", "64Ki"), {"shard_bytes": 65_536}),
        (("--shard-size", "7kib"), {"shard_bytes": 7168}),
        (("--shard-size", "0.3MB"), {"shard_bytes": 300_000}),
        (("--shard-size", "12B"), {"shard_bytes": 12}),
        (("--shard-size", "77"), {"shard_bytes": 77}),
        (("--num-shards", "3"), {"num_shards": 3}),
        (("--compression", "gzip"), {"compression": "gzip"}),
        (("--resize", "256"), {"resize": 256}),
        (("--threads", "2"), {"num_threads": 2}),
        (("--workers", "2"), {"num_threads": 2}),
        (("--engine", "ray", "--address", "head:6379"), {"engine": "ray", "address": "head:6379"}),
        (("--on-error", "collect"), {"on_error": "collect"}),
        (("--max-skipped", "5"), {"max_skipped": 5}),
        (("--max-rejects", "5"), {"max_skipped": 5}),
        (("--overwrite",), {"overwrite": True}),
        (("--resume",), {"resume": True}),
        (("--delimiter", ";"), {"delimiter": ";"}),
        (("--encoding", "latin-1"), {"encoding": "latin-1"}),
        (("--missing", "NA", "--missing", "?"), {"missing": ("", "NA", "?")}),
        (("--short-rows", "fill"), {"short_rows": "fill"}),
    ],
)
def test_flag_reaches_its_option(monkeypatch, argv, choice):
    assert read(monkeypatch, *argv) == ConvertOptions(**choice)


def test_stratify_alone_means_the_target(monkeypatch):
    assert read(monkeypatch, "--stratify", "--seed", "0").stratify is True


@pytest.mark.parametrize(
    ("argv", "facts"),
    [
        (("--shard-size", "x"), "--shard-size 128MB 1GiB 'x'"),
        (("--shard-size", "0"), "--shard-size 128MB 1GiB '0'"),
        (("--shard-size", "9" * 400), "--shard-size 128MB 1GiB"),
        (("--shard-size", "5ib"), "--shard-size 128MB 1GiB '5ib'"),
        (("--compression", "zip"), "--compression 'zip'"),
        (("--on-error", "ignore"), "--on-error 'ignore'"),
        (("--seed", "x"), "--seed 'x'"),
        (("--seed", "-1"), "--seed 0 -1"),
        (("--workers", "0"), "--workers 1 0"),
        (("--delimiter", "ab"), "--delimiter ASCII"),
        (("--tagret", "a"), "--tagret --target"),
        (("--split", "train=2"), "--split 1 train=2"),
        (("--split", "train=0.5"), "--split 1 0.5"),
        (("--split", "train"), "--split train=0.9,test=0.1"),
        (("--time", "a", "--split-by", "b"), "--time --split-by"),
    ],
)
def test_wrong_flag_is_one_line_and_status_2(tmp_path, monkeypatch, capsys, argv, facts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets.csv").write_text("a\n1\n2\n")
    assert main(["convert", "pets.csv", "pets", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert mentions(err, f"penstock {facts}")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["pets.csv"]


def test_help_names_every_option(capsys):
    assert main(["convert", "--help-all"]) == 0
    text = capsys.readouterr().out
    assert mentions(text, "penstock SOURCE OUT")
    flags = (
        "image text category number sequence bytes tensor target weight id drop rename split group stratify"
    )
    flags += " split-by time seed no-shuffle shard-size num-shards compression resize threads on-error engine"
    flags += " address max-skipped overwrite resume delimiter encoding missing short-rows plan plan-file json"
    assert [flag for flag in flags.split() if f"--{flag}" not in text] == []
