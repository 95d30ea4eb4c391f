"""No image is augmented unless requested; notes describe random changes in training."""

import numpy as np
import pytest

import penstock as ps
from image_datasets import open_photos, photo, write_photos
from penstock.transform import Augment, Image


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return open_photos(write_photos(tmp_path_factory.mktemp("photos"), [photo(i) for i in range(6)]))


def load_epochs(photos, pipeline):
    loader = photos.loader(pipeline, batch_size=6)
    return [inputs["image"].tobytes() for _ in range(2) for inputs, _ in loader]


@pytest.mark.parametrize("given", [{}, {"image": {"size": [8, 8]}}, {"image": "image"}, {"image": Image(8)}])
def test_image_is_not_augmented_unless_asked_for(photos, given):
    pipeline = ps.Pipeline.fit(photos, **given)
    assert not pipeline.assembly.augments
    assert pipeline.notes == {}
    first, second = load_epochs(photos, pipeline)
    assert first == second


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"augment": {"flip": 0.5}}, "augment=Augment(flip=0.5)"),
        ({"augment": True}, repr(Augment.usual())),
        ({"resize": "random", "augment": {"area": (0.2, 1.0)}}, "resize='random'"),
    ],
)
def test_notes_have_the_augmentation_that_was_asked_for_and_the_log_has_not(photos, options, note, caplog):
    pipeline = ps.Pipeline.fit(photos, image={"size": 16, **options})
    assert pipeline.notes["image"].endswith(note)
    assert pipeline.warnings == ()
    assert caplog.messages == []
    assert note in str(pipeline) or "…" in str(pipeline)
    first, second = load_epochs(photos, pipeline)
    assert first != second


def test_pipeline_that_is_loaded_keeps_its_augmentation_and_has_the_note(photos, tmp_path):
    pipeline = ps.Pipeline.fit(photos, image=Image(16, augment=Augment.light()))  # as earlier versions did
    pipeline.save(tmp_path / "pipeline.json")
    loaded = ps.Pipeline.load(tmp_path / "pipeline.json")
    assert loaded.assembly.augments
    assert loaded.notes == pipeline.notes
    assert np.unique([*load_epochs(photos, loaded), *load_epochs(photos, pipeline)]).size == 2
