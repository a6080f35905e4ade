"""Pictures, with matplotlib (``pip install 'jointforest[plot]'``); nothing else in the package needs it."""

from .robustness import accuracy_by_epsilon, epsilon_against_density, extreme_rows

__all__ = ["accuracy_by_epsilon", "epsilon_against_density", "extreme_rows"]
