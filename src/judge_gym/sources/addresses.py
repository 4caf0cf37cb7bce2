"""Which IP addresses may be reached: enforced where the socket is made, whatever name led to it."""

import ipaddress
import socket
from typing import Any

PRIVATE = "private address"
GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
METADATA = (ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200"))
"""Where clouds keep their machines' secrets, beside the link-local addresses."""


class PrivateAddressError(OSError):
    """An address that an article must not lead to."""


def public_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for a resolved address, whatever name or spelling led to it.

    This is the last step before a connection, so nothing that a name resolves to can slip past.
    """
    family, kind, protocol, _, address = info
    if not is_public(address[0]):
        raise PrivateAddressError(PRIVATE)
    return socket.socket(family, kind, protocol)


def near_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for any address but link-local ones, where clouds keep their machines' secrets."""
    family, kind, protocol, _, address = info
    ip = ipaddress.ip_address(address[0].partition("%")[0])
    if any(one.is_link_local or one in METADATA for one in (ip, _inner(ip) or ip)):
        raise PrivateAddressError(PRIVATE)
    return socket.socket(family, kind, protocol)


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, as itself or inside another.

    >>> [is_public(ip) for ip in ("8.8.8.8", "10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1")]
    [True, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    inner = _inner(ip)
    return is_public(str(inner)) if inner else ip in GLOBAL_IPV6 and ip.is_global


def _inner(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address carries, if it does."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour
