"""Arrays that a program stored with `tobytes()`: every message names the declaration that reads them."""

import io
import logging

import numpy as np
import pytest

import penstock as ps
from pasted_lines import find_next, run_pasted
from penstock.batch.build import make_loader
from penstock.cli.main import main
from penstock.errors import OptionError
from penstock.settings.loading import LoadOptions
from record_files import example, write_plain

RNG = np.random.default_rng(3)
PIXELS = RNG.random((40, 16, 16)).astype("<f4")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_plain(
        tmp_path / "a.tfrecord", [example(image=each.tobytes(), label=n % 2) for n, each in enumerate(PIXELS)]
    )
    return tmp_path


def test_inspect_proposes_declarations_and_the_next_command_has_the_first(folder, capsys, monkeypatch):
    monkeypatch.setattr("penstock.cli.next_command.can_train", lambda: False)
    monkeypatch.setattr("penstock.cli.next_command.is_installed", lambda *_: True)
    assert main(["inspect", "a.tfrecord", "--target", "label"]) == 0
    out, err = capsys.readouterr()
    assert "field image: 1,024 bytes in each value" in out
    lines = [line.split("  ")[0] for line in out.splitlines() if line.startswith("--tensor ")]
    assert lines[0] == "--tensor image:16x16:float32"
    assert "--tensor image:32x32:uint8" in lines
    assert f"[{PIXELS[0, 0, 0]:.6g}, " in out
    words = find_next(err)
    assert words == ["penstock", "view", "a.tfrecord", "--target", "label", "--tensor", "image:16x16:float32"]
    assert main(["inspect", *words[2:]]) == 0
    assert "16 x 16 float32 (raw)" in capsys.readouterr().out


def write_values(folder, values):
    write_plain(folder / "b.tfrecord", [example(image=each, label=n % 2) for n, each in enumerate(values)])


def test_next_command_declares_no_type_that_the_values_do_not_show(folder, capsys, monkeypatch):
    monkeypatch.setattr("penstock.cli.next_command.can_train", lambda: True)
    write_values(folder, [RNG.bytes(1024) for _ in range(20)])
    assert main(["inspect", "b.tfrecord", "--target", "label"]) == 0
    out, err = capsys.readouterr()
    lines = [line.split("  ")[0] for line in out.splitlines() if line.startswith("--tensor ")]
    assert "the values show no element type" in out
    assert "--tensor image:32x32:uint8" in lines
    assert any(line.endswith(":uint16") for line in lines)
    words = find_next(err)
    assert words[1] in ("view", "verify")
    assert "--tensor" not in words


def test_big_endian_arrays_are_converted_by_the_next_command(folder, capsys):
    write_values(folder, [each.astype(">f4").tobytes() for each in PIXELS])
    assert main(["inspect", "b.tfrecord", "--target", "label"]) == 0
    err = capsys.readouterr().err
    assert "a big-endian program wrote (16 x 16 float32)" in err
    assert "'>f4'" in ps.Pipeline.fit(ps.open("b.tfrecord", target="label")).notes["image"]
    assert run_pasted(err) == 0
    converted = ps.open("b-arrays")
    read = np.concatenate([[row["image"] for row in converted[name]] for name in converted])
    assert sorted(read[:, 0, 0]) == sorted(PIXELS[:, 0, 0])


def test_json_of_inspect_has_the_tensors(folder, capsys):
    assert main(["inspect", "a.tfrecord", "--json"]) == 0
    assert '"tensors": [{"shape": [16, 16], "dtype": "float32"}' in capsys.readouterr().out


def test_fit_and_loader_name_the_declaration_that_works(folder, caplog):
    data = ps.open("a.tfrecord", target="label")
    pipeline = ps.Pipeline.fit(data)
    code = "fields={'image': ps.fields.Tensor((16, 16), 'float32')}"
    assert f"`{code}`" in pipeline.notes["image"]
    assert code in caplog.text
    with pytest.raises(OptionError, match="at least one input") as caught:
        data["all"].loader(pipeline)
    assert code in caught.value.advice
    fields = eval(code.removeprefix("fields="), {"ps": ps})  # noqa: S307 - code that users are given
    declared = ps.open("a.tfrecord", target="label", fields=fields)
    inputs, _ = next(iter(declared["all"].loader(ps.Pipeline.fit(declared), batch_size=4)))
    np.testing.assert_array_equal(inputs["image"], PIXELS[:4])


def test_train_names_the_flag(folder, capsys, caplog):
    pytest.importorskip("keras")
    caplog.set_level(logging.CRITICAL)
    assert main(["train", "a.tfrecord", "--target", "label", "--out", "run"]) == 2
    err = capsys.readouterr().err
    assert "'--tensor image:16x16:float32'" in err
    assert "fields=" not in err


def test_loader_without_inputs_is_an_error_unless_it_is_for_labels(folder):
    data = ps.open("a.tfrecord", target="label")
    pipeline = ps.Pipeline.fit(data, image=None)
    with pytest.raises(OptionError, match="at least one input"):
        data["all"].loader(pipeline)
    with pytest.raises(OptionError, match="at least one input"):
        ps.mix([data["all"]]).loader(pipeline)
    pytest.importorskip("tensorflow")
    with pytest.raises(OptionError, match="at least one input"):
        data["all"].to_tf_graph(pipeline)
    labels = pipeline.assembly.without_inputs()
    assert next(iter(make_loader([data["all"].as_source()], labels, LoadOptions(batch_size=4))))[0] == {}
    labels = ps.open("a.tfrecord", target=["label", "image"])
    with pytest.raises(OptionError, match="at least one input"):
        labels["all"].loader()


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_wrong_element_type_is_noted(tmp_path, capsys, dtype):
    path = tmp_path / "a.tfrecord"
    pixels = PIXELS if dtype == "int32" else RNG.integers(0, 256, (8, 16, 16)).astype("<i8")
    write_plain(path, [example(image=each.tobytes(), label=n % 2) for n, each in enumerate(pixels)])
    shape = "16x16"
    assert main(["inspect", str(path), "--tensor", f"image:{shape}:{dtype}"]) == 0
    assert "note: field 'image': values such as" in capsys.readouterr().err
    data = ps.open(path, target="label", fields={"image": ps.fields.Tensor((16, 16), dtype)})
    assert "hint at another element type" in ps.Pipeline.fit(data).notes["image"]


def test_arrays_of_np_save_are_named_and_the_next_command_converts_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    records = []
    for number, each in enumerate(PIXELS):
        file = io.BytesIO()
        np.save(file, each)
        records.append(example(image=file.getvalue(), label=number % 2))
    write_plain(tmp_path / "a.tfrecord", records)
    assert main(["inspect", "a.tfrecord", "--target", "label"]) == 0
    err = capsys.readouterr().err
    assert "np.save wrote (16 x 16 float32)" in err
    assert "np.load(io.BytesIO" in ps.Pipeline.fit(ps.open("a.tfrecord", target="label")).notes["image"]
    assert run_pasted(err) == 0
    converted = ps.open("a-arrays")
    assert converted.schema["image"].shape == (16, 16)
    assert sum(len(converted[name]) for name in converted) == len(PIXELS)
