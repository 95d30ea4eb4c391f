"""Fits one data set without Penstock: the table by NumPy, the texts by Keras `TextVectorization`.

In: the name of a data set on the command line. Out: `fitted.json` next to it, with the digests of each shard.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets import NUM_SHARDS, DatasetSpec, list_datasets
from fitted import NUM_IDS, NUM_TOKENS, Digest, Fitted, keep_fitted
from values import Values, make_columns

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def fit_table(spec: DatasetSpec) -> Fitted:
    """Count the strings, frequent ones first and ties by value; take mean and variance of the numbers."""
    shards = [make_columns(spec, shard) for shard in range(NUM_SHARDS)]
    vocabularies, means, variances = {}, {}, {}
    for field in spec.fields:
        values = [value for shard in shards for value in shard[field.name]]
        if field.kind == "bytes":
            counts = Counter(values)
            words = sorted(counts, key=lambda word: (-counts[word], word))
            vocabularies[field.name] = [word.decode() for word in words]
        elif field.name != "label":
            numbers = np.asarray(values, np.float64)
            means[field.name], variances[field.name] = float(numbers.mean()), float(numbers.var())
    digests = [_digest_table(shard, vocabularies, means, variances) for shard in shards]
    return Fitted(vocabularies, means, variances, digests)


def _digest_table(
    columns: dict[str, Values],
    vocabularies: dict[str, list[str]],
    means: dict[str, float],
    variances: dict[str, float],
) -> Digest:
    coded = []
    for name, words in vocabularies.items():
        # 0 is for strings that are not in the vocabulary.
        codes = {word.encode(): code for code, word in enumerate(words, start=1)}
        coded.append([codes[word] for word in columns[name]])
    numbers = {
        name: (np.asarray(columns[name], np.float64) - mean) / np.sqrt(variances[name])
        for name, mean in means.items()
    }
    digest = Digest()
    digest.add(np.array(coded).T, numbers, np.asarray(columns["label"]))
    return digest


def fit_texts(spec: DatasetSpec) -> Fitted:
    """Adapt the layer, and let it make the ids of all texts."""
    import keras  # noqa: PLC0415 - heavy, and the table needs none of it

    shards = [make_columns(spec, shard) for shard in range(NUM_SHARDS)]
    layer = keras.layers.TextVectorization(max_tokens=NUM_TOKENS, output_sequence_length=NUM_IDS)
    layer.adapt(np.array([text.decode() for shard in shards for text in shard["text"]]), batch_size=1024)
    digests = []
    for shard in shards:
        ids: NDArray[Any] = np.asarray(layer(np.array([text.decode() for text in shard["text"]])))
        digest = Digest()
        digest.add(ids, {}, np.asarray(shard["label"]))
        digests.append(digest)
    # Without the entries for padding and unknown words, which every layer adds by itself.
    vocabulary = layer.get_vocabulary(include_special_tokens=False)
    return Fitted({"text": [str(word) for word in vocabulary]}, {}, {}, digests)


def main() -> None:
    """Fit one data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["T", "R"])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    spec = list_datasets(arguments.quick)[arguments.name]
    keep_fitted(spec, fit_table(spec) if spec.name == "T" else fit_texts(spec))


if __name__ == "__main__":
    main()
