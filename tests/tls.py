"""TLS for servers on loopback: a certificate of nobody's, for a name that cannot exist."""

from __future__ import annotations

import ssl
from pathlib import Path

__all__ = ["NAME", "client_side", "server_side"]

NAME = "pictures.example"
"""The one name for which the certificate is good (RFC 2606)."""

_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBpzCCAU6gAwIBAgIBATAKBggqhkjOPQQDAjAbMRkwFwYDVQQDDBBwaWN0dXJl
cy5leGFtcGxlMCAXDTAwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAbMRkw
FwYDVQQDDBBwaWN0dXJlcy5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEhb39GmOxKijcwmZZMs/Gy6KQBQSmeg9R7PZSfX4DcIcs1evazVMda8AL4q83
k6RKne6/vXVTG8YLnmvaRWDbk6OBgDB+MBsGA1UdEQQUMBKCEHBpY3R1cmVzLmV4
YW1wbGUwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUAv02mQTH/QT8HiK6LNnd
26aIhuEwHwYDVR0jBBgwFoAUAv02mQTH/QT8HiK6LNnd26aIhuEwDgYDVR0PAQH/
BAQDAgKEMAoGCCqGSM49BAMCA0cAMEQCIGI6dxDa1dss4trkk36HDxlXrx8e9t/3
abpGFM1wDSRHAiAKUrN/aSkAYq8QscPCmga/LL55M6MdqxDO9/ziZxUFlg==
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgYDxT3fH2MVXJnabc
g/lkksmfsVc5Qk68mGZ/1DbIOvqhRANCAASFvf0aY7EqKNzCZlkyz8bLopAFBKZ6
D1Hs9lJ9fgNwhyzV69rNUx1rwAvirzeTpEqd7r+9dVMbxguea9pFYNuT
-----END PRIVATE KEY-----
"""
"""Signed by itself, with its key, which protects nothing."""


def server_side(folder: Path) -> ssl.SSLContext:
    """Be the server of `NAME`; the certificate is written into `folder`, since only files can be loaded."""
    file = folder / "certificate.pem"
    file.write_text(_CERTIFICATE)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(file)
    return tls


def client_side() -> ssl.SSLContext:
    """Be a client that trusts this certificate and no other."""
    return ssl.create_default_context(cadata=_CERTIFICATE[: _CERTIFICATE.index("-----BEGIN PRIVATE")])
