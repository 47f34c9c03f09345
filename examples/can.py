#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""can.py - a virtual CAN bus with two programs on it: a frame, a long message by ISO-TP, and one by J1939

Needs ip (iproute2). Shows: a bus that wants root and modules on a host; other protocols than IP.
"""
import ring3

HEAR = """
import socket
raw = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
raw.bind(("vcan0",))
long = socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_ISOTP)
long.bind(("vcan0", 0x321, 0x320))                    # receives 321, answers by 320
truck = socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_J1939)
truck.bind(("vcan0", socket.J1939_NO_NAME, socket.J1939_NO_PGN, 0x20))
print("ready", flush=True)
frame = raw.recv(16)
print(f"{int.from_bytes(frame[:4], 'little'):03x}#{frame[8:8 + frame[4]].hex()}", flush=True)
print(len(long.recv(4095)), flush=True)
print(truck.recv(2000).decode(), flush=True)
"""
SAY = """
import socket
raw = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
raw.bind(("vcan0",))
raw.send((0x123).to_bytes(4, "little") + bytes([4, 0, 0, 0]) + bytes.fromhex("deadbeef").ljust(8, b"\\0"))
long = socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_ISOTP)
long.bind(("vcan0", 0x320, 0x321))
long.send(b"." * 300)                                 # in 43 frames
truck = socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_J1939)
truck.bind(("vcan0", socket.J1939_NO_NAME, socket.J1939_NO_PGN, 0x30))
truck.sendto(b"engine speed, engine load", ("vcan0", socket.J1939_NO_NAME, 0x12300, 0x20))
"""

with ring3.Node() as node:
    node.run("ip", "link", "add", "vcan0", "type", "vcan")
    node.run("ip", "link", "set", "vcan0", "up")
    with node.start("python3", "-c", HEAR) as hearing:
        assert hearing.readline() == "ready", hearing.result(check=True)
        node.run("python3", "-c", SAY)
        said = [hearing.readline() for _ in range(3)]
print(" ".join(said))
assert said == ["123#deadbeef", "300", "engine speed, engine load"]
