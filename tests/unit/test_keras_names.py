"""A contract with Keras: each private name that Penstock uses exists, and is what it is used as.

When a version of Keras breaks a test here, the module in which the name is used has to follow, and the upper
bound of Keras in pyproject.toml stays until it does.
"""

import ast
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import penstock

keras = pytest.importorskip("keras")

SOURCE = Path(penstock.__file__).parent


def make_graph():
    """Return a functional model, its input and its output: an embedding, then a dense layer."""
    codes = keras.Input((), name="kind", dtype="int32")
    rows = keras.layers.Embedding(3, 2, name="rows")(codes)
    answer = keras.layers.Dense(1, name="answer")(rows)
    return keras.Model({"kind": codes}, answer), codes, answer


def parameters_of(function):
    return list(inspect.signature(function).parameters)


def check_global_state(module):
    module.set_global_attribute("penstock_contract", 7)
    assert module.get_global_attribute("penstock_contract") == 7
    module.set_global_attribute("penstock_contract", None)
    assert module.get_global_attribute("penstock_contract") is None


def check_global_seed_generator(generate):
    state = np.asarray(generate().state.__array__())
    assert state.shape == (2,)
    assert state.dtype.kind in "iu"  # which of them, the backend decides
    generate().state.assign(state)


def check_generator_name(name):
    """The global generator is kept in the global state by this name."""
    generator = import_module("keras.src.random.seed_generator").global_seed_generator()
    held = import_module("keras.src.backend.common.global_state").get_global_attribute(name)
    assert held is generator


def check_seed_name(name):
    """The global seed is kept in the global state by this name."""
    state = import_module("keras.src.backend.common.global_state")
    before = state.get_global_attribute(name)
    state.set_global_attribute(name, 20)
    try:
        assert import_module("keras.src.utils.rng_utils").get_random_seed() == 20
    finally:
        state.set_global_attribute(name, before)


def check_functional(kind):
    model, _, _ = make_graph()
    assert isinstance(model, kind)
    assert issubclass(kind, keras.Model)
    assert not isinstance(keras.Sequential(), kind)


def check_data_adapter(kind):
    """Keras takes a `DataAdapter` as it is, and asks it for these alone."""
    asked = {name for name, each in vars(kind).items() if not name.startswith("_")}
    assert asked == {
        "batch_size",
        "get_jax_iterator",
        "get_numpy_iterator",
        "get_tf_dataset",
        "get_torch_dataloader",
        "has_partial_batch",
        "num_batches",
        "on_epoch_begin",
        "on_epoch_end",
        "partial_batch_size",
    }
    made = import_module("keras.src.trainers.data_adapters").get_data_adapter
    adapter = kind()
    assert made(adapter) is adapter


def check_adapter_module(module):
    assert len(parameters_of(module.get_torch_dataloader)) == 1


def check_epoch_iterator(kind):
    """Its constructor holds what `fit` was given, by these names, while it asks a feed for `num_batches`."""
    given = parameters_of(kind.__init__)
    assert {"x", "y", "sample_weight", "class_weight"} <= set(given)
    assert {"batch_size", "validation_batch_size", "shuffle"} <= set(parameters_of(keras.Model.fit))
    assert {"x", "batch_size"} <= set(parameters_of(keras.Model.evaluate))
    assert {"x", "batch_size"} <= set(parameters_of(keras.Model.predict))


def check_jax_distribution(module):
    """Batches of several devices are placed by this function, which the trainer looks up in its module."""
    assert parameters_of(module.distribute_data_input) == ["per_process_batch", "layout", "batch_dim_name"]
    trainer = inspect.getsource(import_module("keras.src.backend.jax.trainer")._distribute_data)
    assert "jax_distribution_lib.distribute_data_input" in trainer
    assert "batch_dim_name=" in trainer


