"""Batches for plain NumPy: a regression that is stopped in the middle of an epoch, and resumed.

Run it in any folder: it writes `pets/` and learns from it which pets are adopted.
"""

import json

import numpy as np

import penstock as ps


def learn(loader: ps.Loader, slopes: np.ndarray, num_batches: int) -> np.ndarray:
    """Take some steps of logistic regression."""
    for _, (inputs, targets) in zip(range(num_batches), loader, strict=False):
        error = 1 / (1 + np.exp(-inputs["numbers"] @ slopes)) - targets["adopted"]
        slopes = slopes - 0.5 * error @ inputs["numbers"] / len(error)
    return slopes


def main() -> None:
    """Learn in one go, and in two, and see that the outcome is the same."""
    age, weight = np.arange(2000) % 15, np.arange(2000) % 7 + 0.5
    table = {"age": age, "weight": weight, "adopted": age < weight + 3}
    pets = ps.convert(table, "pets", target="adopted", overwrite=True)
    pipeline = ps.Pipeline.fit(pets).group("numbers", ["age", "weight"])  # one array of two columns

    loader = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    slopes = learn(loader, np.zeros(2), num_batches=10)
    state = json.dumps(loader.state_dict())  # a few integers: after the tenth batch

    again = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    again.load_state_dict(json.loads(state))
    slopes = learn(again, slopes, num_batches=10)
    at_once = learn(pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7), np.zeros(2), 20)
    print(slopes, "the same" if np.array_equal(slopes, at_once) else "something else")


if __name__ == "__main__":
    main()
