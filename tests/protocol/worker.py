"""A worker in another language: what docs/worker-protocol.md says, and nothing but Python's standard library.

Its one model gives, for each row of 32-bit floats, the sum (`op: sum`) or the row itself (`op: echo`).
"""

import array
import mmap
import os
import socket
import struct
import sys
import time

PROTOCOL = 1
MAX_FRAME = 1 << 20


# --- MessagePack: what frames are made of -------------------------------------------------------------------------

def pack(value):
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcf" + struct.pack(">Q", value) if value >= 0 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    if isinstance(value, dict):
        items = b"".join(pack(key) + pack(item) for key, item in value.items())
        return b"\xdf" + struct.pack(">I", len(value)) + items
    raise TypeError(type(value))


class Unpacker:
    """Reads one value out of bytes."""

    NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
               0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    LENGTHS = {0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
               0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
               0xDC: ("array", ">H"), 0xDD: ("array", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")}

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def value(self):
        tag = self.take(">B")
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self.many("map", tag & 0x0F)
        if tag < 0xA0:
            return self.many("array", tag & 0x0F)
        if tag < 0xC0:
            return self.many("str", tag & 0x1F)
        if tag >= 0xE0:
            return tag - 256
        if tag in self.NUMBERS:
            return self.take(self.NUMBERS[tag])
        if tag in self.LENGTHS:
            form, length = self.LENGTHS[tag]
            return self.many(form, self.take(length))
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag]

    def many(self, form, n):
        if form == "map":
            return {self.value(): self.value() for _ in range(n)}
        if form == "array":
            return [self.value() for _ in range(n)]
        data = self.data[self.at:self.at + n]
        self.at += n
        return data.decode() if form == "str" else data


# --- Frames -------------------------------------------------------------------------------------------------------

class Link:
    """Frames and file descriptors over the socket that is standard input."""

    def __init__(self):
        self.socket = socket.socket(fileno=os.dup(0))
        self.buffer, self.fds = b"", []

    def send(self, name, body):
        frame = pack({name: body})
        self.socket.sendall(struct.pack("<I", len(frame)) + frame)

    def receive(self):
        """The next frame as (name, body), or None at the end."""
        prefix = self.exactly(4)
        if prefix is None:
            return None
        (length,) = struct.unpack("<I", prefix)
        if length > MAX_FRAME:
            sys.exit(f"a frame of {length} bytes")
        frame = Unpacker(self.exactly(length)).value()
        # A frame without a body is its name alone.
        return (frame, None) if isinstance(frame, str) else next(iter(frame.items()))

    def exactly(self, n):
        while len(self.buffer) < n:
            data, fds, _, _ = socket.recv_fds(self.socket, 65536, 1)
            self.fds += fds
            if not data:
                return None
            self.buffer += data
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data


# --- Memory -------------------------------------------------------------------------------------------------------

class Arena:
    """Memory of the coordinator's. The file grows; what is there is mapped, and mapped again when there is more."""

    def __init__(self, fd, access):
        self.fd, self.access, self.memory = fd, access, None

    def view(self, offset, length):
        end = offset + length
        if self.memory is None or end > len(self.memory):
            size = os.fstat(self.fd).st_size
            if end > size:
                raise ValueError(f"bytes {offset}..{end} of {size}")
            prot = mmap.PROT_READ | (mmap.PROT_WRITE if self.access == "write" else 0)
            self.memory = memoryview(mmap.mmap(self.fd, size, mmap.MAP_SHARED, prot))
        return self.memory[offset:end]


# --- The worker ---------------------------------------------------------------------------------------------------

def main():
    link, arenas, models = Link(), {}, {}
    device = {"kind": "cpu", "name": "Python", "uuid": None, "memory": None, "n_visible": 1}
    link.send("hello", {"protocol": PROTOCOL, "build": "python", "pid": os.getpid(), "device": device})
    while (frame := link.receive()) is not None:
        name, body = frame
        if name == "arena":
            arenas[body["id"]] = Arena(link.fds.pop(0), body["access"])
        elif name == "load":
            op = body["with"].get("op")
            if op in ("sum", "echo"):
                models[body["model"]] = op
                link.send("ready", {"model": body["model"], "depth": 2})
            else:
                refusal = {"kind": "permanent", "message": f"no op `{op}`", "help": "write `sum` or `echo`"}
                link.send("load_failed", {"model": body["model"], "refusal": refusal})
        elif name == "run":
            run(link, arenas, models, body)
        elif name == "stop":
            return


def run(link, arenas, models, body):
    started = time.monotonic_ns()
    try:
        op = models[body["model"]]
        (tensor,) = body["inputs"]
        n_rows, *rest = tensor["shape"]
        n_each = 1
        for dim in rest:
            n_each *= dim
        at = tensor["at"]
        rows = arenas[at["arena"]].view(at["offset"], 4 * n_rows * n_each).cast("f")
        place = body["output"]
        output = arenas[place["arena"]].view(place["offset"], body["output_len"])
    except (KeyError, ValueError) as error:
        link.send("job_failed", {"job": body["job"], "reason": {"malformed": str(error)}})
        return
    if op == "sum":
        result = array.array("f", (sum(rows[at * n_each:(at + 1) * n_each]) for at in range(n_rows)))
        shape = [n_rows]
    else:
        result, shape = array.array("f", rows), tensor["shape"]
    n_bytes = len(result) * 4
    if n_bytes > len(output):
        link.send("job_failed", {"job": body["job"], "reason": {"output_too_large": n_bytes}})
        return
    output[:n_bytes] = result.tobytes()
    ended = time.monotonic_ns()
    link.send("done", {
        "job": body["job"],
        "outputs": [{"at": place, "dtype": "f32", "shape": shape}],
        "micros": (ended - started) // 1000,
        "spans": [{"stage": "compute", "start_ns": started, "end_ns": ended}],
        "cap": None,
    })


main()