# By name imported from `keras.src`: what it must be.
IMPORTS = {
    "keras.src.backend.common.global_state": check_global_state,
    "keras.src.backend.jax.distribution_lib": check_jax_distribution,
    "keras.src.models.functional.Functional": check_functional,
    "keras.src.random.seed_generator.GLOBAL_SEED_GENERATOR": check_generator_name,
    "keras.src.random.seed_generator.global_seed_generator": check_global_seed_generator,
    "keras.src.trainers.data_adapters.data_adapter.DataAdapter": check_data_adapter,
    "keras.src.trainers.data_adapters.data_adapter_utils": check_adapter_module,
    "keras.src.trainers.epoch_iterator.EpochIterator": check_epoch_iterator,
    "keras.src.utils.rng_utils.GLOBAL_RANDOM_SEED": check_seed_name,
}


@pytest.mark.parametrize("name", IMPORTS)
def test_name_imported_from_keras_src_has_the_expected_kind(name):
    try:
        value = import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        value = getattr(import_module(module), attribute, None)
    assert value is not None, f"Keras {keras.__version__} has no {name}: see who imports it in src/"
    IMPORTS[name](value)


def check_keras_history():
    """A symbol knows the operation, the node and the index that it comes from."""
    model, _, answer = make_graph()
    operation, node, index = answer._keras_history
    assert (operation.name, node, index) == ("answer", 0, 0)
    assert operation is model.get_layer("answer")


def check_inbound_nodes():
    """An operation has a node for each call, which has the symbols that went in."""
    model, codes, _ = make_graph()
    (node,) = model.get_layer("rows")._inbound_nodes
    assert node.input_tensors[0] is codes


def check_nodes_by_depth():
    """A functional model has the nodes of its graph by depth; inputs are the deepest."""
    model, codes, answer = make_graph()
    depths = sorted(model._nodes_by_depth, reverse=True)
    nodes = [node for depth in depths for node in model._nodes_by_depth[depth]]
    assert [node.is_input for node in nodes] == [True, False, False]
    assert [node.operation.name for node in nodes] == ["kind", "rows", "answer"]
    assert nodes[1].input_tensors[0] is codes
    assert nodes[2].output_tensors[0] is answer
    assert nodes[2].arguments.fill_in({id(nodes[2].input_tensors[0]): 7}) == ((7,), {})


def check_functional_of_sequential():
    """A sequential model with an input has a functional model that computes the same."""
    model = keras.Sequential([keras.Input((2,), name="a"), keras.layers.Dense(1)])
    assert isinstance(model._functional, keras.Model)
    assert [each.name for each in model._functional.inputs] == ["a"]
    assert model._functional.outputs[0] is model.outputs[0]


def check_training_argument():
    """A layer says whether its `call` has the argument `training`."""
    assert keras.layers.Dropout(0.5)._call_has_training_arg
    assert not keras.layers.Flatten()._call_has_training_arg


def check_keras_mask():
    """A symbol has the mask that a layer made for it; others have none."""
    codes = keras.Input((3,), dtype="int32")
    assert keras.layers.Embedding(3, 2, mask_zero=True)(codes)._keras_mask is not None
    assert getattr(keras.layers.Embedding(3, 2)(codes), "_keras_mask", None) is None


def check_symbolic_build():
    """A model makes all its variables by one batch, without training on it."""
    model, _, _ = make_graph()
    model.compile("adam", "mse", metrics=["mae"])
    before = [np.asarray(each.__array__()) for each in model.weights]
    model._symbolic_build(data_batch=({"kind": np.zeros(2, np.int32)}, np.zeros((2, 1), np.float32)))
    assert model.metrics_variables
    for old, new in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(old, new.__array__())


def check_set_monitor_op():
    """Callbacks that watch a metric find out by this whether more of it is better, and hold the answer."""
    model, _, _ = make_graph()
    model.compile("adam", "mse", metrics=["mae"])
    for kind in (keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau):
        callback = kind(monitor="loss")
        callback.set_model(model)
        assert callback.monitor_op is None
        callback._set_monitor_op()
        assert callback.monitor_op(1.0, 2.0)


