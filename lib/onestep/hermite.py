"""Functions of one Gaussian variable: Hermite expansions and Gaussian moments, to near machine precision.

Probabilists' convention throughout: H_0 = 1, H_1 = z, H_2 = z² - 1, with E[H_j H_k] = k! δ_jk under N(0, 1).
Kinks are never integrated across: quadrature splits there, so piecewise-smooth functions keep full accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import exp, sqrt

import numpy as np
from numpy.polynomial import hermite_e, legendre
from scipy import special
from scipy.special import expit

from .checks import floats, frozen, whole

_REACH = 16.0  # standard normal mass beyond: 1e-57, below rounding even against the 200th normalised Hermite function
LONGEST_SERIES = 100  # Hermite coefficients: their Gauss-Hermite rule is still accurate
_STEP = 0.125  # trapezoid rule: error exp(-2π·(width of the analytic strip)/step), below rounding down to strips of 0.7


@dataclass(frozen=True)
class Function:
    """A function of one real variable together with what its Gaussian integrals need.

    f : function of a real array.  derivative : likewise; without it a fourth-order difference is used.
    kinks : points where f or its derivative jumps.  name : label for tables and legends.
    """

    f: Callable
    slope: Callable | None = None
    kinks: tuple[float, ...] = ()
    name: str = ""

    def __init__(self, f, derivative=None, kinks=(), name=""):
        if not callable(f):
            raise ValueError(f"f = {f!r}: must be a function of one real array")
        if derivative is not None and not callable(derivative):
            raise ValueError(f"derivative = {derivative!r}: must be a function of one real array, or None")
        places = floats(kinks)
        if places.ndim != 1 or not np.all(np.isfinite(places)):
            raise ValueError(f"kinks = {kinks!r}: must be a list of finite numbers")
        kinks = tuple(sorted(places.tolist()))
        for argument, of in (("f", f), ("derivative", derivative)):
            if of is not None:
                _probe(f"{argument} = {name or of!r}", of)
        for field, value in (("f", f), ("slope", derivative), ("kinks", kinks), ("name", name)):
            object.__setattr__(self, field, value)

    def __call__(self, z):
        return self.f(z)

    def derivative(self, z):
        """f'(z); at a kink, one of the one-sided derivatives or their mean."""
        if self.slope is not None:
            return self.slope(z)
        h = 1e-4
        return (8 * (self.f(z + h) - self.f(z - h)) - (self.f(z + 2 * h) - self.f(z - 2 * h))) / (12 * h)

    def nodes(self, mu=0.0, s=1.0):
        """Nodes g and weights, (..., M) or (M,) without kinks, of E over g ~ N(0, 1), split where mu + s g kinks."""
        return _rule(self.kinks, mu, s)

    def moments(self, mu=0.0, s=1.0):
        """E f, E g f, E f² and E (g² - 1) f of f = f(mu + s g), g ~ N(0, 1); mu, s broadcast, s >= 0."""
        mu, s = np.broadcast_arrays(np.asarray(mu, float), np.asarray(s, float))
        g, w = self.nodes(mu, s)
        values = self.f(mu[..., None] + s[..., None] * g)
        mean, first, second = (np.vecdot(values, w * part) for part in (np.ones_like(g), g, g**2 - 1))
        return mean, first, np.vecdot(values**2, w), second

    def normalized(self, order, scale=1.0):
        """E f(scale·g) h_k(g), k = 0..order, with h_k = H_k/√k!; shape (*scale.shape, order + 1).

        At scale 1 these are √k! c_k. Accurate to 1e-12 for order <= 200 and scale <= 32.
        """
        whole("order", order, 0)
        scale = np.asarray(scale, float)
        g, w = self.nodes(np.zeros_like(scale), scale)
        weighted = w * self.f(scale[..., None] * g)
        return np.stack([np.vecdot(weighted, h) for h in _hermite_functions(g, order)], axis=-1)

    def coefficients(self, order):
        """c_0..c_order with f = Σ c_k H_k, i.e. c_k = E[f H_k]/k!; shape (order + 1,); exactly 0 if below rounding."""
        scaled = self.normalized(order)
        scaled[np.abs(scaled) < 1e-13 * sqrt(self.second_moment)] = 0.0
        return scaled / np.sqrt(special.factorial(np.arange(order + 1)))

    @cached_property
    def jumps(self):
        """The stated kinks at which f itself jumps, a tuple."""
        beside = [(k, 1e-9 * (1 + abs(k))) for k in self.kinks]
        return tuple(k for k, h in beside if np.ptp(self.f(np.array([k - h, k + h]))) > 1e-6 * sqrt(self.second_moment))

    @cached_property
    def fault(self):
        """Why Gaussian integrals of f cannot be trusted, or its derivative is not f's; empty if nothing was found."""
        if not np.all(np.abs(self.f(np.array([-_REACH, _REACH]))) * exp(-(_REACH**2) / 4) < 1e-9):
            return "it grows too fast for a Gaussian variable"
        found, moved = self._integrals(0.0), self._integrals(0.3)
        if not np.all(np.abs(found - moved) <= 3e-8 * np.array([found[0], sqrt(found[0])])):
            where = "elsewhere than stated" if self.kinks else "that is not stated"
            return f"it has a kink or a jump {where}, or is too steep: give hermite.Function(f, kinks=(...)) for f"
        if self.slope is not None:
            z = np.linspace(-4.0, 4.0, 82)
            z = z[np.all(np.abs(z[:, None] - np.array([*self.kinks, np.inf])) > 1e-2, axis=1)]
            gap = np.abs(self.slope(z) - (self.f(z + 1e-5) - self.f(z - 1e-5)) / 2e-5)
            if gap.max() > 2e-4 * np.abs(self.f(z)).max():
                return f"the stated derivative is not that of f: off by {gap.max():.2g} at z = {z[gap.argmax()]:.2g}"
        return ""

    def _integrals(self, move):
        """E f² and E g f with the nodes moved by a share `move` of their distance: the same unless f is rougher."""
        g, w = _rule((*self.kinks, move) if self.kinks else (), 0.0, 1.0, move)
        values = self.f(g)
        return np.array([w @ values**2, w @ (g * values)])

    @cached_property
    def _first_two(self):
        return self.normalized(1)

    @cached_property
    def second_moment(self):
        """E f(g)²."""
        return float(self.moments()[2])

    @property
    def mean(self):
        """c_0 = E f(g)."""
        return float(self._first_two[0])

    @property
    def linear(self):
        """c_1 = E g f(g)."""
        return float(self._first_two[1])

    @cached_property
    def tail(self):
        """c_{>1}² = Σ_{k>=2} k! c_k² (never negative)."""
        rest = self.second_moment - self.mean**2 - self.linear**2
        return rest if rest > 1e-14 * self.second_moment else 0.0

    @cached_property
    def slope_second_moment(self):
        """E f'(g)²."""
        g, w = self.nodes()
        return float((w * self.derivative(g) ** 2).sum())


