"""GGUF files written byte by byte for the Python tests, and read back."""
import json
import os
import struct
import tempfile

from support import quern

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q", I64: "q", F64: "d"}
# type number: (weights in a block, bytes)
BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 8: (32, 34), 24: (1, 1), 30: (1, 2)}


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    """`v` encoded; an array is (element type, list)."""
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        elem, items = v
        return struct.pack("<IQ", elem, len(items)) + b"".join(value(elem, i) for i in items)
    return struct.pack("<" + CODES[kind], v)


def tensor_bytes(dims, kind):
    n, (block, size) = 1, BLOCKS[kind]
    for d in dims:
        n *= d
    return n // block * size


def write(path, keys=(), tensors=(), align=32):
    """keys: (name, type, value); tensors: (name, dims, type number, bytes). bytes None: zeros that take no room on the disk."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    offset = 0
    for name, kind, v in keys:
        head += text(name) + struct.pack("<I", kind) + value(kind, v)
    for name, dims, kind, _ in tensors:
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)
        offset += (tensor_bytes(dims, kind) + align - 1) // align * align
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % align))
        begin = f.tell()
        at = 0
        for _, dims, kind, raw in tensors:
            n = tensor_bytes(dims, kind)
            assert raw is None or len(raw) == n
            f.seek(begin + at)
            f.write(raw or b"")
            at += (n + align - 1) // align * align
        f.truncate(begin + at)


class Folder:
    """A folder that is gone after the `with`; path(name) is in it."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-test-")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def names(self):
        return sorted(os.listdir(self.folder.name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()


def inspect(path):
    """What `quern inspect --json` says, with the tensors by name."""
    j = json.loads(quern("inspect", "--json", path))
    j["by_name"] = {t["name"]: t for t in j["tensors"]}
    return j
