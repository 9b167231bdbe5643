"""84 SciPy calls; SCIPY_ARRAY_API=1 must be set before this module is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import (
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    special,
    stats,
)
from scipy.cluster import hierarchy, vq
from scipy.optimize import elementwise
from scipy.spatial.transform import RigidTransform, Rotation

from ecosystem.harness import Calls, integers, normal, positive, uniform

__all__ = ["CALLS", "FAILURES", "FROM_NUMPY", "SYNCS"]


def _line(xp: Any) -> Any:
    return xp.linspace(0.0, 2.0, 21)


def _rotation(xp: Any) -> Rotation:
    return Rotation.from_quat(normal(xp, 6, 4, seed=3))


def _axis_angles(xp: Any) -> Rotation:
    return Rotation.from_rotvec(normal(xp, 6, 3, seed=4))


def _sos(xp: Any) -> Any:
    return xp.asarray(signal.butter(4, 0.2, output="sos"))


def _centers(xp: Any) -> Any:
    return normal(xp, 40, 2)[:4, :]


SPECIAL: Calls = {
    "special.softmax": lambda xp: special.softmax(normal(xp, 4, 5), axis=-1),
    "special.log_softmax": lambda xp: special.log_softmax(normal(xp, 4, 5), axis=-1),
    "special.logsumexp": lambda xp: special.logsumexp(normal(xp, 4, 5), axis=-1),
    "special.xlogy": lambda xp: special.xlogy(positive(xp, 7), positive(xp, 7, seed=1)),
    "special.rel_entr": lambda xp: special.rel_entr(positive(xp, 7), positive(xp, 7, seed=1)),
    "special.entr": lambda xp: special.entr(positive(xp, 7)),
    "special.erf": lambda xp: special.erf(normal(xp, 7)),
    "special.expit": lambda xp: special.expit(normal(xp, 7)),
    "special.gammaln": lambda xp: special.gammaln(positive(xp, 7)),
    "special.betainc": lambda xp: special.betainc(
        positive(xp, 7), positive(xp, 7, seed=1), uniform(xp, 7)
    ),
    "special.stdtrit": lambda xp: special.stdtrit(positive(xp, 7), uniform(xp, 7)),
}


def _ttest(xp: Any) -> Any:
    result = stats.ttest_ind(normal(xp, 30), normal(xp, 40, seed=1) + 0.5)
    return result.statistic, result.pvalue


def _pearsonr(xp: Any) -> Any:
    return stats.pearsonr(normal(xp, 30), normal(xp, 30, seed=1))


def _bootstrap(xp: Any) -> Any:
    result = stats.bootstrap(
        (normal(xp, 30),),
        lambda x, axis: xp.mean(x, axis=axis),
        n_resamples=50,
        method="percentile",
        rng=np.random.default_rng(5),
    )
    return result.confidence_interval.low, result.confidence_interval.high


def _linregress(xp: Any) -> Any:
    x = normal(xp, 30)
    result = stats.linregress(x, 2 * x + normal(xp, 30, seed=1))
    return np.asarray(result.slope), np.asarray(result.pvalue)


def _normal_pdf(xp: Any) -> Any:
    return stats.Normal(mu=xp.asarray([0.0, 1.0]), sigma=xp.asarray([1.0, 2.0])).pdf(
        xp.asarray([0.5, 0.25])
    )


STATS: Calls = {
    "stats.skew": lambda xp: stats.skew(normal(xp, 5, 9), axis=-1),
    "stats.skew(nan_policy=)": lambda xp: stats.skew(
        normal(xp, 5, 9), axis=-1, nan_policy="propagate"
    ),
    "stats.skew(keepdims=)": lambda xp: stats.skew(normal(xp, 5, 9), axis=-1, keepdims=True),
    "stats.kurtosis": lambda xp: stats.kurtosis(normal(xp, 5, 9), axis=-1),
    "stats.describe": lambda xp: tuple(stats.describe(normal(xp, 9, 3))),
    "stats.gmean": lambda xp: stats.gmean(positive(xp, 5, 9), axis=-1),
    "stats.trim_mean": lambda xp: stats.trim_mean(normal(xp, 20), 0.1),
    "stats.tmean": lambda xp: stats.tmean(normal(xp, 20), limits=(-1.0, 1.0)),
    "stats.zscore": lambda xp: stats.zscore(normal(xp, 20, 3)),
    "stats.rankdata": lambda xp: stats.rankdata(integers(xp, 4, 9), axis=-1),
    "stats.quantile": lambda xp: stats.quantile(normal(xp, 20), xp.asarray([0.25, 0.5])),
    "stats.bootstrap": _bootstrap,
    "stats.entropy": lambda xp: stats.entropy(positive(xp, 9), positive(xp, 9, seed=1)),
    "stats.chisquare": lambda xp: tuple(stats.chisquare(integers(xp, 9, high=9) + 5)),
    "stats.spearmanr": lambda xp: tuple(stats.spearmanr(normal(xp, 30), normal(xp, 30, seed=1))),
    "stats.linregress": _linregress,
    "stats.Normal.pdf": _normal_pdf,
    "stats.ttest_ind": _ttest,
    "stats.pearsonr": lambda xp: (_pearsonr(xp).statistic, _pearsonr(xp).pvalue),
    "stats.pearsonr.confidence_interval": lambda xp: tuple(_pearsonr(xp).confidence_interval()),
    "stats.mannwhitneyu": lambda xp: tuple(
        stats.mannwhitneyu(normal(xp, 30), normal(xp, 40, seed=1) + 0.5)
    ),
    "stats.normaltest": lambda xp: tuple(stats.normaltest(normal(xp, 40))),
    "stats.variation": lambda xp: stats.variation(positive(xp, 5, 9), axis=-1),
}

SIGNAL: Calls = {
    "signal.fftconvolve": lambda xp: signal.fftconvolve(normal(xp, 30), normal(xp, 7, seed=1)),
    "signal.freqz": lambda xp: signal.freqz(normal(xp, 5), worN=16),
    "signal.windows.hann(xp=)": lambda xp: signal.windows.hann(16, xp=xp),
    "signal.hilbert": lambda xp: signal.hilbert(normal(xp, 32)),
    "signal.resample": lambda xp: signal.resample(normal(xp, 32), 20),
    "signal.detrend": lambda xp: signal.detrend(normal(xp, 32)),
    "signal.convolve2d": lambda xp: signal.convolve2d(normal(xp, 8, 9), normal(xp, 3, 3, seed=1)),
    "signal.lfilter": lambda xp: signal.lfilter(
        xp.asarray([0.2, 0.3]), xp.asarray([1.0, -0.5]), normal(xp, 32)
    ),
    "signal.sosfilt": lambda xp: signal.sosfilt(_sos(xp), normal(xp, 32)),
    "signal.zpk2sos": lambda xp: signal.zpk2sos(
        xp.asarray([0.5, -0.5]), xp.asarray([0.25, -0.25]), 2.0
    ),
    "signal.savgol_filter": lambda xp: signal.savgol_filter(normal(xp, 32), 7, 2),
}

TRANSFORMS: Calls = {
    "fft.fft": lambda xp: fft.fft(normal(xp, 4, 8)),
    "fft.rfftn": lambda xp: fft.rfftn(normal(xp, 4, 8)),
    "fft.dct": lambda xp: fft.dct(normal(xp, 4, 8)),
    "Rotation.as_matrix": lambda xp: _rotation(xp).as_matrix(),
    "Rotation.apply": lambda xp: _rotation(xp).apply(normal(xp, 6, 3)),
    "Rotation.mean": lambda xp: _axis_angles(xp).mean().as_matrix(),
    "Rotation.from_euler": lambda xp: Rotation.from_euler("xyz", normal(xp, 6, 3)).as_matrix(),
    "Rotation.from_matrix": lambda xp: Rotation.from_matrix(_rotation(xp).as_matrix()).as_matrix(),
    "RigidTransform.apply": lambda xp: RigidTransform.from_translation(normal(xp, 6, 3)).apply(
        normal(xp, 6, 3, seed=1)
    ),
}


def _minimize(xp: Any) -> Any:
    result = optimize.minimize(optimize.rosen, xp.asarray([1.3, 0.7]), method="Nelder-Mead")
    return result.x


def _find_root(xp: Any) -> Any:
    c = positive(xp, 5)
    return elementwise.find_root(
        lambda x, c: x * x - c, (xp.zeros_like(c), 4 * xp.ones_like(c)), args=(c,)
    ).x


def _find_minimum(xp: Any) -> Any:
    c = positive(xp, 5)
    bracket = (xp.zeros_like(c), xp.ones_like(c), 5 * xp.ones_like(c))
    return elementwise.find_minimum(lambda x, c: (x - c) ** 2, bracket, args=(c,)).f_x


def _bracket_root(xp: Any) -> Any:
    c = positive(xp, 5)
    result = elementwise.bracket_root(lambda x, c: x * x * x - c, xp.zeros_like(c), args=(c,))
    return tuple(result.bracket)


def _derivative(xp: Any) -> Any:
    return differentiate.derivative(xp.exp, positive(xp, 5)).df


def _jacobian(xp: Any) -> Any:
    def function(x: Any) -> Any:
        return xp.stack([x[0, ...] * x[1, ...], xp.sin(x[0, ...])])

    return differentiate.jacobian(function, xp.asarray([0.5, 1.5])).df


def _tanhsinh(xp: Any) -> Any:
    return integrate.tanhsinh(lambda x: xp.exp(-x * x), xp.asarray([0.0, -1.0]), xp.asarray(2.0))


def _cubature(xp: Any) -> Any:
    limits = xp.asarray([0.0, 0.0]), xp.asarray([1.0, 2.0])
    return integrate.cubature(lambda x: xp.exp(-xp.sum(x * x, axis=-1)), *limits).estimate


NUMERICAL: Calls = {
    "integrate.trapezoid": lambda xp: integrate.trapezoid(normal(xp, 4, 21), _line(xp)),
    "integrate.cumulative_simpson": lambda xp: integrate.cumulative_simpson(
        normal(xp, 21), x=_line(xp)
    ),
    "integrate.simpson": lambda xp: integrate.simpson(normal(xp, 21), x=_line(xp)),
    "integrate.cubature": _cubature,
    "integrate.tanhsinh": lambda xp: _tanhsinh(xp).integral,
    "integrate.nsum": lambda xp: integrate.nsum(lambda k: 1 / (k * k), 1, xp.asarray(np.inf)).sum,
    "optimize.rosen": lambda xp: optimize.rosen(normal(xp, 5)),
    "optimize.minimize": _minimize,
    "optimize.elementwise.find_root": _find_root,
    "optimize.elementwise.find_minimum": _find_minimum,
    "optimize.elementwise.bracket_root": _bracket_root,
    "differentiate.derivative": _derivative,
    "differentiate.jacobian": _jacobian,
    "constants.convert_temperature": lambda xp: constants.convert_temperature(
        normal(xp, 7), "Celsius", "Kelvin"
    ),
    "linalg.toeplitz": lambda xp: linalg.toeplitz(normal(xp, 4), normal(xp, 5, seed=1)),
    "linalg.inv": lambda xp: linalg.inv(normal(xp, 4, 4)),
    "linalg.svd": lambda xp: linalg.svd(normal(xp, 4, 4), compute_uv=False),
}


def _label(xp: Any) -> Any:
    return ndimage.label(normal(xp, 8, 9) > 0)


def _kmeans(xp: Any) -> Any:
    return vq.kmeans(normal(xp, 40, 2), _centers(xp))


def _grid(xp: Any) -> Any:
    points = _line(xp), _line(xp)
    return interpolate.RegularGridInterpolator(points, normal(xp, 21, 21))(uniform(xp, 5, 2))


def _aaa(xp: Any) -> Any:
    x = xp.linspace(-1.0, 1.0, 40)
    return interpolate.AAA(x, xp.exp(x))(xp.asarray([0.1, 0.2]))


SPATIAL: Calls = {
    "ndimage.gaussian_filter": lambda xp: ndimage.gaussian_filter(normal(xp, 8, 9), 1.5),
    "ndimage.label": _label,
    "ndimage.zoom": lambda xp: ndimage.zoom(normal(xp, 8, 9), 2.0),
    "cluster.vq.whiten": lambda xp: vq.whiten(normal(xp, 40, 2)),
    "cluster.vq.vq": lambda xp: vq.vq(normal(xp, 40, 2), _centers(xp)),
    "cluster.vq.kmeans": _kmeans,
    "cluster.hierarchy.linkage": lambda xp: hierarchy.linkage(normal(xp, 12, 2), "average"),
    "interpolate.make_interp_spline": lambda xp: interpolate.make_interp_spline(
        _line(xp), normal(xp, 21)
    )(uniform(xp, 5)),
    "interpolate.CubicSpline": lambda xp: interpolate.CubicSpline(_line(xp), normal(xp, 21))(
        uniform(xp, 5)
    ),
    "interpolate.RegularGridInterpolator": _grid,
    "interpolate.AAA": _aaa,
    "interpolate.PchipInterpolator": lambda xp: interpolate.PchipInterpolator(
        _line(xp), normal(xp, 21)
    )(uniform(xp, 5)),
    "interpolate.RBFInterpolator": lambda xp: interpolate.RBFInterpolator(
        normal(xp, 20, 2), normal(xp, 20, seed=1)
    )(uniform(xp, 5, 2)),
}

CALLS: Calls = {**SPECIAL, **STATS, **SIGNAL, **TRANSFORMS, **NUMERICAL, **SPATIAL}

# Expected to fail, and why.
FAILURES = {
    "integrate.nsum": "SciPy writes through reshape() and expects the original to change; arrays "
    "of fklarray are values, and reshape() never aliases",
}
# SciPy leaves the namespace and answers with NumPy arrays.
FROM_NUMPY = {
    "stats.linregress",
    "stats.Normal.pdf",
    "optimize.minimize",
    "interpolate.AAA",
    "linalg.toeplitz",
    "linalg.inv",
    "linalg.svd",
}
# The most sync points that a call may have.
SYNCS = {
    "special.logsumexp": 0,
    "special.softmax": 0,
    "special.log_softmax": 0,
    "special.entr": 0,
    "special.erf": 0,
    "special.expit": 0,
    "special.gammaln": 0,
    "special.xlogy": 0,
    "special.betainc": 0,
    "special.stdtrit": 0,
    "stats.zscore": 5,
    "optimize.rosen": 0,
    "integrate.trapezoid": 0,
}
