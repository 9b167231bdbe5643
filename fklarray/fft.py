"""Fourier transforms, an extension of the standard, run at once; shifts are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from fklarray.array import Array
from fklarray.conversion import asarray
from fklarray.creation import zeros
from fklarray.data_type_functions import astype
from fklarray.delegation import on_numpy
from fklarray.device import CPU, Device
from fklarray.dtype_rows import DtypeLike, dtype_row
from fklarray.joining import roll
from fklarray.on_cupy import is_of_cupy
from fklarray.reductions import array_operand

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm: TypeAlias = Literal["backward", "ortho", "forward"]
_NEEDS_REAL = ("rfft", "rfftn", "ihfft")
_TO_REAL = ("irfft", "hfft")


def _operand(function: str, x: object) -> Array:
    array = array_operand(function, x)
    row = array._state[0].dtype
    if row.kind == "complex" and function in _NEEDS_REAL:
        raise TypeError(f"{function} needs real values, not {array.dtype}")
    return array if row.is_standard else astype(array, np.float32)


def _filled(x: Array, axes: Sequence[int], lengths: Sequence[int | None]) -> Array:
    """Return zeros for an array without elements that is filled up to some lengths.

    NumPy's inverse transforms of real values read elements that are not there.
    """
    shape = list(x.shape)
    for axis, length in zip(axes, lengths, strict=False):
        shape[axis] = shape[axis] or int(bool(length))
    if tuple(shape) == x.shape:
        return x
    return zeros(shape, dtype=x.dtype, device=x.device)


def _along(function: str, x: Array, n: int | None, axis: int, norm: Norm) -> Array:
    """Run a transform along one axis."""
    x = _operand(function, x)
    along = normalize_axis_index(axis, x.ndim)
    x = _filled(x, [along], [n])
    usual = 2 * (x.shape[along] - 1) if function in _TO_REAL else x.shape[along]
    if (points := usual if n is None else n) < 1:
        raise ValueError(f"{function} needs at least one point along axis {along}, not {points}")
    transform: Callable[..., Any] = getattr(np.fft, function)

    def run(values: Any, **keywords: Any) -> Any:
        if is_of_cupy(values) and function in _TO_REAL:
            values = _as_of_reals(values, n, along)
        return transform(values, **keywords)

    result: Array = on_numpy(run, x, called=function, n=n, axis=along, norm=norm)
    return result


def _as_of_reals(values: Any, n: int | None, axis: int) -> Any:
    """Return a spectrum without the imaginary parts that NumPy passes over, and cuFFT does not."""
    if values.dtype.kind != "c":
        return values
    values = values.copy()
    imaginary = np.moveaxis(values.imag, axis, 0)
    imaginary[0] = 0
    last = n or 2 * (values.shape[axis] - 1)
    if last % 2 == 0:
        imaginary[last // 2 : last // 2 + 1] = 0
    return values


def _over(
    function: str, x: Array, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm
) -> Array:
    """Run a transform over several axes."""
    x = _operand(function, x)
    if s is not None and axes is None:
        raise ValueError(f"{function} needs axes for the shape s={tuple(s)}")
    over = None if axes is None else [normalize_axis_index(axis, x.ndim) for axis in axes]
    if s is not None and over is not None:
        if len(s) != len(over):
            raise ValueError(f"{function} needs as many lengths as axes, not s={s}, axes={axes}")
        # CuPy does not know the length -1.
        s = [
            x.shape[axis] if length == -1 else length for axis, length in zip(over, s, strict=True)
        ]
    x = _filled(x, over or [], s or [])
    if function == "irfftn" and x.device != CPU:
        return _irfftn(x, s, over, norm)
    transform: Callable[..., Any] = getattr(np.fft, function)
    # CuPy transforms over an axis once, however often it is given.
    called = function if over is None or len(set(over)) == len(over) else ""
    result: Array = on_numpy(transform, x, called=called, s=s, axes=over, norm=norm)
    return result


def _irfftn(x: Array, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm) -> Array:
    """Run the inverse over all axes but the last, then over that, as NumPy does."""
    along = range(x.ndim) if axes is None else axes
    if not along:
        raise IndexError("irfftn needs an axis")
    *others, last = zip(along, (None,) * len(along) if s is None else s, strict=True)
    for axis, n in others:
        x = ifft(x, n=n, axis=axis, norm=norm)
    axis, n = last
    return irfft(x, n=n, axis=axis, norm=norm)


def fft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    x : Array
        Array of any data type; integers are computed in float64, 16-bit floats in float32.
    n : int, optional
        Number of elements along the axis that are transformed: `x` is cut, or filled with zeros.
    axis : int
        The axis.
    norm : {"backward", "ortho", "forward"}
        Whether the inverse, each, or this transform is divided by ``n``, or its square root.

    Returns
    -------
    Array
        Complex, in the precision of `x`.

    Raises
    ------
    ValueError
        If `norm` is unknown, or there are no elements to transform.
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Fourier Transform Functions", ``fft``.
    """
    return _along("fft", x, n, axis, norm)


