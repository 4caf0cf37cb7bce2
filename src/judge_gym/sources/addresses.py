"""Restricts the IP addresses that may be reached, at the point where a socket is created."""

import ipaddress
import socket
from typing import Any

PRIVATE = "private address"
GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
METADATA = (ipaddress.ip_address("fd00:ec2::254"), ipaddress.ip_address("100.100.100.200"))
"""Addresses of cloud metadata services, besides the link-local ones."""


class PrivateAddressError(OSError):
    """An address that must not be reached."""


def public_socket(info: tuple[Any, ...]) -> socket.socket:
    """Creates a socket for a resolved address of the public internet; refuses any other."""
    family, kind, protocol, _, address = info
    if not is_public(address[0]):
        raise PrivateAddressError(PRIVATE)
    return socket.socket(family, kind, protocol)


def private_socket(info: tuple[Any, ...]) -> socket.socket:
    """Creates a socket for any resolved address except those of cloud metadata services."""
    family, kind, protocol, _, address = info
    ip = ipaddress.ip_address(address[0].partition("%")[0])
    if any(one.is_link_local or one in METADATA for one in (ip, _embedded(ip) or ip)):
        raise PrivateAddressError(PRIVATE)
    return socket.socket(family, kind, protocol)


def is_public(address: str) -> bool:
    """Tells whether an IP address, or the IPv4 address embedded in it, is public.

    >>> [is_public(ip) for ip in ("8.8.8.8", "10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1")]
    [True, False, False, False]
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    inner = _embedded(ip)
    return is_public(str(inner)) if inner else ip in GLOBAL_IPV6 and ip.is_global


def _embedded(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address embedded in an IPv6 address, if any."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour
