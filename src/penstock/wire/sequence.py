"""`tf.train.SequenceExample`: the payload of a record to its context and its feature lists, and back."""

from dataclasses import dataclass, field

from penstock.wire.example import check_first, read_features, write_features
from penstock.wire.feature import Feature, read_feature, write_feature
from penstock.wire.field import Field, Span, WireType, expect_wire_type, read_fields, write_delimited
from penstock.wire.mapping import read_map, write_map

_CONTEXT = 1
_FEATURE_LISTS = 2
_STEP = 1


@dataclass(frozen=True)
class SequenceExample:
    """What a `SequenceExample` holds.

    Attributes:
        context: Features of the whole sequence, by name.
        feature_lists: For each name one feature a step. Lists may differ in length, and steps in kind.
    """

    context: dict[str, Feature] = field(default_factory=dict)
    feature_lists: dict[str, list[Feature]] = field(default_factory=dict)


def read_sequence_example(payload: bytes, *, strict: bool = False) -> SequenceExample:
    """Read a `SequenceExample` by protobuf's rules, with the exceptions and the `strict` of `read_example`.

    Raises:
        WireError: The payload is no `SequenceExample`.
    """
    example = SequenceExample()
    seen: set[int] = set()
    for part in read_fields(Span.whole(payload)):
        if part.number == _CONTEXT:
            name = "SequenceExample.context"
            read_features(part, name, example.context, strict)
        elif part.number == _FEATURE_LISTS:
            name = "SequenceExample.feature_lists"
            _read_feature_lists(part, name, example.feature_lists, strict)
        else:
            continue
        if strict:
            check_first(part, name, seen)
    return example


def write_sequence_example(example: SequenceExample) -> bytes:
    """Return a `SequenceExample`, names in the order given; an empty part gives no bytes."""
    context = write_features(_CONTEXT, example.context)
    if not example.feature_lists:
        return context
    lists = {key: _write_feature_list(steps) for key, steps in example.feature_lists.items()}
    return context + write_delimited(_FEATURE_LISTS, write_map(lists))


def _read_feature_lists(part: Field, name: str, onto: dict[str, list[Feature]], strict: bool) -> None:
    def read_feature_list(message: Span, steps: list[Feature]) -> list[Feature]:
        for step in read_fields(message):
            if step.number == _STEP:
                content = expect_wire_type(step, "FeatureList.feature", WireType.LENGTH_DELIMITED)
                steps.append(read_feature(content, strict=strict))
        return steps

    content = expect_wire_type(part, name, WireType.LENGTH_DELIMITED)
    read_map(content, onto, make_value=list, read_value=read_feature_list, strict=strict)


def _write_feature_list(steps: list[Feature]) -> bytes:
    return b"".join(write_delimited(_STEP, write_feature(step)) for step in steps)
