"""Which internet addresses a server may be made to connect to by somebody else's URL."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

__all__ = ["is_public"]

_UNICAST = IPv6Network("2000::/3")
"""All of IPv6 that is assigned to hosts anywhere; what lies outside is local, reserved or translated."""

_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address, to which a gateway connects."""

_REFUSED = (
    IPv4Network("168.63.129.16/32"),  # Azure's own services, inside every virtual machine
    IPv4Network("192.0.0.0/24"),  # RFC 6890; Oracle's metadata service is in it
    IPv4Network("192.88.99.0/24"),  # relays of 6to4, RFC 7526
    IPv6Network("2001::/23"),  # RFC 2928: Teredo and other protocols' own
    IPv6Network("3fff::/20"),  # RFC 9637: examples
)
"""Global by the tables of some Python, yet nobody's public server."""


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the public internet, whatever notation hides it.

    An IPv4 address inside an IPv6 one (mapped, NAT64, 6to4) counts as itself. What is no IP address
    is not public.
    """
    try:
        ip = _unwrapped(ip_address(address))
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip not in _UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _REFUSED)


def _unwrapped(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip
