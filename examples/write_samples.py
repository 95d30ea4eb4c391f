"""Samples that a program makes one by one, written with the guarantees of a conversion.

Run it in any folder: it writes `waves/`, which is there when it is complete, and not before.
"""

import numpy as np

import penstock as ps

SCHEMA = ps.Schema(
    {
        "name": ps.fields.Text(role="id"),
        "signal": ps.fields.Sequence("float32"),  # a list of any length
        "spectrum": ps.fields.Tensor((16,), "float64"),  # comes back as float64, of this shape
        "remark": ps.fields.Text(optional=True),
        "kind": ps.fields.Category(values=("saw", "sine"), role="target"),
    }
)


def main() -> None:
    """Write some waves, and read one of them."""
    random = np.random.default_rng(0)
    with ps.Writer("waves", SCHEMA, split="train=0.9,test=0.1", stratify=True, overwrite=True) as writer:
        for number in range(200):
            time = np.linspace(0, 1, random.integers(20, 60))
            kind = "sine" if number % 2 else "saw"
            signal = np.sin(9 * time) if kind == "sine" else (9 * time) % 1
            sample = {
                "name": f"wave-{number}",
                "signal": signal,
                "spectrum": np.abs(np.fft.rfft(signal, 31)),
                "kind": kind,
            }
            if number % 10 == 0:
                sample["remark"] = "recorded outside"  # other samples lack it
            writer.write(sample)
    waves = writer.dataset
    sample = waves["train"][0]
    print(waves)
    print(sample["name"], sample["signal"].shape, sample["spectrum"].dtype, "remark" in sample)


if __name__ == "__main__":
    main()
