"""The logs of a run for TensorBoard, read back with TensorBoard's own reader."""

import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
pytest.importorskip("tensorboard")

if keras.backend.backend() != "tensorflow":
    pytest.skip("logs need the backend TensorFlow", allow_module_level=True)

import penstock as ps  # noqa: E402


def read_scalars(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    from tensorboard.util.tensor_util import make_ndarray  # noqa: PLC0415

    return {
        name: [(event.step, float(make_ndarray(event.tensor_proto))) for event in events.Tensors(name)]
        for name in events.Tags()["tensors"]
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_logs_have_the_metrics_of_the_history(tmp_path):
    rows = [{"x": n / 60, "y": "yes" if n % 3 else "no"} for n in range(60)]
    data = ps.convert(rows, tmp_path / "data", target="y", split="train=0.7,validation=0.3")
    small = ps.options.ModelOptions(preset="small")
    run = ps.train(
        data, out=tmp_path / "run", epochs=3, batch_size=16, patience=None, verbose=0, model_options=small
    )
    for folder, prefix in (("train", ""), ("validation", "val_")):
        found = read_scalars(tmp_path / "run" / "logs" / folder)
        expected = [(at, row[f"{prefix}loss"]) for at, row in enumerate(run.history)]
        assert [step for step, _ in found["epoch_loss"]] == [step for step, _ in expected]
        assert [value for _, value in found["epoch_loss"]] == pytest.approx(
            [value for _, value in expected], rel=1e-6
        )
