"""A scene like a photo, of shapes and noise: a striped house, a fence that runs away, a tree and a balloon.

In: nothing. Out: uint8 pixels (720, 960, 3). Siding and fence are finer than a small picture can show, and
nothing is like its mirror image.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.transform import Draws

HEIGHT, WIDTH = 720, 960
_FINER = 2  # drawn so much larger, and averaged: edges are soft, as in photos

Floats = NDArray[np.float64]

down, across = (
    (np.arange(side * _FINER).reshape(shape) + 0.5) / _FINER
    for side, shape in ((HEIGHT, (-1, 1)), (WIDTH, (1, -1)))
)


def draw_scene() -> NDArray[np.uint8]:
    """Draw the scene, from distant to near objects."""
    canvas = _draw_sky()
    _draw_balloon(canvas)
    _draw_hills(canvas)
    _draw_house(canvas)
    _draw_tree(canvas)
    _draw_fence(canvas)
    pixels = canvas.reshape(HEIGHT, _FINER, WIDTH, _FINER, 3).mean(axis=(1, 3))
    pixels += 3 * _draw_noise("grain", 1)[::_FINER, ::_FINER, None]
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def draw_zone_plate(side: int) -> NDArray[np.uint8]:
    """Draw rings that get finer outwards, to two pixels a ring in the middle of each edge."""
    place = np.arange(side) - (side - 1) / 2
    phase = (place[:, None] ** 2 + place[None, :] ** 2) * (np.pi / side)
    grey = np.rint(127.5 + 127.5 * np.cos(phase)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


def _paint(canvas: Floats, where: NDArray[np.bool_], colour: object) -> None:
    """Paint a colour, or one a pixel, where a shape is."""
    whole = np.broadcast_to(where, canvas.shape[:2])
    colours = np.broadcast_to(np.asarray(colour, np.float64), canvas.shape)
    canvas[whole] = colours[whole]


def _draw_noise(purpose: str, step: int) -> Floats:
    """Draw numbers of deviation 1 or less that vary within `step` pixels, linear in between."""
    rows, columns = HEIGHT // step + 2, WIDTH // step + 2
    corners = Draws(seed=5, epoch=0, records=np.arange(rows)).normal(f"{purpose} {step}", (columns,))
    for axis, places in ((0, down.ravel() / step), (1, across.ravel() / step)):
        before = places.astype(np.int64)
        share = (places - before).reshape((-1, 1) if axis == 0 else (1, -1))
        corners = corners.take(before, axis) * (1 - share) + corners.take(before + 1, axis) * share
    return corners


def _draw_texture(purpose: str, *steps: int) -> Floats:
    """Draw noise of several sizes, the coarser the stronger, as in photos."""
    return sum((step / max(steps)) ** 0.5 * _draw_noise(purpose, step) for step in steps)[..., None]


def _draw_sky() -> Floats:
    share = np.clip(down / 420, 0, 1)[..., None]
    sky = np.array([70, 130, 205]) * (1 - share) + np.array([222, 232, 238]) * share + 0 * across[..., None]
    clouds = np.clip(_draw_texture("cloud", 12, 30, 80, 200) - 0.3, 0, 1) * 0.8
    return sky * (1 - clouds) + np.array([250, 250, 252]) * clouds


def _draw_balloon(canvas: Floats) -> None:
    beside = (across - 735) / 84
    above = (down - 130) / np.where(down < 130, 92, 118)
    gores = np.arcsin(np.clip(beside / np.sqrt(np.clip(1 - above**2, 1e-6, 1)), -1, 1))
    is_red = np.floor(gores / np.pi * 9 + 100) % 2 == 0
    colour = np.where(is_red[..., None], [214, 42, 40], [248, 205, 66]) * (0.8 - 0.25 * beside[..., None])
    _paint(canvas, beside**2 + above**2 < 1, colour * 1.15)
    _paint(canvas, (abs(across - 735) < 16) & (abs(down - 268) < 12), [112, 72, 40])
    for rope in (-14, 14):
        _paint(canvas, (abs(across - 735 - rope) < 1) & (abs(down - 251) < 10), [70, 60, 50])


def _draw_hills(canvas: Floats) -> None:
    grass = _draw_texture("grass", 2, 5, 14, 40)
    far = 395 + 30 * np.sin(across / 130) + 14 * np.sin(across / 47 + 1)
    near = 470 + 26 * np.sin(across / 210 + 2.2)
    _paint(canvas, down > far, np.array([110, 142, 128]) + 5 * grass)
    depth = np.clip((down - 450) / 270, 0, 1)[..., None]
    _paint(canvas, down > near, np.array([118, 150, 62]) - 42 * depth + (5 + 14 * depth) * grass)


def _draw_house(canvas: Floats) -> None:
    """Draw walls of boards three and a half pixels high, tiles, windows and a door."""
    rough = _draw_texture("wall", 3, 10, 40)
    boards = 0.5 + 0.5 * np.sign(np.sin(down * (2 * np.pi / 3.5)))[..., None]
    wall = np.array([236, 226, 204]) - boards * np.array([120, 118, 110]) + 3 * rough
    _paint(canvas, (abs(across - 270) < 170) & (down > 330) & (down < 590), wall)
    slope = abs(across - 270) < 195 * (down - 195) / 140
    tiles = 0.5 + 0.5 * np.cos(across * (2 * np.pi / 4.3) + 1.5 * np.floor(down / 9))[..., None]
    roof = np.array([96, 44, 36]) + tiles * [96, 50, 36] + 4 * rough
    _paint(canvas, slope & (down > 195) & (down < 335), roof)
    is_chimney = (abs(across - 375) < 18) & (down > 180) & (down < 268)
    _paint(canvas, is_chimney, np.array([150, 84, 66]) + 6 * rough)
    for middle in (170, 270):
        glass = np.array([64, 88, 112]) + 30 * (down - 390)[..., None] / 40
        _paint(canvas, (abs(across - middle) < 37) & (abs(down - 430) < 48), [246, 244, 238])
        _paint(canvas, (abs(across - middle) < 32) & (abs(down - 430) < 43), glass + 0 * across[..., None])
        _paint(canvas, (abs(across - middle) < 2.5) & (abs(down - 430) < 43), [246, 244, 238])
    _paint(canvas, (abs(across - 375) < 34) & (down > 440) & (down < 590), [30, 92, 104])
    _paint(canvas, (across - 398) ** 2 + (down - 520) ** 2 < 18, [236, 196, 80])


def _draw_tree(canvas: Floats) -> None:
    bark = _draw_texture("bark", 2, 6, 30)
    is_trunk = (abs(across - 640) < 12 + (down - 500) / 40) & (down > 400) & (down < 622)
    _paint(canvas, is_trunk, np.array([84, 62, 44]) + 9 * bark)
    places = Draws(seed=5, epoch=0, records=np.arange(700)).normal("leaf", (4,))
    inner = places[(places[:, 0] ** 2 + places[:, 1] ** 2 < 5) & (abs(places[:, 3]) < 2)]
    for aside, above, light, size in inner.tolist():
        y, x, wide = 365 + 42 * above, 640 + 48 * aside, 10 + 2 * size
        rows, columns = (slice(round(each - 14) * _FINER, round(each + 14) * _FINER) for each in (y, x))
        is_leaf = ((across[:, columns] - x) / wide) ** 2 + ((down[rows] - y) / 7) ** 2 < 1
        colour = np.array([62, 108, 46]) + (14 * light - 13 * above) * np.array([1, 1.1, 0.6])
        _paint(canvas[rows, columns], is_leaf, colour)


def _draw_fence(canvas: Floats) -> None:
    """Draw pickets that run away to the left: eleven pixels apart in front, less than three far off."""
    vanishing = across + 686  # from where it would be a point
    is_picket = np.sin(-(2 * np.pi) * (960 + 686) ** 2 / 11.4 / vanishing) > -0.1
    height, foot = 40 + 0.15 * across, 600 + 0.085 * across
    above = (foot - down) / height
    is_rail = (abs(above - 0.32) < 0.045) | (abs(above - 0.74) < 0.045)
    shade = np.array([250, 248, 242]) - 14 * _draw_texture("paint", 3, 11)
    _paint(canvas, (above > 0) & (above < 1) & (is_picket | is_rail) & (across > 100), shade)