def ifft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `fft`, which see for parameters and errors."""
    return _along("ifft", x, n, axis, norm)


def fftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the discrete Fourier transform over several axes.

    Parameters
    ----------
    x : Array
        Array of any data type; integers are computed in float64, 16-bit floats in float32.
    s : sequence of int, optional
        Number of elements along each of the axes that are transformed; -1 for all there are.
    axes : sequence of int, optional
        The axes, all by default; needed with `s`.
    norm : {"backward", "ortho", "forward"}
        As in `fft`.

    Returns
    -------
    Array
        Complex, in the precision of `x`.

    Raises
    ------
    ValueError
        If `norm` is unknown, there are no elements to transform, `s` comes without axes, or there
        are not as many of both.
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Fourier Transform Functions", ``fftn``.
    """
    return _over("fftn", x, s, axes, norm)


def ifftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the inverse of `fftn`, which see for parameters and errors."""
    return _over("ifftn", x, s, axes, norm)


def rfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the first half of the transform of real values; otherwise as `fft`.

    Returns
    -------
    Array
        With ``n // 2 + 1`` elements along the axis.

    Raises
    ------
    TypeError
        If `x` is complex.
    """
    return _along("rfft", x, n, axis, norm)


def irfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `rfft`, which is real; otherwise as `fft`.

    Parameters
    ----------
    x : Array
        First half of a transform.
    n : int, optional
        Number of elements of the result along the axis, by default ``2 * (M - 1)`` for ``M``
        elements of `x`.
    axis, norm
        As in `fft`.
    """
    return _along("irfft", x, n, axis, norm)


def rfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return `rfft` along the last of several axes and `fft` along the others; see `fftn`."""
    return _over("rfftn", x, s, axes, norm)


def irfftn(
    x: Array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> Array:
    """Return the inverse of `rfftn`; `s` is the shape of the result, as `n` is in `irfft`."""
    return _over("irfftn", x, s, axes, norm)


def hfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the real transform of a Hermitian signal, of which `x` is the first half.

    Parameters are those of `irfft`.
    """
    return _along("hfft", x, n, axis, norm)


def ihfft(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """Return the inverse of `hfft`, for real values; parameters and result are those of `rfft`."""
    return _along("ihfft", x, n, axis, norm)


def _frequencies(
    function: str, n: int, d: float, dtype: DtypeLike | None, device: Device | str | None
) -> Array:
    if dtype is not None and dtype_row(dtype).kind != "real":
        raise TypeError(f"{function} gives real floating-point values, not {dtype_row(dtype)}")
    frequencies: Callable[..., Any] = getattr(np.fft, function)
    return asarray(frequencies(n, d=d), dtype=dtype, device=device)


def fftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return the frequencies of the elements of a transform: from 0 up, then the negative ones.

    Parameters
    ----------
    n : int
        Number of elements.
    d : float
        Distance of the samples.
    dtype : dtype, optional
        A real floating-point data type; float64 by default.
    device : Device or str, optional
        Device of the result.

    Raises
    ------
    ValueError
        If `n` is negative or not an integer, or the device is unknown.
    ZeroDivisionError
        If `n` or `d` is 0.
    TypeError
        If the data type is not a real floating-point one.

    Notes
    -----
    Array API standard 2025.12, "Fourier Transform Functions", ``fftfreq``.
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DtypeLike | None = None,
    device: Device | str | None = None,
) -> Array:
    """Return the frequencies of the elements of `rfft`, none negative; otherwise as `fftfreq`."""
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shifted(function: str, x: Array, axes: int | Sequence[int] | None, sign: int) -> Array:
    x = array_operand(function, x)
    if axes is None:
        axes = range(x.ndim)
    along = [
        normalize_axis_index(axis, x.ndim)
        for axis in (axes if isinstance(axes, Sequence) else (axes,))
    ]
    # Rolled by half the extent, rounded down; its inverse rolls back by the same.
    shifts = [sign * (x.shape[axis] // 2) for axis in along]
    return roll(x, shifts, axis=along) if along else x


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Move the frequency 0 to the middle.

    Parameters
    ----------
    x : Array
        Array of any data type.
    axes : int or sequence of int, optional
        Axes to shift along; all by default.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    TypeError
        If `x` is not an array.

    Notes
    -----
    Array API standard 2025.12, "Fourier Transform Functions", ``fftshift``.
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Move the frequency 0 from the middle to the start: the inverse of `fftshift`."""
    return _shifted("ifftshift", x, axes, -1)
