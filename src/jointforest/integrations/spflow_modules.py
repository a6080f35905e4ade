"""Modules of SPFlow made of arrays; imported where SPFlow is wanted, for it needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from spflow.exceptions import UnsupportedOperationError
from spflow.modules.leaves import Categorical, Uniform
from spflow.modules.leaves.leaf import LeafModule
from spflow.modules.products import Product
from spflow.modules.sums import Sum


def mixture(inputs: list[Any], log_weight: np.ndarray) -> Sum:
    """The mixture of all channels of the inputs, with these weights."""
    out = Sum(inputs=inputs).double()
    out.log_weights = torch.as_tensor(log_weight, dtype=torch.float64).reshape(1, -1, 1, 1)
    return out


def product(distributions: Sequence[tuple[Any, ...]]) -> Product:
    """The product over columns, one channel a row of their parameters."""
    make: dict[str, Any] = {"categorical": _categorical, "uniform": _uniform, "normal": TruncatedNormal}
    return product_of([make[name](column, *parameters) for column, name, *parameters in distributions])


def product_of(inputs: list[Any]) -> Product:
    """The product of modules of disjoint columns."""
    return Product(inputs=inputs)


def _categorical(column: int, mass: np.ndarray) -> Categorical:
    out = Categorical(scope=column, out_channels=len(mass), K=mass.shape[1]).double()
    with np.errstate(divide="ignore"):
        out.logits = torch.as_tensor(np.log(mass))[None, :, None, :]
    return out


def _uniform(column: int, lo: np.ndarray, hi: np.ndarray) -> Uniform:
    # SPFlow's support has its lower end and lacks the upper, ours the other way round
    ends = (_channels(np.nextafter(x, np.inf)) for x in (lo, hi))
    return Uniform(column, 1, 1, *ends, validate_args=False)  # cells outside have density 0, and raise no error


def _channels(x: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(x, dtype=torch.float64).reshape(1, -1, 1)


class TruncatedNormal(LeafModule):
    """Normals cut to intervals (low, high], one a channel; SPFlow has none of its own.

    Parameters
    ----------
    column : int
    loc, scale, low, high : float64 arrays (channels,)
        Mean and standard deviation before the cut, and where it is.
    """

    def __init__(self, column: int, loc: np.ndarray, scale: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        super().__init__(scope=column, params=[_channels(loc), _channels(scale)])
        for name, value in (("loc", loc), ("scale", scale), ("low", low), ("high", high)):
            self.register_buffer(name, _channels(value))

    def params(self) -> dict[str, torch.Tensor]:
        return {"loc": self.loc, "scale": self.scale, "low": self.low, "high": self.high}

    @property
    def _torch_distribution_class(self) -> Any:
        return _Truncated

    @property
    def _supported_value(self) -> float:
        return 0.0

    def _compute_parameter_estimates(self, data: Any, weights: Any, bias_correction: bool) -> Any:
        raise UnsupportedOperationError("truncated normals that come from jointforest are not learned by SPFlow")

    def _log_likelihood_interval(self, low: torch.Tensor, high: torch.Tensor, cache: Any = None) -> torch.Tensor:
        distribution = self.distribution()
        ends = (x[:, self.scope.query][:, :, None, None] for x in (low, high))
        return distribution.log_mass(*ends)


class _Truncated(torch.distributions.Normal):
    """A normal given that it lies in (low, high]."""

    arg_constraints: dict = {}  # noqa: RUF012  torch reads it so
    support = torch.distributions.constraints.real

    def __init__(self, loc: Any, scale: Any, low: Any, high: Any, validate_args: Any = None) -> None:
        super().__init__(loc, scale, validate_args=validate_args)
        self.low, self.high = low, high
        self.log_norm = _log_interval((low - loc) / scale, (high - loc) / scale)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        inside = (value > self.low) & (value <= self.high)
        return torch.where(inside, super().log_prob(value) - self.log_norm, -torch.inf)

    def log_mass(self, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        """log P(low <= X <= high); NaN: no bound."""
        lo = torch.where(low > self.low, low, self.low)
        hi = torch.where(high < self.high, high, self.high)
        mass = _log_interval((lo - self.loc) / self.scale, (hi - self.loc) / self.scale)
        return torch.where(hi > lo, mass - self.log_norm, -torch.inf)

    def sample(self, sample_shape: Any = ()) -> torch.Tensor:
        ends = (torch.special.ndtr((x - self.loc) / self.scale) for x in (self.low, self.high))
        lo, hi = (x.expand(torch.Size(sample_shape) + self.batch_shape) for x in ends)
        drawn = self.loc + self.scale * torch.special.ndtri(lo + (hi - lo) * torch.rand_like(lo))
        return drawn.clamp(self.low, self.high)

    @property
    def mode(self) -> torch.Tensor:
        return self.loc.clamp(self.low, self.high)


def _log_interval(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """log(Phi(b) - Phi(a)), from the tail in which both are small."""
    flip = a > 0
    a, b = torch.where(flip, -b, a), torch.where(flip, -a, b)
    top = torch.special.log_ndtr(b)
    return top + torch.log1p(-torch.exp(torch.special.log_ndtr(a) - top))
