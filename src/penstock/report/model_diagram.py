"""A Keras model as blocks and ranks, for a diagram.

In: a model. Out: one dict, JSON-able. Layers that depend on the same inputs and lead to the same outputs form
a block; the rank of a block is its distance from the inputs. A model without a graph is a list of layers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from penstock.training.left_out import LeftOutPart

MOST_LAYERS: Final = 2000
"""Models with more layers are listed by their layers alone, shortened."""

_MOST_LISTED: Final = 60
_MOST_NAMED: Final = 6
_GROUP: Final = 3  # layers of one type in a row are listed as one line


def describe_model(model: Any, left_out: Iterable[LeftOutPart] = ()) -> dict[str, Any]:
    """Return number of parameters, inputs, outputs, and the blocks of a model by rank.

    `left_out`: parts of the inputs that the model does not read: blocks without arrows.
    """
    layers = list(getattr(model, "layers", []))
    found: dict[str, Any] = {
        "name": str(getattr(model, "name", type(model).__name__)),
        "parameters": _count(model),
        "trainable": _count(model, "trainable_weights"),
        "num_layers": len(layers),
        "ranks": [],
        "layers": [],
    }
    graph = _read_graph(model) if len(layers) <= MOST_LAYERS else None
    if graph is None:
        found["layers"] = [_describe_layer(each) for each in layers[:_MOST_LISTED]]
        return found
    found["ranks"] = _rank_blocks(graph)
    number = sum(map(len, found["ranks"]))
    for at, part in enumerate(left_out, start=number + 1):
        found["ranks"][0].append(_describe_unread(at, part))
    return found


def _describe_unread(number: int, part: LeftOutPart) -> dict[str, Any]:
    return {
        "number": number,
        "title": f"{_list_names(part.fields)}: not read",
        "kind": "unread",
        "inputs": list(part.fields),
        "layers": [],
        "parameters": 0,
        "sources": [],
        "from": [],
        "reason": part.reason,
    }


def _count(owner: Any, kind: str = "weights") -> int:
    """Return the number of parameters, counting shared weights once."""
    weights = {id(each): each for each in getattr(owner, kind, [])}
    return sum(math.prod(map(int, each.shape)) for each in weights.values())


class _Graph:
    """Layers of a functional model, with the layers that each one reads.

    Attributes:
        layers: Layers by number, in the order of the model.
        sources: Numbers of the layers that each layer reads.
        inputs: Numbers of the input layers, with the names of the inputs.
        outputs: Numbers of the layers that make outputs, with the names of the outputs.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = layers
        self.sources: dict[int, set[int]] = {number: set() for number in range(len(layers))}
        self.inputs: dict[int, str] = {}
        self.outputs: dict[int, str] = {}

    def reach(self, start: Mapping[int, str], *, forward: bool) -> list[frozenset[str]]:
        """Return the names of the starting layers from which each layer is reached."""
        steps: dict[int, set[int]] = {number: set() for number in self.sources}
        for number, sources in self.sources.items():
            for source in sources:
                steps[source if forward else number].add(number if forward else source)
        found: list[set[str]] = [set() for _ in self.layers]
        for number, name in start.items():
            ahead = [number]
            while ahead:
                current = ahead.pop()
                if name not in found[current]:
                    found[current].add(name)
                    ahead += steps[current]
        return [frozenset(each) for each in found]


def _read_graph(model: Any) -> _Graph | None:
    """Return the graph of a functional model; None for any other model."""
    model = getattr(model, "_functional", None) or model  # of a sequential model
    # Operations are layers, and functions of `keras.ops` between them.
    layers = list(getattr(model, "operations", None) or getattr(model, "layers", []))
    tensors = getattr(model, "inputs", None), getattr(model, "outputs", None)
    if not layers or not all(tensors) or not all(hasattr(each, "_inbound_nodes") for each in layers):
        return None
    numbers = {id(layer): number for number, layer in enumerate(layers)}
    graph = _Graph(layers)
    own = {id(node) for nodes in getattr(model, "_nodes_by_depth", {}).values() for node in nodes}
    for number, layer in enumerate(layers):
        for node in layer._inbound_nodes:
            if own and id(node) not in own:
                continue  # a call outside of this model
            for tensor in node.input_tensors:
                source = numbers.get(id(tensor._keras_history[0]))
                if source is not None and source != number:
                    graph.sources[number].add(source)
    for tensor, names in zip(tensors, (graph.inputs, graph.outputs), strict=True):
        for each in tensor or ():
            layer = each._keras_history[0]
            if id(layer) not in numbers:
                return None
            names[numbers[id(layer)]] = str(getattr(each, "name", layer.name))
    graph.inputs = {number: str(layers[number].name) for number in graph.inputs}
    named = getattr(model, "output_names", None)
    if named is not None and len(named) == len(graph.outputs):
        graph.outputs = dict(zip(graph.outputs, map(str, named), strict=True))
    return graph


