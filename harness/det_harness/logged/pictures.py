"""Pictures: files, figures and arrays as the content of a picture in a format that browsers show."""

from __future__ import annotations

import io
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from det_harness.logged.limits import GRID_PICTURES, MEDIUM_BYTES, PICTURE_PIXELS, NotKeptError, megabytes
from det_harness.logged.numbers import array_of

_CHANNELS = (1, 3, 4)
_SPACE = 2  # pixels between the pictures of a grid
# Of what PIL has, that PNG can hold; others become RGB.
_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
# Values a little outside are rounding, or an interpolation.
_SLACK = 0.05
_HEAD = 1024
_LARGEST_READ = 500_000_000


@dataclass(frozen=True)
class Picture:
    """The content of a picture.

    Attributes
    ----------
    smaller : str
        What it was like before it was made smaller; empty if it was not.
    """

    content: bytes
    format: str
    width: int | None = None
    height: int | None = None
    smaller: str = ""


def picture_of(value: Any) -> Picture:
    """Return what is to be kept of a picture.

    Raises
    ------
    NotKeptError
        If it is none, or cannot be read.
    """
    try:
        return _picture_of(value)
    except NotKeptError:
        raise
    except Exception as error:
        raise NotKeptError(f"it is no picture that can be read ({type(error).__name__}: {error})") from error


def as_shown(value: Any) -> Picture | None:
    """Return the picture that a notebook would show of an object: of a figure, or what can draw itself; else None."""
    return picture_of(value) if is_shown(value) else None


def is_shown(value: Any) -> bool:
    """Return whether a notebook shows an object as a picture."""
    return _is_figure(value) or _is_pil(value) or _drawn_by_itself(value) is not None


def _picture_of(value: Any) -> Picture:
    if isinstance(value, str | os.PathLike):
        return _of_file(Path(value).expanduser())
    if isinstance(value, bytes | bytearray | memoryview):
        return _of_content(bytes(value))
    figure = figure_of(value)
    if figure is not None:
        return _of_figure(figure)
    if _is_pil(value):
        return _of_pil(value)
    drawn = _drawn_by_itself(value)
    if drawn is not None:
        return _of_content(drawn)
    return _of_array(value)


def figure_of(value: Any) -> Any:
    """Return the figure of a figure, of axes, or of what draws on one (a grid of seaborn's); None if it has none."""
    if _is_figure(value):
        return value
    for name in ("get_figure", "figure"):
        found = getattr(value, name, None)
        if name == "get_figure" and callable(found):
            found = found()
        if found is not None and _is_figure(found):
            return found
    return None


def _is_figure(value: Any) -> bool:
    return callable(getattr(type(value), "savefig", None)) and callable(getattr(type(value), "get_size_inches", None))


def _is_pil(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("mode", "size", "save", "convert", "tobytes"))


def _drawn_by_itself(value: Any) -> bytes | None:
    """Return the picture that an object has for notebooks."""
    for name in ("_repr_png_", "_repr_jpeg_", "_repr_svg_"):
        method = getattr(type(value), name, None)
        if callable(method):
            found = method(value)
            if isinstance(found, tuple):  # with metadata
                found = found[0]
            if found:
                return found.encode() if isinstance(found, str) else bytes(found)
    return None


def _of_figure(figure: Any) -> Picture:
    for dpi in (None, 72, 36):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", **({} if dpi is None else {"dpi": dpi}))
        content = buffer.getvalue()
        if len(content) <= MEDIUM_BYTES:
            break
    return _of_content(content)


