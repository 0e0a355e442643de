"""The study of key characteristics: regression and selection on data with a known answer."""

import random

import numpy as np

import ten_numbers
from ten_numbers import Matrix


def shares(x: Matrix, y: Matrix) -> float:
    half = len(x) // 2
    residuals = y[half:] - ten_numbers.predict(x[:half], y[:half], x[half:])
    return float(1 - (residuals**2).sum() / ((y[half:] - y[half:].mean(axis=0)) ** 2).sum())


def test_regression_explains_what_follows_and_not_noise() -> None:
    chance = np.random.default_rng(3)
    x = chance.normal(size=(200, 6))
    linear = x @ chance.normal(size=(6, 20))
    curved = np.abs(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]
    noise = chance.normal(size=(200, 20))
    assert shares(x, linear) > 0.98
    assert shares(x, curved) > 0.5
    assert shares(x, noise) < 0.05


def test_selection_finds_the_columns_from_which_others_follow() -> None:
    chance = np.random.default_rng(4)
    sources = chance.normal(size=(100, 5)) * 3
    followers = sources @ chance.normal(size=(5, 40)) / 3 + 0.3 * chance.normal(size=(100, 40))
    y = np.hstack([sources, followers])
    chosen = ten_numbers.select_experiments(y, 5)
    assert len(set(chosen)) == 5

    def unexplained(columns: list[int]) -> float:
        centred = y - y.mean(axis=0)
        basis, _ = np.linalg.qr(centred[:, columns])
        return float(((centred - basis @ (basis.T @ centred)) ** 2).sum())

    drawn = [unexplained([*chance.choice(45, 5, replace=False)]) for _ in range(200)]
    # One after the other is not the best set of five, but near the best of 200 random ones.
    assert unexplained(chosen) <= 1.1 * min(drawn)
    # No five columns explain more than the first five principal components.
    assert unexplained(chosen) >= (ten_numbers.components(y, 5) ** 2).sum()


def test_drawn_devices_are_valid_and_follow_from_the_seed() -> None:
    first = [ten_numbers.draw_valid(random.Random(8)) for _ in range(2)]
    assert first[0] == first[1]
    # Seed 14 draws a small device.
    device = ten_numbers.measure(ten_numbers.draw_valid(random.Random(14)))
    assert device is not None
    assert len(device["means"]) > 100
    assert len(ten_numbers.characteristics(device)) == 16