def check_moving_average():
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    variable = keras.Variable([1.0, 2.0])
    optimizer.build([variable])
    assert optimizer._trainable_variables == [variable]
    (average,) = optimizer._model_variables_moving_average
    assert average.shape == variable.shape


def check_model_of_callback():
    """A callback holds its model in this attribute, which is no state of the callback."""
    model, _, _ = make_graph()
    callback = keras.callbacks.Callback()
    callback.set_model(model)
    assert vars(callback)["_model"] is model
    assert set(vars(callback)) <= {"_model", "params", "validation_data"}


def check_tensorflow_context():
    """TensorFlow's context has the global seed, and the generator that is drawn from for operations."""
    tf = pytest.importorskip("tensorflow")
    context = sys.modules["tensorflow.python.eager.context"].context()
    seed, draws = context._seed, getattr(context, "_rng", None)
    try:
        context._set_global_seed(5)
        assert context._seed == 5
        state = context._rng.getstate()
        tf.random.uniform(())
        context._rng.setstate(state)
    finally:
        context._set_global_seed(seed)
        if draws is not None:
            context._rng.setstate(draws.getstate())


def check_variant_tensor():
    """A data set of TensorFlow has a tensor; a subclass makes of it a data set with the same elements."""
    tf = pytest.importorskip("tensorflow")
    numbers = tf.data.Dataset.range(3)

    class Same(tf.data.Dataset):
        element_spec = numbers.element_spec

        def _inputs(self):
            return [numbers]

    assert numbers._variant_tensor.dtype == tf.variant
    assert [int(each) for each in Same(numbers._variant_tensor)] == [0, 1, 2]


