"""Where an endpoint is, and how that is shown."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from optiml_magic.errors import UsageError


def shown(url: str | None) -> str:
    """An endpoint as it may be shown: host and path."""
    if url is None:
        return "api.openai.com"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(
            "the base URL of the language model is not a URL",
            fix="write it like http://localhost:8000/v1",
        )
    if parts.username or parts.password:
        # The HTTP client logs the whole URL.
        raise UsageError(
            "the base URL of the language model holds a user or a password",
            fix="give the secret as OPENAI_API_KEY",
        )
    return f"{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def is_here(url: str | None) -> bool:
    """Whether an endpoint is on this machine; None is OpenAI's."""
    host = urlsplit(url or "").hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
