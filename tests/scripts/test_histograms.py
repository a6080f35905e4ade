"""Histograms are the same in Python and in the pages' scripts: edges, ticks, heights, breaks and labels."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from jointforest import cards
from jointforest.data.reading import axis_ticks, number_text
from jointforest.data.schema import Column
from jointforest.explorer.shown import described
from jointforest.inference.histogram import INNER, are_few_cells, even_edges, is_beyond, shown_edges

from .node import run

CELLS = [1, 2, 7, 12, 13, 39, 40, 41, 60, 61, 79, 97, 1_000, 1_441]
STEPS = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 100.0, 86_400.0]


def column(low: float, high: float, step: float) -> Column:
    kind = "continuous" if step == 0.0 else "integer" if step == round(step) else "rounded"
    return Column("x", kind, "float64", minimum=low, maximum=high, step=step)


@pytest.mark.parametrize("step", STEPS)
def test_every_bin_has_as_many_cells(step: float) -> None:
    for cells, bins in itertools.product(CELLS, (20, 24, 40)):
        x = column(-3.0 * step, (cells - 4) * step, step)
        edges = even_edges(x, x.minimum, x.maximum, bins)
        width = np.diff(edges) / step
        assert len(width) <= bins and np.ptp(np.rint(width)) == 0.0 and np.abs(width - np.rint(width)).max() < 1e-6
        counts = np.histogram(x.minimum + step * np.arange(cells), edges)[0]
        assert counts.sum() == cells and len(set(counts[:-1].tolist())) <= 1  # a flat column looks flat


def test_an_outlier_does_not_make_all_others_one_bar() -> None:
    rng = np.random.default_rng(0)
    for step in (0.0, 1.0):
        values = np.append(rng.normal(100.0, 10.0, 5_000), 1e6)
        values = np.round(values) if step else values
        x = column(float(values.min()), float(values.max()), step)
        edges = shown_edges(x, tuple(np.quantile(values, INNER).tolist()), 40)
        assert np.count_nonzero(np.histogram(values, edges)[0]) >= 15
        assert is_beyond(x, edges) == (False, True)
        plain = replace(x, maximum=float(np.sort(values)[-2]))
        edges = shown_edges(plain, tuple(np.quantile(values[:-1], INNER).tolist()), 40)
        assert edges[0] <= plain.minimum and edges[-1] >= plain.maximum and is_beyond(plain, edges) == (False, False)


PICTURE = """(() => data.map((card) => pictureOf([{ ...card, shown: [] }], "", null)))()"""


def test_pictures_of_cards_are_those_of_notebooks() -> None:
    rng = np.random.default_rng(1)
    cases, wanted = [], []
    for low, high, step in [(0.0, 1.0, 1.0), (0.0, 5.0, 1.0), (1.0, 12.0, 1.0), (17.0, 90.0, 1.0), (0.0, 3.7, 0.0)]:
        x = column(low, high, step)
        edges = even_edges(x, low, high, 40)
        for is_spiked in (False, True):
            mass, before = rng.dirichlet(np.full(len(edges) - 1, 5.0), 2)
            if is_spiked:
                mass = 0.3 * mass
                mass[len(mass) // 3] += 0.7
            page = described(x, edges)
            about = {"mean": None, "low": None, "high": None}
            cases.append({"column": page, "now": {"mass": mass.tolist()} | about, "before": {"mass": before.tolist()}})
            labels = are_few_cells(x, edges)
            wanted.append(cards.histogram_svg("x", mass, before, axis_ticks(x, edges[0], edges[-1]), None, None, None,
                                        (False, False), labels))  # fmt: skip
    for case, page, card in zip(cases, run("picture.js", PICTURE, cases), wanted, strict=True):
        shares = [re.findall(r">([\d.<>]+%)<", picture) for picture in (page, card)]
        assert shares[0] == shares[1], case["column"]
        heights = [tops(picture, colour) for picture, colour in ((page, "#2a8f86"), (card, "#2a8f86"))]
        assert len(heights[0]) == len(heights[1])
        np.testing.assert_allclose(heights[0], heights[1], atol=0.01)
        ticks = [re.findall(r">([\d.,−]+)<", picture) for picture in (page, card)]
        assert len(case["column"]["edges"]) > 7 or ticks[0] == ticks[1]


def tops(picture: str, colour: str) -> list[float]:
    """Heights of the bars of a colour as shares of the tallest that is not broken."""
    path = next(d for d, fill in re.findall(r'<path d="([^"]*)" fill="([^"]*)"', picture) if fill == colour)
    base = float(re.findall(r"M[\d.]+ ([\d.]+)V", path)[0])
    found = np.array([base - float(y) for y in re.findall(rf"M[\d.]+ {base:g}V([\d.]+)H", path)])
    return (found / found.max()).tolist()


def test_ticks_of_few_cells_are_their_values() -> None:
    for n in range(1, 7):
        x = column(0.0, n - 1.0, 1.0)
        edges = even_edges(x, 0.0, n - 1.0, 40)
        words = [words for _, words in axis_ticks(x, float(edges[0]), float(edges[-1]))]
        assert words == [str(k) for k in range(n)]
        assert run("scale.js", "ticks(data)", described(x, edges)) == list(range(n))
    assert number_text(column(0.0, 1.0, 1.0), 1.0, -0.5, 1.5) == "1"