def _rank_blocks(graph: _Graph) -> list[list[dict[str, Any]]]:
    """Return the blocks of a graph by rank, from inputs to outputs."""
    from_inputs = graph.reach(graph.inputs, forward=True)
    to_outputs = graph.reach(graph.outputs, forward=False)
    keys = [
        (from_inputs[number], to_outputs[number], graph.outputs.get(number))
        for number in range(len(graph.layers))
    ]
    keys = _join_inputs(graph, keys)
    members: dict[Any, list[int]] = {}
    for number, key in enumerate(keys):
        members.setdefault(key, []).append(number)
    sources = {
        key: {keys[source] for number in numbers for source in graph.sources[number]} - {key}
        for key, numbers in members.items()
    }
    ranks = _find_ranks(sources)
    titles = {key: _name_block(key, graph, numbers) for key, numbers in members.items()}
    found: list[list[dict[str, Any]]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    order = {key: at for at, key in enumerate(sorted(members, key=lambda key: ranks[key]), start=1)}
    for key, numbers in members.items():
        inner = [number for number in numbers if number not in graph.inputs]
        named = [each for number in inner if hasattr(each := graph.layers[number], "weights")]
        found[ranks[key]].append(
            {
                "number": order[key],
                "title": titles[key],
                "kind": "output"
                if key[2] is not None
                else "input"
                if len(inner) < len(numbers)
                else "layers",
                "inputs": sorted(graph.inputs[number] for number in numbers if number in graph.inputs),
                "layers": _list_layers(named),
                "parameters": sum(map(_count, named)),
                "sources": sorted(order[each] for each in sources[key]),
                "from": [titles[each] for each in sorted(sources[key], key=order.__getitem__)],
            }
        )
    return found


def _join_inputs(graph: _Graph, keys: list[Any]) -> list[Any]:
    """Return the blocks of layers, where an input without separate layers joins the block that reads it.

    A table of fifty numbers would otherwise be fifty empty blocks.
    """
    readers: dict[int, set[Any]] = {number: set() for number in graph.inputs}
    for number, sources in graph.sources.items():
        for source in sources & readers.keys():
            readers[source].add(keys[number])
    joined, sizes = list(keys), Counter(keys)
    for number, found in readers.items():
        if sizes[keys[number]] == 1 and len(found) == 1:
            joined[number] = next(iter(found))
    return joined


def _find_ranks(sources: Mapping[Any, Iterable[Any]]) -> dict[Any, int]:
    """Return the length of the longest way to each block; blocks that read each other get the same rank."""
    ranks = dict.fromkeys(sources, 0)
    for _ in range(len(ranks)):
        is_stable = True
        for key, each in sources.items():
            rank = max((ranks[source] + 1 for source in each), default=0)
            if rank > ranks[key] and rank < len(ranks):
                ranks[key], is_stable = rank, False
        if is_stable:
            break
    used = {rank: place for place, rank in enumerate(sorted(set(ranks.values())))}
    return {key: used[rank] for key, rank in ranks.items()}


def _name_block(key: Any, graph: _Graph, numbers: Sequence[int]) -> str:
    inputs, _, output = key
    if output is not None:
        return str(output)
    if len(inputs) == len(graph.inputs) > 1:
        return "all inputs"
    return _list_names(sorted(inputs)) or str(graph.layers[numbers[0]].name)


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _list_layers(layers: Sequence[Any]) -> list[str]:
    """Return one line per layer; layers of one type in a row are one line."""
    lines: list[str] = []
    at = 0
    while at < len(layers):
        kind, stop = type(layers[at]).__name__, at
        while stop < len(layers) and type(layers[stop]).__name__ == kind:
            stop += 1
        if stop - at >= _GROUP:
            lines.append(f"{stop - at} × {kind}")
        else:
            lines += [_describe_layer(each) for each in layers[at:stop]]
        at = stop
    return [*lines[:_MOST_LISTED], "…"] if len(lines) > _MOST_LISTED else lines


def _describe_layer(layer: Any) -> str:
    """Return type and size of a layer, such as `Dense 64, relu`."""
    text = type(layer).__name__
    for name in ("units", "filters", "output_dim", "rate"):
        value = getattr(layer, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            text += f" {value:g}"
            break
    activation = getattr(getattr(layer, "activation", None), "__name__", None)
    return f"{text}, {activation}" if activation not in (None, "linear") else text
