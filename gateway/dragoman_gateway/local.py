"""Without keys only programs of this machine may ask, not the pages that its browsers show."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from aiohttp import web

from dragoman_gateway.settings import is_loopback


def is_of_a_page(request: web.BaseRequest, allowed: Collection[str]) -> bool:
    """Return whether a page of another site sent a request, whose origin is not `allowed`.

    A browser names the page's own host if that resolves to this machine (DNS rebinding), else the
    page's origin; of an image it only says that it is of another site.
    """
    if not _is_here(f"//{request.headers.get('Host', '')}"):
        return True
    origin = request.headers.get("Origin")
    if origin is None:
        return request.headers.get("Sec-Fetch-Site") == "cross-site"
    is_page = origin == "null" or origin.startswith(("http:", "https:"))  # not an extension
    return is_page and origin not in allowed and not _is_here(origin)


def _is_here(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
