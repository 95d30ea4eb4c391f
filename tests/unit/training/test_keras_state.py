"""Random state of Python, NumPy, Keras and TensorFlow is the same after a run as before it."""

import random

import numpy as np
import pytest

keras = pytest.importorskip("keras")
from penstock.training.keras_state import restored_random_state, seeded  # noqa: E402


def draw():
    """Return numbers from every source of randomness."""
    found = [random.random(), float(np.random.rand()), float(keras.random.uniform(()))]  # noqa: S311
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # noqa: PLC0415

        found.append(float(tf.random.uniform(())))
    return found


@pytest.mark.parametrize("num_before", [0, 3])
def test_draws_after_a_seeded_block_are_those_without_it(num_before):
    keras.utils.set_random_seed(11)
    wanted = [draw() for _ in range(num_before + 3)][num_before:]
    keras.utils.set_random_seed(11)
    for _ in range(num_before):
        draw()
    with seeded(5):
        draw()
    assert [draw() for _ in range(3)] == wanted


def test_draws_inside_depend_on_the_seed_alone():
    with seeded(5):
        first = draw()
    draw()
    with seeded(5):
        assert draw() == first
    with seeded(6):
        assert draw() != first


def test_seed_of_keras_is_forgotten_where_none_was_set():
    keras.utils.clear_session()
    before = keras.src.utils.rng_utils.get_random_seed()
    with seeded(5):
        assert keras.src.utils.rng_utils.get_random_seed() == 5
    assert keras.src.utils.rng_utils.get_random_seed() == before


def test_state_is_restored_after_an_error():
    keras.utils.set_random_seed(11)
    wanted = draw()
    keras.utils.set_random_seed(11)

    def fail():
        with restored_random_state():
            draw()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert draw() == wanted