def _of_file(path: Path) -> Picture:
    if not path.is_file():
        raise NotKeptError(
            f"there is no file {os.fspath(path)!r}" if not path.exists() else f"{os.fspath(path)!r} is no file"
        )
    size = path.stat().st_size
    if size > _LARGEST_READ:
        raise NotKeptError(f"the file {os.fspath(path)!r} has {megabytes(size)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotKeptError(f"the file {os.fspath(path)!r} cannot be read: {error.strerror}") from error
    try:
        return _of_content(content)
    except NotKeptError as error:
        raise NotKeptError(f"the file {os.fspath(path)!r} is no picture: {error}") from error


def _of_content(content: bytes) -> Picture:
    """Return a picture by its first bytes, whatever its file is called."""
    kind = _format(content)
    if kind == "svg":
        if len(content) > MEDIUM_BYTES:
            raise NotKeptError(f"an SVG of {megabytes(len(content))} is too large; at most {megabytes(MEDIUM_BYTES)}")
        return Picture(content, "svg")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            width, height = image.size
            if kind and len(content) <= MEDIUM_BYTES:
                return Picture(content, kind, width, height)
            image.load()
            return _of_pil(image, original=len(content))
    except Image.DecompressionBombError as error:
        raise NotKeptError(str(error)) from error
    except (OSError, ValueError, SyntaxError) as error:
        raise NotKeptError("its first bytes are those of no picture that is known") from error


def _format(content: bytes) -> str:
    """Return the format of a file that browsers show, empty for any other."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if content.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    head = content[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    return (
        "svg" if head.startswith((b"<svg", b"<?xml", b"<!DOCTYPE svg", b"<!--")) and b"<svg" in content[:20_000] else ""
    )


def _of_pil(image: Any, original: int = 0) -> Picture:
    from PIL import Image

    before = f"{image.width} x {image.height} pixels" + (f", {megabytes(original)}" if original else "")
    if image.mode not in _PNG_MODES:
        image = image.convert("RGBA" if "A" in image.mode or "a" in image.mode else "RGB")
    pixels = image.width * image.height
    smaller = ""
    if pixels > PICTURE_PIXELS:
        image, smaller = _scaled(image, math.sqrt(PICTURE_PIXELS / pixels)), before
    while True:
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        size = buffer.tell()
        if size <= MEDIUM_BYTES or max(image.size) < 2:
            return Picture(buffer.getvalue(), "png", image.width, image.height, smaller)
        smaller = smaller or before
        if image.mode in ("1", "P"):
            image = image.convert("RGB")
        image = _scaled(image, 0.95 * math.sqrt(MEDIUM_BYTES / size))
        assert isinstance(image, Image.Image)


def _scaled(image: Any, factor: float) -> Any:
    size = (max(1, int(image.width * factor)), max(1, int(image.height * factor)))
    return image.resize(size)


def _of_array(value: Any) -> Picture:
    from PIL import Image

    try:
        array = array_of(value)
    except Exception as error:
        raise NotKeptError(f"an object of the type {type(value).__name__} is no picture") from error
    if array.dtype.kind not in "biuf":
        what = f"an array of {array.dtype}" if array.ndim else f"an object of the type {type(value).__name__}"
        raise NotKeptError(f"{what} is no picture")
    if not array.size:
        raise NotKeptError(f"an array of the shape {array.shape} has no pixels")
    channels_first = callable(getattr(value, "detach", None))
    pixels = _as_bytes(_laid_out(array, channels_first=channels_first))
    return _of_pil(Image.fromarray(pixels))


def _laid_out(array: Any, *, channels_first: bool) -> Any:
    """Return an array of the shape (height, width) or (height, width, channels)."""
    if array.ndim == 2:
        return array
    if array.ndim == 3:
        last, first = array.shape[2] in _CHANNELS, array.shape[0] in _CHANNELS
        if first and (channels_first or not last):
            array = array.transpose(1, 2, 0)
        elif not last:
            return _grid(array[..., None])
        return array[..., 0] if array.shape[2] == 1 else array
    if array.ndim == 4:
        last, first = array.shape[3] in _CHANNELS, array.shape[1] in _CHANNELS
        if first and (channels_first or not last):
            array = array.transpose(0, 2, 3, 1)
        elif not last:
            raise NotKeptError(f"an array of the shape {array.shape} has no dimension of 1, 3 or 4 channels")
        return _grid(array)
    raise NotKeptError(
        f"an array of the shape {array.shape} is no picture: it takes (height, width), (height, width, channels), "
        "(channels, height, width), or a batch of these"
    )


def _grid(pictures: Any) -> Any:
    """Return pictures, side by side in rows, as one."""
    import numpy as np

    pictures = pictures[:GRID_PICTURES]
    count, height, width, channels = pictures.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    empty = _lowest(pictures)
    made = np.full(
        (rows * (height + _SPACE) - _SPACE, columns * (width + _SPACE) - _SPACE, channels), empty, pictures.dtype
    )
    for number, picture in enumerate(pictures):
        top, left = number // columns * (height + _SPACE), number % columns * (width + _SPACE)
        made[top : top + height, left : left + width] = picture
    return made[..., 0] if channels == 1 else made


def _lowest(array: Any) -> Any:
    import numpy as np

    if array.dtype.kind != "f":
        return array.min()
    finite = array[np.isfinite(array)]
    return finite.min() if finite.size else 0


def _as_bytes(array: Any) -> Any:
    """Return an array as values of 0 to 255, by the range that its values have."""
    import numpy as np

    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "b":
        return array.astype(np.uint8) * np.uint8(255)
    if array.size > 4 * PICTURE_PIXELS:  # of what is made smaller anyway, not all has to be converted
        step = math.isqrt(array.size // (4 * PICTURE_PIXELS)) + 1
        array = array[::step, ::step]
    values = array.astype(np.float64)
    finite = np.isfinite(values)
    low, high = (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 1.0)
    if low >= -_SLACK and high <= 1 + _SLACK:
        low, high = 0.0, 1.0
    elif low >= -1 - _SLACK and high <= 1 + _SLACK:
        low, high = -1.0, 1.0
    elif low >= -_SLACK and high <= 255 + _SLACK:
        low, high = 0.0, 255.0
    scale = (high - low) or 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.nan_to_num((values - low) / scale, nan=0.0, posinf=1.0, neginf=0.0)
    return np.ascontiguousarray(np.rint(np.clip(scaled, 0.0, 1.0) * 255).astype(np.uint8))
