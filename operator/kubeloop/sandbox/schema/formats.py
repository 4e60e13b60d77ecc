"""String formats that CRD schemas may use; unknown ones are ignored, as in the server."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

from kubeloop.sandbox.schema.values import canonical_time

_HEX = "[0-9a-f]"


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(third: str = f"{_HEX}{{4}}", fourth: str = f"{_HEX}{{4}}") -> Callable[[str], bool]:
    return _matches(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}", re.IGNORECASE)


def _date(text: str) -> bool:
    try:
        return len(text) == len("2006-01-02") and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def _cidr(text: str) -> bool:
    if "/" not in text:
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return text.rpartition("/")[2].isdigit()


def _base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(text) and (bool(parts.scheme) or text.startswith("/")) and " " not in text


def _email(text: str) -> bool:
    _, address = parseaddr(text)
    local, at, host = address.rpartition("@")
    return bool(local and at and host) and " " not in address


def _digits(text: str) -> list[int]:
    return [10 if char in "xX" else int(char) for char in text if char in "0123456789xX"]


def _isbn10(text: str) -> bool:
    digits = _digits(text) if re.fullmatch(r"[0-9Xx -]+", text) else []
    return len(digits) == 10 and sum((10 - i) * digit for i, digit in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = _digits(text) if re.fullmatch(r"[0-9 -]+", text) else []
    return len(digits) == 13 and sum(d * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0


_GO_DURATION = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_LONG_DURATION = re.compile(
    r"((\d+)\s*(n(ano(second)?)?s?|u(s|micro(second)?s?)?|m(illi(second)?)?s?|s(ec(ond)?s?)?|"
    r"m(in(ute)?s?)?|h(r|our)?s?|d(ay)?s?|w(eek)?s?)\s*)+",
    re.IGNORECASE,
)

_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}", re.IGNORECASE),
    "uri": _uri,
    "email": _email,
    # One label, or several of which the last is of two letters at least.
    "hostname": _matches(
        r"[a-zA-Z0-9](-?[a-zA-Z0-9]{0,62})?"
        r"|([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,63}"
    ),
    "ipv4": lambda text: _address(text, 4),
    "ipv6": lambda text: _address(text, 6),
    "cidr": _cidr,
    "mac": _matches(r"([0-9A-Fa-f]{2}([:-]))([0-9A-Fa-f]{2}\2){4,18}[0-9A-Fa-f]{2}"),
    "uuid": _uuid(),
    "uuid3": _uuid(third=f"3{_HEX}{{3}}"),
    "uuid4": _uuid(third=f"4{_HEX}{{3}}", fourth=f"[89ab]{_HEX}{{3}}"),
    "uuid5": _uuid(third=f"5{_HEX}{{3}}", fourth=f"[89ab]{_HEX}{{3}}"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": lambda text: 13 <= len(re.sub(r"\D", "", text)) <= 16,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)"),
    "byte": _base64,
    "password": lambda _: True,
    "date": _date,
    "duration": lambda text: bool(_GO_DURATION.fullmatch(text) or _LONG_DURATION.fullmatch(text)),
    "datetime": lambda text: canonical_time(text.upper(), micro=False) is not None,
    "k8sshortname": _matches(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    "k8slongname": _matches(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
}


def checker(name: str) -> Callable[[str], bool] | None:
    """The test of a format (dashes do not count), None for one that the server does not enforce."""
    return _FORMATS.get(name.replace("-", ""))


_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def go_pattern(pattern: str) -> re.Pattern[str] | None:
    """Go's regular expression as Python reads it, None when Python cannot."""
    text = re.sub(r"\[:(\w+):\]", lambda m: _POSIX.get(m.group(1), m.group(0)), pattern)
    out: list[str] = []
    in_class = False
    index = 0
    while index < len(text):
        char = text[index]
        if char == "\\" and index + 1 < len(text):
            pair = text[index : index + 2]
            out.append(r"\Z" if pair == r"\z" else pair)
            index += 2
            continue
        if in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "$":  # Go's means the very end, Python's also before a last line break
            char = r"\Z"
        out.append(char)
        index += 1
    try:
        return re.compile("".join(out), re.ASCII)
    except re.error:
        return None