def _probe(what, f):
    """ValueError unless f maps a real array to a finite real array of the same shape, and leaves it as it was."""
    z = np.linspace(-9.0, 9.0, 15).reshape(3, 5)
    given = z.copy()
    try:
        probe = f(given)
    except Exception as error:
        raise ValueError(
            f"{what}: must be a function of one numpy array (np.tanh, not math.tanh); called with one "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    array = isinstance(probe, np.ndarray) and probe.shape == z.shape and probe.dtype.kind in "iuf"
    if not array or not np.all(np.isfinite(probe)):
        raise ValueError(f"{what}: must map a real array, of two dimensions too, to a finite one of the same shape")
    if np.any(given != z):
        raise ValueError(f"{what}: must not change the array that it is called with")


class ShiftedReLU(Function):
    """max(z, 0) - 1/√(2π), with closed-form moments."""

    shift = 1 / sqrt(2 * np.pi)

    def __init__(self):
        super().__init__(
            lambda z: np.maximum(z, 0.0) - self.shift, lambda z: (z > 0).astype(float), (0.0,), "shifted ReLU"
        )

    def moments(self, mu=0.0, s=1.0):
        mu, s = np.broadcast_arrays(np.asarray(mu, float), np.asarray(s, float))
        ratio = mu / np.where(s == 0, 1.0, s)
        mass = np.where(s == 0, (mu > 0) * 1.0, special.ndtr(ratio))
        density = np.where(s == 0, 0.0, np.exp(-(ratio**2) / 2) / sqrt(2 * np.pi))
        relu = mu * mass + s * density
        square = (mu**2 + s**2) * mass + mu * s * density
        return relu - self.shift, s * mass, square - 2 * self.shift * relu + self.shift**2, s * density

    def normalized(self, order, scale=1.0):
        whole("order", order, 0)
        ramp = np.zeros(max(order, 2) + 1)  # E max(g, 0) h_k(g) = h_{k-2}(0)/√(2πk(k-1)) for k >= 2
        ramp[:3] = 1 / sqrt(2 * np.pi), 0.5, 1 / sqrt(4 * np.pi)
        for k in range(4, order + 1, 2):
            ramp[k] = -ramp[k - 2] * (k - 3) / sqrt(k * (k - 1))
        out = np.multiply.outer(np.asarray(scale, float), ramp[: order + 1])
        out[..., 0] -= self.shift
        return out


class Polynomial(Function):
    """Σ_k c_k H_k from its coefficients c_0, c_1, …: every expansion and moment is exact."""

    def __init__(self, coefficients, argument="coefficients"):
        c = np.asarray(coefficients, float)
        if c.ndim != 1 or not 1 <= c.size <= LONGEST_SERIES or not np.all(np.isfinite(c)):
            text = repr(coefficients) if c.size <= 20 else f"{c.size} values"
            raise ValueError(f"{argument} = {text}: Hermite coefficients must be 1 to {LONGEST_SERIES} finite numbers")
        label = " + ".join(f"{v:.4g} H{k}" for k, v in enumerate(c) if v) or "0"
        slope = hermite_e.hermeder(c) if c.size > 1 else np.zeros(1)
        super().__init__(lambda z: hermite_e.hermeval(z, c), lambda z: hermite_e.hermeval(z, slope), (), label)
        object.__setattr__(self, "series", c)

    def nodes(self, mu=0.0, s=1.0):
        x, w = hermite_e.hermegauss(2 * self.series.size + 2)
        return x, w / w.sum()

    def normalized(self, order, scale=1.0):
        whole("order", order, 0)
        scale = np.asarray(scale, float)
        top = min(order, self.series.size - 1)
        out = np.zeros((*scale.shape, order + 1))
        if np.all(scale == 1.0):
            out[..., : top + 1] = self.series[: top + 1] * np.sqrt(special.factorial(np.arange(top + 1)))
        else:
            out[..., : top + 1] = super().normalized(top, scale)
        return out


@cache
def gauss_legendre(count):
    """Nodes and weights of the Gauss rule on [-1, 1]; the same arrays at every call."""
    return frozen(*legendre.leggauss(count))


def _rule(kinks, mu, s, move=0.0):
    """The nodes and weights of `Function.nodes`: Gauss-Legendre between kinks, else trapezoid, moved by `move`."""
    if not kinks:
        step = _STEP / min(max(1.0, 2.0 ** np.ceil(np.log2(np.max(s) / 2 + 1e-300))), 16.0)  # f(s g) is as steep as s
        g = np.arange(-_REACH, _REACH + step / 2, step) + move * step
        return g, step * np.exp(-(g**2) / 2) / sqrt(2 * np.pi)
    mu, s = np.broadcast_arrays(np.asarray(mu, float), np.asarray(s, float))
    at = np.stack([(k - mu) / np.where(s == 0, 1.0, s) for k in kinks], axis=-1)
    at = np.sort(np.clip(np.where((s == 0)[..., None], 0.0, at), -_REACH, _REACH), axis=-1)
    ends = np.full((*mu.shape, 1), _REACH)
    edges = np.concatenate([-ends, at, ends], axis=-1)
    x, w = gauss_legendre(32)
    panels = np.linspace(0.0, 1.0, 6)
    u = (panels[:-1, None] + (x + 1) / 2 * np.diff(panels)[:, None]).ravel()
    weight = (w / 2 * np.diff(panels)[:, None]).ravel()
    width = np.diff(edges, axis=-1)[..., None]
    g = (edges[..., :-1, None] + width * u).reshape(*mu.shape, -1)
    return g, (width * weight).reshape(*mu.shape, -1) * np.exp(-(g**2) / 2) / sqrt(2 * np.pi)


def _hermite_functions(g, order):
    """h_k(g), k = 0..order, one after the other; each array is reused for the next but one."""
    before, now = np.zeros_like(g), np.ones_like(g)
    for k in range(order + 1):
        yield now
        before *= -sqrt(k)
        before += g * now
        before /= sqrt(k + 1)
        before, now = now, before


def function(spec, argument="activation"):
    """The `Function` meant by a name, a list of Hermite coefficients c_0, c_1, …, a callable, or a Function."""
    if isinstance(spec, Function):
        return spec
    if isinstance(spec, str):
        if spec not in NAMED:
            raise ValueError(f"{argument} = {spec!r}: unknown name; known are {', '.join(sorted(NAMED))}")
        return NAMED[spec]
    if callable(spec):
        return Function(spec, name=getattr(spec, "__name__", ""))
    if isinstance(spec, Sequence | np.ndarray):
        return Polynomial(spec, argument)
    raise ValueError(f"{argument} = {spec!r}: must be a name, Hermite coefficients, a callable or a hermite.Function")


def exact(f: Function) -> Function:
    """f, as a `Polynomial` of the same name if it is a polynomial of degree 9 or less: then every moment is exact."""
    parts = f.normalized(9)
    if f.kinks or isinstance(f, Polynomial) or not abs(parts @ parts / f.second_moment - 1) < 1e-12:
        return f
    out = Polynomial(np.trim_zeros(f.coefficients(9), "b"))
    object.__setattr__(out, "name", f.name or out.name)
    return out


def centred(f) -> Function:
    """f, whatever `function` takes, less its Gaussian mean c_0, as `Problem` needs it; the name stays."""
    f = function(f)
    mean = f.mean
    return Function(lambda z: f(z) - mean, f.slope, f.kinks, f.name)


def _gelu_slope(z):
    return special.ndtr(z) + z * np.exp(-(z**2) / 2) / sqrt(2 * np.pi)


_TILT = exp(-0.5) / sqrt(2)  # E sin(z + π/4)

# Every function here has Gaussian mean 0: "relu" and "shifted_relu" are both max(z, 0) - 1/√(2π).
NAMED = {
    "shifted_relu": ShiftedReLU(),
    "relu": ShiftedReLU(),
    "gelu": centred(Function(lambda z: z * special.ndtr(z), _gelu_slope, name="gelu")),
    "silu": centred(Function(lambda z: z * expit(z), lambda z: expit(z) * (1 + z * expit(-z)), name="silu")),
    "sigmoid": centred(Function(expit, lambda z: expit(z) * expit(-z), name="sigmoid")),
    "tanh": Function(np.tanh, lambda z: 1 - np.tanh(z) ** 2, name="tanh"),
    "erf": Function(special.erf, lambda z: 2 / sqrt(np.pi) * np.exp(-(z**2)), name="erf"),
    "softplus": centred(Function(lambda z: np.logaddexp(0.0, z), expit, name="softplus")),
    # smooth and bounded with every c_k != 0: |c_k| = 1/(k! √(2e))
    "tilted_sin": Function(lambda z: np.sin(z + np.pi / 4) - _TILT, lambda z: np.cos(z + np.pi / 4), name="tilted sin"),
}
