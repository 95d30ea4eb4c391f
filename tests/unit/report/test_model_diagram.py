"""Models as blocks: layers of one input, of several and of all, and models without a graph."""

import keras
import pytest
from keras import layers

from penstock.report.model_diagram import describe_model
from penstock.training.left_out import LeftOutPart


def find_block(found, title):
    return next(block for rank in found["ranks"] for block in rank if block["title"] == title)


@pytest.fixture(scope="module")
def found():
    age = keras.Input((1,), name="age")
    size = keras.Input((1,), name="size")
    words = keras.Input((5,), dtype="int32", name="words")
    table = layers.Dense(4, activation="relu", name="table")(layers.Concatenate()([age, size]))
    text = layers.GlobalAveragePooling1D()(layers.Embedding(10, 3)(words))
    both = layers.Dense(8)(layers.Concatenate()([table, keras.ops.tanh(text)]))
    outputs = {"adopted": layers.Dense(1, name="adopted")(both), "price": layers.Dense(2, name="price")(both)}
    return describe_model(keras.Model({"age": age, "size": size, "words": words}, outputs))


def test_layers_are_grouped_by_the_inputs_that_they_depend_on(found):
    text = find_block(found, "words")
    assert (text["layers"], text["parameters"]) == (["Embedding 3", "GlobalAveragePooling1D"], 30)
    table = find_block(found, "age, size")
    assert (table["inputs"], table["layers"]) == (["age", "size"], ["Concatenate", "Dense 4, relu"])
    assert table["parameters"] == 2 * 4 + 4
    assert find_block(found, "all inputs")["from"] == ["words", "age, size"]
    price = find_block(found, "price")
    assert (price["kind"], price["from"], price["parameters"]) == ("output", ["all inputs"], 8 * 2 + 2)


def test_ranks_go_from_inputs_to_outputs(found):
    titles = [{block["title"] for block in rank} for rank in found["ranks"]]
    assert titles == [{"age, size", "words"}, {"all inputs"}, {"adopted", "price"}]
    assert found["parameters"] == found["trainable"] == 30 + 12 + 7 * 8 + 8 + 9 + 18


def test_blocks_name_their_inputs_by_number(found):
    numbers = [[block["number"] for block in rank] for rank in found["ranks"]]
    assert numbers == [[1, 2], [3], [4, 5]]
    assert [[block["sources"] for block in rank] for rank in found["ranks"]] == [
        [[], []],
        [[1, 2]],
        [[3], [3]],
    ]
    titles = {block["number"]: block["title"] for rank in found["ranks"] for block in rank}
    for rank in found["ranks"]:
        for block in rank:
            assert block["from"] == [titles[each] for each in block["sources"]]


def test_model_without_a_graph_is_a_list_of_layers():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, inputs):
            return self.dense(inputs)

    model = Own()
    model(keras.ops.ones((1, 2)))
    found = describe_model(model)
    assert (found["ranks"], found["layers"], found["parameters"]) == ([], ["Dense 3"], 9)


def test_sequential_and_nested_models_have_blocks():
    inner = keras.Sequential([keras.Input((2,), name="x"), layers.Dense(3)])
    assert describe_model(inner)["ranks"]
    x = keras.Input((2,), name="x")
    outer = keras.Model(x, layers.Average(name="mean")([inner(x), layers.Dense(3)(x)]))
    found = describe_model(outer)
    assert found["parameters"] == 18
    assert [block["title"] for block in found["ranks"][-1]] == ["mean"]


def test_part_that_is_left_out_is_a_block_that_no_block_reads():
    given = keras.Input((1,), name="age")
    model = keras.Model(given, layers.Dense(1, name="y")(layers.Dense(2)(given)))
    left_out = [LeftOutPart("text", tuple(f"note{number}" for number in range(8)), "It is noise.")]
    (block,) = [
        each for rank in describe_model(model, left_out)["ranks"] for each in rank if each["kind"] == "unread"
    ]
    assert block["title"] == "note0, note1, note2, note3, note4, note5 and 2 more: not read"
    assert (block["reason"], block["sources"], len(block["inputs"])) == ("It is noise.", [], 8)
    numbers = [each["number"] for rank in describe_model(model, left_out)["ranks"] for each in rank]
    assert len(set(numbers)) == len(numbers)
    assert all(
        block["number"] not in each["sources"] for rank in describe_model(model)["ranks"] for each in rank
    )