# By attribute with a leading underscore, of an object of Keras or TensorFlow: what it must be.
ATTRIBUTES = {
    "_call_has_training_arg": check_training_argument,
    "_functional": check_functional_of_sequential,
    "_inbound_nodes": check_inbound_nodes,
    "_keras_history": check_keras_history,
    "_keras_mask": check_keras_mask,
    "_model": check_model_of_callback,
    "_model_variables_moving_average": check_moving_average,
    "_nodes_by_depth": check_nodes_by_depth,
    "_rng": check_tensorflow_context,
    "_seed": check_tensorflow_context,
    "_set_global_seed": check_tensorflow_context,
    "_set_monitor_op": check_set_monitor_op,
    "_symbolic_build": check_symbolic_build,
    "_trainable_variables": check_moving_average,
    "_variant_tensor": check_variant_tensor,
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_private_attribute_has_the_expected_kind(name):
    try:
        ATTRIBUTES[name]()
    except AttributeError as error:
        pytest.fail(f"Keras {keras.__version__} has no {name}: {error}. See who uses it in src/.")


def test_sequential_without_an_input_has_no_inputs():
    with pytest.raises(AttributeError):
        keras.Sequential([keras.layers.Dense(1)]).inputs  # noqa: B018
    model = keras.Sequential([keras.Input((2,), name="a"), keras.layers.Dense(1)])
    assert [each.name for each in model.inputs] == ["a"]


def list_syntax():
    """Yield the syntax of each module that imports Keras, or handles its objects."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if re.search(r"^\s*(import|from) keras\b", text, re.MULTILINE) or "tensorflow.python" in text:
            yield ast.parse(text)


def test_contract_names_all_that_is_imported_from_keras_src():
    imported = {
        f"{node.module}.{alias.name}"
        for tree in list_syntax()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("keras.src")
        for alias in node.names
    }
    assert imported == set(IMPORTS)


def test_contract_names_all_private_attributes_in_use():
    used = set()
    defined = set()
    for tree in list_syntax():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
                is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                (defined if is_own else used).add(node.attr)
            elif isinstance(node, ast.FunctionDef):
                defined.add(node.name)
            elif isinstance(node, ast.Constant) and re.fullmatch(r"_[a-z]\w*", str(node.value)):
                used.add(node.value)
    private = {name for name in used if name.startswith("_")} - defined
    # Beside these, a function of `sys`, and the ends of names of metrics and layers.
    assert private == {*ATTRIBUTES, "_getframe", "_loss", "_average"}


# Shapes of two operands that Keras adds in another way than NumPy on TensorFlow: without its axes of size 1
# the second one is a vector, as long as axis 1 or the last axis of the first, where Keras adds it as a bias.
TAKEN_FOR_A_BIAS = {
    "records as members": ((4, 4, 1), (4, 1, 1)),
    "records as units": ((3, 2, 3), (3, 1, 1)),
    "records as columns": ((4, 4), (4, 1)),
    "steps as channels": ((1, 3, 3), (1, 3, 1)),
    "a vector along axis 1": ((2, 3, 1), (3,)),
}
ADDED_AS_NUMPY_DOES = {
    "other numbers of records": ((5, 4, 1), (5, 1, 1)),
    "equal shapes": ((4, 4, 1), (4, 4, 1)),
    "operands exchanged": ((4, 1, 1), (4, 4, 1)),
    "a bias of units": ((4, 4, 2), (2,)),
}


def make_operands(shapes):
    return [np.arange(1, 1 + np.prod(shape), dtype="float32").reshape(shape) for shape in shapes]


def is_added_as_numpy_does(shapes):
    first, second = make_operands(shapes)
    given = np.asarray(keras.ops.convert_to_numpy(keras.ops.add(first, second)))
    return given.shape == (first + second).shape and np.array_equal(given, first + second)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends broadcast as NumPy")
def test_addition_that_takes_its_second_operand_for_a_bias():
    """Why built models add operands of equal shapes, and what docs/models.md advises for users' own models.

    A version of Keras that fails this test adds as NumPy does: then the advice in the document and the equal
    shapes in `model/encoder/` are needed only as long as earlier versions are allowed.
    """
    fixed = [case for case, shapes in TAKEN_FOR_A_BIAS.items() if is_added_as_numpy_does(shapes)]
    assert not fixed, f"Keras {keras.__version__} adds as NumPy does: {fixed}"
    wrong = [case for case, shapes in ADDED_AS_NUMPY_DOES.items() if not is_added_as_numpy_does(shapes)]
    assert not wrong, f"Keras {keras.__version__} adds in another way than NumPy: {wrong}"


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="other backends broadcast as NumPy")
def test_addition_is_wrong_in_the_first_compiled_batch_and_right_once_sizes_vary():
    members, word = keras.Input((4, 1)), keras.Input((1, 1))
    batch = make_operands(TAKEN_FOR_A_BIAS["records as members"])
    larger = make_operands(ADDED_AS_NUMPY_DOES["other numbers of records"])
    for batches, expected in (([batch], False), ([larger, batch], True)):
        model = keras.Model([members, word], members + word)  # a new one: nothing is compiled for it yet
        given = [model.predict_on_batch(each) for each in batches]
        assert np.array_equal(given[-1], np.add(*batch)) == expected


def test_upper_bound_of_keras_is_above_the_version_that_the_tests_use():
    text = (SOURCE.parent.parent / "pyproject.toml").read_text()
    low, high = re.search(r'"keras>=([\d.]+),<([\d.]+)"', text).groups()
    constraints = (SOURCE.parent.parent / "constraints.txt").read_text()
    pinned = re.search(r"^keras==(\S+)$", constraints, re.MULTILINE).group(1)

    def number(version):
        return tuple(int(part) for part in version.split("."))

    assert number(low) <= number(pinned) < number(high)
    # The next minor version has not been tested.
    assert number(high) == (number(pinned)[0], number(pinned)[1] + 1)
