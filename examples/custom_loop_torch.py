"""A training loop of your own in torch: several inputs by name, accuracy for each epoch.

Run it in any folder: it writes `pets/` and learns from it which pets are adopted.
"""

import numpy as np
import torch

import penstock as ps

WORDS = ("sleeps", "eats", "jumps", "watches", "birds", "all", "day", "often")


def make_pets(count: int) -> dict[str, list]:
    """Return a table: a pet is adopted if two of three speak for it, so that no input is enough alone."""
    random = np.random.default_rng(0)
    is_cat, is_gentle = random.integers(0, 2, (2, count))
    age = random.uniform(0, 15, count)
    notes = [random.choice(WORDS, random.integers(3, 9)) for _ in range(count)]
    return {
        "age": age.tolist(),
        "kind": np.where(is_cat, "cat", "dog").tolist(),
        "note": [" ".join(["gentle"][: is_gentle[i]] + notes[i].tolist()) for i in range(count)],
        "adopted": (is_cat + is_gentle + (age < 7.5) >= 2).tolist(),
    }


class Net(torch.nn.Module):
    """A number, a category and a text; `forward` takes them by name."""

    def __init__(self, num_kinds: int, num_tokens: int) -> None:
        super().__init__()
        self.kinds = torch.nn.Embedding(num_kinds, 4)
        self.words = torch.nn.EmbeddingBag(num_tokens, 8, mode="mean", padding_idx=0)  # 0 is padding
        self.joined = torch.nn.Sequential(
            torch.nn.Linear(1 + 4 + 8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)
        )

    def forward(self, age: torch.Tensor, kind: torch.Tensor, note: torch.Tensor) -> torch.Tensor:
        """Return a logit for each record."""
        return self.joined(torch.cat([age[:, None], self.kinds(kind), self.words(note)], 1))[:, 0]


def find_accuracy(model: Net, batches: torch.utils.data.IterableDataset) -> float:
    """Return how often the model is right, with dropout off."""
    model.eval()
    with torch.no_grad():
        right = [(model(**inputs) > 0) == (targets["adopted"] > 0) for inputs, targets in batches]
    model.train()
    return float(torch.cat(right).float().mean())


def main() -> dict[str, list[float] | float]:
    """Train for some epochs, and see how well it does."""
    torch.manual_seed(0)
    pets = ps.convert(make_pets(2000), "pets", target="adopted", overwrite=True)
    pipeline = ps.Pipeline.fit(pets)
    codes = {name: pipeline.transforms[name].num_codes for name in ("kind", "note")}
    model = Net(codes["kind"], codes["note"])
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    train = pets["train"].loader(pipeline, batch_size=64, shuffle=True, seed=7)
    batches = train.to_torch()  # or DataLoader(train.to_torch(), batch_size=None)
    validation = pets["validation"].loader(pipeline, batch_size=64).to_torch()
    per_epoch = []
    for epoch in range(5):
        num_right = num_seen = 0  # of this epoch alone
        for inputs, targets in batches:  # every iteration is the next epoch, in another order
            labels = targets["adopted"].float()
            logits = model(**inputs)  # by name: an input cannot take another's place
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            num_right += int(((logits > 0) == (labels > 0)).sum())
            num_seen += len(labels)
        per_epoch.append(num_right / num_seen)
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {per_epoch[-1]:.3f}, ", end="")
        print(f"validation {find_accuracy(model, validation):.3f}, state {train.position}")

    found = find_accuracy(model, pets["test"].loader(pipeline, batch_size=64).to_torch())
    print(f"right in {found:.0%} of the test split")
    return {"per_epoch": per_epoch, "accuracy": found}


if __name__ == "__main__":
    main()
