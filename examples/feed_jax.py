"""Images for JAX: a network of two convolutions, trained by hand.

Run it in any folder: it writes `stripes/` and learns from it which way stripes run.
"""

import io
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

import penstock as ps


def draw_stripes(count: int) -> Iterator[dict]:
    """Yield samples: JPEGs of many sizes, each with stripes that run across or down."""
    random = np.random.default_rng(0)
    for number in range(count):
        height, width, gap = random.integers((40, 40, 5), (90, 90, 10)).tolist()
        dark, light = random.integers(0, 100, 3), random.integers(150, 256, 3)
        is_light = np.arange(max(height, width)) // gap % 2 == 1
        stripes = is_light[:height, None, None] if number % 2 else is_light[None, :width, None]
        pixels = np.broadcast_to(np.where(stripes, light, dark), (height, width, 3))
        content = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(content, "JPEG")
        yield {"picture": content.getvalue(), "stripes": ("down", "across")[number % 2]}


def make_params(key: jax.Array) -> dict[str, jax.Array]:
    """Return weights to begin with."""
    shapes = {"first": (5, 5, 3, 16), "second": (3, 3, 16, 32), "last": (32, 2)}
    keys = dict(zip(shapes, jax.random.split(key, 3), strict=True))
    return {name: jax.nn.initializers.he_normal()(keys[name], shape) for name, shape in shapes.items()}


def apply(params: dict[str, jax.Array], pixels: jax.Array) -> jax.Array:
    """Return logits of uint8 pixels."""
    x = pixels.astype(jnp.float32) / 127.5 - 1
    for name in ("first", "second"):
        dims = ("NHWC", "HWIO", "NHWC")
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, params[name], (2, 2), "SAME", dimension_numbers=dims))
    return x.mean(axis=(1, 2)) @ params["last"]


def find_loss(params: dict[str, jax.Array], inputs: dict, targets: dict) -> jax.Array:
    """Return the cross-entropy of a batch."""
    logs = jax.nn.log_softmax(apply(params, inputs["picture"]))
    return -jnp.take_along_axis(logs, targets["stripes"][:, None], axis=1).mean()


@jax.jit
def step(
    params: dict[str, jax.Array], speeds: dict[str, jax.Array], inputs: dict, targets: dict
) -> tuple[dict[str, jax.Array], dict[str, jax.Array], jax.Array]:
    """Take a step of gradient descent with momentum."""
    loss, slopes = jax.value_and_grad(find_loss)(params, inputs, targets)
    speeds = jax.tree.map(lambda speed, slope: 0.9 * speed + slope, speeds, slopes)
    return jax.tree.map(lambda weight, speed: weight - 0.01 * speed, params, speeds), speeds, loss


@jax.jit
def count_right(params: dict[str, jax.Array], inputs: dict, targets: dict, weights: dict) -> jax.Array:
    """Return the number of right answers, and of all answers, both without padding."""
    is_right = apply(params, inputs["picture"]).argmax(axis=1) == targets["stripes"]
    return jnp.stack([(is_right * weights["stripes"]).sum(), weights["stripes"].sum()])


def main() -> None:
    """Train for some epochs, and see how well it does; both functions are compiled once."""
    data = ps.convert(draw_stripes(600), "stripes", target="stripes", overwrite=True)
    picture = ps.transform.Image(48, resize="pad", augment={"flip": 0.5, "brightness": 0.2})
    pipeline = ps.Pipeline.fit(data, picture=picture)

    params = make_params(jax.random.key(0))
    speeds = jax.tree.map(jnp.zeros_like, params)
    train = data["train"].loader(pipeline, batch_size=32, shuffle=True, seed=7, last="drop")
    batches = train.to_jax(prefetch=2)  # two batches are on their way to the device
    for epoch in range(4):
        for inputs, targets in batches:
            params, speeds, loss = step(params, speeds, inputs, targets)
        print(f"epoch {epoch}: loss {loss:.3f}, state {train.position}")

    tests = data["test"].loader(pipeline, batch_size=32, last="pad")  # the last batch is full, too
    right, count = sum(count_right(params, *batch) for batch in tests.to_jax())
    print(f"right in {right / count:.0%} of {count:.0f} pictures of the test split")


if __name__ == "__main__":
    main()
