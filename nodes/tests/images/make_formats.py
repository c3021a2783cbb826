"""Makes the pictures of `formats/`: kinds of PNG and TIFF that cameras, scanners and scientists write, and files that lie.

    python nodes/tests/images/make_formats.py
    python scripts/pillow_table.py nodes/tests/images/formats nodes/tests/images/formats.txt

Needs Pillow 13.0.0 for the codings that are not made by hand here: LZW, group 4, WebP.
"""

import io
import itertools
import random
import shutil
import struct
import zlib
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).parent / "formats"
shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir()
WIDTH, HEIGHT = 19, 13


def write(name, data):
    (FOLDER / name).write_bytes(data)


def noise(count, seed):
    return random.Random(seed).randbytes(count)


# ---- PNG


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(color, depth, before=b"", after=b"", seed=1, size=(WIDTH, HEIGHT), data=None):
    width, height = size
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    stride = (width * samples * depth + 7) // 8
    rows = b"".join(b"\0" + noise(stride, seed + y) for y in range(height)) if data is None else data
    if color == 3:
        before = chunk(b"PLTE", noise(3 << depth, 99)) + before
    return b"".join((
        b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)), before,
        chunk(b"IDAT", zlib.compress(rows, 9)), after, chunk(b"IEND", b""),
    ))


def repeated(row, color, depth, before):
    """The key is somewhere in every row."""
    return png(color, depth, before, data=(b"\0" + row) * HEIGHT)


for depth in (1, 2, 4, 8):
    write(f"png-grey-{depth}-key-0.png", png(0, depth, chunk(b"tRNS", b"\0\0")))
    write(f"png-grey-{depth}-key-1.png", png(0, depth, chunk(b"tRNS", b"\0\1")))
write("png-grey-2-key-85.png", png(0, 2, chunk(b"tRNS", b"\0\x55")))
write("png-grey-8-key-long.png", repeated(bytes(range(60, 60 + WIDTH)), 0, 8, chunk(b"tRNS", b"\7\x40")))
deep = b"".join(struct.pack(">H", n) for n in (0, 1, 64, 128, 200, 254, 255, 256, 1000, 0x7FFF, 0x8000, 0xFFFF) * 2)[:38]
write("png-grey-16.png", repeated(deep, 0, 16, b""))
for key in (0, 64, 255, 256, 0x8000):
    write(f"png-grey-16-key-{key}.png", repeated(deep, 0, 16, chunk(b"tRNS", struct.pack(">H", key))))
triples = bytes(range(3 * WIDTH))
write("png-rgb-8-key.png", repeated(triples, 2, 8, chunk(b"tRNS", bytes((0, 9, 0, 10, 0, 11)))))
write("png-rgb-16-key.png", repeated(b"".join(bytes((n, 7)) for n in triples), 2, 16, chunk(b"tRNS", bytes((9, 9, 9, 10, 9, 11)))))
write("png-palette-key.png", png(3, 4, chunk(b"tRNS", b"\xff\xff\0\xff")))
write("png-palette-alpha.png", png(3, 8, chunk(b"tRNS", bytes(range(256)))))
write("png-palette-alpha-short.png", png(3, 2, chunk(b"tRNS", b"\x80")))
write("png-palette-alpha-long.png", png(3, 1, chunk(b"tRNS", bytes(range(9)))))
write("png-grey-alpha-8.png", png(4, 8))
write("png-grey-alpha-16.png", png(4, 16))
write("png-rgba-8.png", png(6, 8))
write("png-rgba-16.png", png(6, 16))


def exif(value, order="<"):
    entry = struct.pack(order + "HHIHH", 0x112, 3, 1, value, 0)
    magic = b"II*\0" if order == "<" else b"MM\0*"
    return magic + struct.pack(order + "IH", 8, 1) + entry + bytes(4)


XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'
for value in range(1, 10):
    write(f"png-exif-{value}.png", png(2, 8, chunk(b"eXIf", exif(value, "<>"[value % 2]))))
write("png-exif-behind.png", png(2, 8, after=chunk(b"eXIf", exif(6))))
write("png-exif-noise.png", png(2, 8, chunk(b"eXIf", noise(50, 4))))
write("png-exif-loop.png", png(2, 8, chunk(b"eXIf", exif(6)[:-4] + struct.pack("<I", 8))))
write("png-xmp.png", png(2, 8, chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP % 8)))
write("png-xmp-packed.png", png(2, 8, chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(XMP % 3))))
write("png-exif-before-xmp.png", png(2, 8, chunk(b"eXIf", exif(6)) + chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP % 3)))
profile = f"\nexif\n      {len(exif(5))}\n{exif(5).hex()}\n".encode()
write("png-raw-profile.png", png(2, 8, chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile))))
bomb = zlib.compress(bytes(16 << 20), 9)
write("png-bomb-text.png", png(2, 8, chunk(b"zTXt", b"Comment\0\0" + bomb)))
write("png-bomb-international.png", png(2, 8, chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + bomb)))
write("png-bomb-profile.png", png(2, 8, chunk(b"iCCP", b"icc\0\0" + bomb)))
write("png-lies-about-its-size.png", png(2, 8, size=(13000, 13000), data=b"\0" + bytes(900)))
write("png-20000x20000.png", png(2, 8, size=(20000, 20000), data=bytes(900)))


# ---- TIFF


def pack_bits(data):
    out = bytearray()
    for value, group in itertools.groupby(data):
        count = len(list(group))
        while count:
            run = min(count, 128)
            out += bytes((257 - run, value)) if run > 1 else bytes((0, value))
            count -= run
    return bytes(out)


PACKERS = {1: bytes, 8: zlib.compress, 32946: zlib.compress, 32773: pack_bits}
SHORT, LONG = 3, 4


def tiff(order, tags, parts, rows=HEIGHT, tile=None, compression=1, big=False, size=(WIDTH, HEIGHT)):
    """`parts` are the strips or tiles, not yet packed."""
    packed = [PACKERS[compression](part) for part in parts]
    if tags.get(266) == (SHORT, [2]):
        packed = [bytes(int(f"{byte:08b}"[::-1], 2) for byte in part) for part in packed]
    at = 16 if big else 8
    offsets = [at + sum(len(other) for other in packed[:n]) for n in range(len(packed))]
    body = b"".join(packed)
    body += bytes(len(body) % 2)
    tags = {256: (SHORT, [size[0]]), 257: (SHORT, [size[1]]), 259: (SHORT, [compression]), **tags}
    lengths = [len(part) for part in packed]
    if tile:
        tags.update({322: (SHORT, [tile[0]]), 323: (SHORT, [tile[1]]), 324: (LONG, offsets), 325: (LONG, lengths)})
    else:
        tags.update({273: (LONG, offsets), 278: (SHORT, [rows]), 279: (LONG, lengths)})
    tags = {tag: value for tag, value in sorted(tags.items()) if value is not None}
    directory = at + len(body)
    count, entry, value_bytes, number = ("Q", 20, 8, "Q") if big else ("H", 12, 4, "I")
    behind = directory + struct.calcsize(order + count) + entry * len(tags) + value_bytes
    entries, values = b"", b""
    for tag, (kind, numbers) in tags.items():
        value = numbers if isinstance(numbers, bytes) else struct.pack(f"{order}{len(numbers)}{'H' if kind == SHORT else 'I'}", *numbers)
        head = struct.pack(order + "HH" + number, tag, kind, len(numbers))
        if len(value) > value_bytes:
            entries += head + struct.pack(order + number, behind + len(values))
            values += value + bytes(len(value) % 2)
        else:
            entries += head + value.ljust(value_bytes, b"\0")
    magic = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    header = magic + (struct.pack(order + "HHQ", 8, 0, directory) if big else struct.pack(order + "I", directory))
    return header + body + struct.pack(order + count, len(tags)) + entries + bytes(value_bytes) + values


def kind(photometric, bits, samples=1, extras=(), form=None, **more):
    tags = {262: (SHORT, [photometric]), 258: (SHORT, [bits] * samples), 277: (SHORT, [samples])}
    if extras:
        tags[338] = (SHORT, list(extras))
    if form:
        tags[339] = (SHORT, [form] * samples)
    if photometric == 3:
        tags[320] = (SHORT, list(struct.unpack(f"<{3 << bits}H", noise(6 << bits, 5))))
    tags.update({int(tag[1:]): value for tag, value in more.items()})
    return tags


def strips(bits, samples, rows, seed=1, width=WIDTH, height=HEIGHT):
    stride = (width * bits * samples + 7) // 8
    data = noise(stride * height, seed)
    return [data[top * stride:(top + rows) * stride] for top in range(0, height, rows)]


KINDS = {
    "white-1": kind(0, 1), "grey-1": kind(1, 1), "white-2": kind(0, 2), "grey-2": kind(1, 2), "white-4": kind(0, 4),
    "grey-4": kind(1, 4), "white-8": kind(0, 8), "grey-8": kind(1, 8), "grey-12": kind(1, 12), "white-16": kind(0, 16),
    "grey-16": kind(1, 16), "grey-32": kind(1, 32), "signed-8": kind(1, 8, form=2), "signed-16": kind(1, 16, form=2),
    "signed-32": kind(1, 32, form=2), "grey-alpha": kind(1, 8, 2, (2,)), "grey-x": kind(1, 8, 2, (0,)),
    "grey-multiplied": kind(1, 8, 2, (1,)), "rgb-8": kind(2, 8, 3), "rgb-16": kind(2, 16, 3), "rgbx-8": kind(2, 8, 4, (0,)),
    "rgba-8": kind(2, 8, 4, (2,)), "rgba-8-multiplied": kind(2, 8, 4, (1,)), "rgba-8-untold": kind(2, 8, 4),
    "rgba-8-corel": kind(2, 8, 4, (999,)), "rgbaxx-8": kind(2, 8, 6, (2, 0, 0)), "rgba-16": kind(2, 16, 4, (2,)),
    "rgba-16-multiplied": kind(2, 16, 4, (1,)), "rgb-4": kind(2, 4, 3), "palette-1": kind(3, 1), "palette-2": kind(3, 2),
    "palette-4": kind(3, 4), "palette-8": kind(3, 8), "palette-alpha": kind(3, 8, 2, (2,)), "cmyk-8": kind(5, 8, 4),
    "cmykx-8": kind(5, 8, 5, (0,)), "cmyk-16": kind(5, 16, 4), "lab-8": kind(8, 8, 3), "rgb-mixed": kind(2, 8, 3, t258=(SHORT, [8, 8, 4])),
}
for name, tags in KINDS.items():
    bits, samples = max(tags[258][1]), tags[277][1][0]
    for order, label in (("<", "ii"), (">", "mm")):
        write(f"tiff-{name}-{label}.tif", tiff(order, tags, strips(bits, samples, 5), rows=5))
    write(f"tiff-{name}-deflate.tif", tiff("<", tags, strips(bits, samples, 5), rows=5, compression=8))
# Greys and colours that say what becomes of long samples, and floats that are no noise.
ramp = [0, 1, 64, 127, 128, 200, 254, 255, 256, 1000, 0x7FFF, 0x8000, 0xFFFF, 0x1234, 5, 6, 7, 8, 9]
write("tiff-ramp-16.tif", tiff("<", kind(1, 16), [struct.pack("<19H", *ramp) * HEIGHT]))
write("tiff-ramp-signed-16.tif", tiff(">", kind(1, 16, form=2), [struct.pack(">19h", *(n - 0x8000 for n in ramp)) * HEIGHT]))
floats = [-1e30, -1, -0.0, 0.4, 0.99, 1, 127.5, 128, 254.9, 255, 255.1, 1e30, float("inf"), float("-inf"), 3, 4, 5, 6, 7]
for order in "<>":
    write(f"tiff-float-{'im'[order == '>'] * 2}.tif", tiff(order, kind(1, 32, form=3), [struct.pack(f"{order}19f", *floats) * HEIGHT]))
for name in ("grey-1", "grey-8", "rgb-8", "palette-4", "grey-16"):
    tags = KINDS[name]
    bits, samples = tags[258][1][0], tags[277][1][0]
    whole = strips(bits, samples, 5)
    write(f"tiff-{name}-packbits.tif", tiff(">", tags, whole, rows=5, compression=32773))
    write(f"tiff-{name}-old-deflate.tif", tiff("<", tags, whole, rows=5, compression=32946))
    write(f"tiff-{name}-big.tif", tiff("<", tags, whole, rows=5, big=True))
    write(f"tiff-{name}-reversed.tif", tiff("<", {**tags, 266: (SHORT, [2])}, whole, rows=5))
    write(f"tiff-{name}-reversed-deflate.tif", tiff("<", {**tags, 266: (SHORT, [2])}, whole, rows=5, compression=8))
for bits, samples, extras in ((8, 1, ()), (16, 1, ()), (8, 3, ()), (16, 3, ()), (8, 4, (2,)), (8, 4, (1,)), (8, 4, (0,))):
    photometric = 1 if samples == 1 else 2
    name = f"tiff-{photometric}-{bits}x{samples}{''.join(map(str, extras))}"
    tags = kind(photometric, bits, samples, extras)
    across, down = 2, 1
    tiles = [noise(16 * 16 * samples * bits // 8, n) for n in range(across * down)]
    for compression in (1, 8):
        write(f"{name}-tiles-{compression}.tif", tiff("<", tags, tiles, tile=(16, 16), compression=compression))
        if samples > 1:
            planar = {**tags, 284: (SHORT, [2])}
            planes = [part for plane in range(samples) for part in strips(bits, 1, 5, plane)]
            write(f"{name}-planes-{compression}.tif", tiff("<", planar, planes, rows=5, compression=compression))
            planes = [noise(16 * 16 * bits // 8, n) for n in range(across * down * samples)]
            write(f"{name}-plane-tiles-{compression}.tif", tiff("<", planar, planes, tile=(16, 16), compression=compression))
    for order in "<>":
        differenced = {**tags, 317: (SHORT, [2])}
        write(f"{name}-predictor-{'im'[order == '>']}.tif", tiff(order, differenced, strips(bits, samples, 5), rows=5, compression=8))
for value in range(1, 9):
    write(f"tiff-orientation-{value}.tif", tiff("<", {**KINDS["rgb-8"], 274: (SHORT, [value])}, strips(8, 3, 13)))
write("tiff-xmp.tif", tiff("<", {**KINDS["rgb-8"], 700: (1, XMP % 6)}, strips(8, 3, 13)))
rgb = Image.frombytes("RGB", (WIDTH, HEIGHT), noise(WIDTH * HEIGHT * 3, 3))
for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16"):
    picture = rgb.convert("L" if mode == "I;16" else mode)
    picture = picture if mode != "I;16" else Image.frombytes("I;16", (WIDTH, HEIGHT), noise(WIDTH * HEIGHT * 2, 3))
    for coding in ("tiff_lzw", "group4", "group3", "jpeg", "zstd", "packbits"):
        if (coding in ("group4", "group3")) == (mode == "1") and (coding != "jpeg" or mode in ("L", "RGB", "CMYK")):
            picture.save(FOLDER / f"tiff-pillow-{mode.replace(';', '')}-{coding}.tif", compression=coding)
    if mode in ("L", "RGB", "I;16"):
        picture.save(FOLDER / f"tiff-pillow-{mode.replace(';', '')}-lzw-predictor.tif", compression="tiff_lzw", tiffinfo={317: 2})
write("tiff-no-photometric.tif", tiff("<", {**KINDS["grey-8"], 262: None}, strips(8, 1, 13)))
write("tiff-no-bits.tif", tiff("<", {**KINDS["grey-1"], 258: None}, strips(1, 1, 13)))
write("tiff-one-bits-for-all.tif", tiff("<", {**KINDS["rgb-8"], 258: (SHORT, [8])}, strips(8, 3, 13)))
write("tiff-no-width.tif", tiff("<", {**KINDS["grey-8"], 256: None}, strips(8, 1, 13)))
write("tiff-no-palette.tif", tiff("<", {**KINDS["palette-8"], 320: None}, strips(8, 1, 13)))
write("tiff-short-palette.tif", tiff("<", {**KINDS["palette-8"], 320: (SHORT, [0, 0x8000, 0xFFFF] * 2)}, strips(8, 1, 13)))
write("tiff-cut.tif", tiff("<", {**KINDS["grey-8"], 273: None}, strips(8, 1, 13))[:200])
write("tiff-offset-behind-the-end.tif", tiff("<", KINDS["grey-8"], strips(8, 1, 13)).replace(struct.pack("<HHII", 273, 4, 1, 8), struct.pack("<HHII", 273, 4, 1, 1 << 31)))
write("tiff-deflate-short.tif", tiff("<", KINDS["grey-8"], [bytes(100)], compression=8))
write("tiff-deflate-noise.tif", tiff("<", KINDS["grey-8"], strips(8, 1, 13), compression=8).replace(b"x\x9c", b"\0\0"))
write("tiff-too-few-strips.tif", tiff("<", KINDS["grey-8"], strips(8, 1, 5)[:2], rows=5))
write("tiff-lies-about-its-size.tif", tiff("<", KINDS["rgb-8"], strips(8, 3, 13), size=(13000, 13000)))
write("tiff-lies-about-its-size-deflate.tif", tiff("<", KINDS["rgb-8"], strips(8, 3, 13), rows=13000, compression=8, size=(13000, 13000)))
write("tiff-huge.tif", tiff("<", KINDS["rgb-8"], strips(8, 3, 13), size=(65000, 65000)))
write("tiff-huge-tiles.tif", tiff("<", KINDS["rgb-8"], [bytes(64)], tile=(65520, 65520)))
write("tiff-zero-rows.tif", tiff("<", KINDS["grey-8"], strips(8, 1, 13), rows=0))
write("tiff-directory-loop.tif", (lambda file: file[:-4] + file[4:8])(tiff("<", kind(1, 8, t339=None), strips(8, 1, 13))))
write("tiff-no-directory.tif", b"II*\0\xff\xff\xff\x7f" + bytes(100))
write("tiff-only-header.tif", b"MM\0*\0\0\0\x08")

# ---- What else lies, and what else turns

straight = io.BytesIO()
rgb.save(straight, "WEBP", lossless=True, exif=b"Exif\0\0" + exif(8))
write("webp-exif-8.webp", straight.getvalue())
alpha = Image.frombytes("RGBA", (WIDTH, HEIGHT), noise(WIDTH * HEIGHT * 4, 6))
for value in (3, 6):
    out = io.BytesIO()
    alpha.save(out, "WEBP", lossless=True, exact=True, xmp=XMP % value)
    write(f"webp-xmp-{value}.webp", out.getvalue())


def riff(*chunks):
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


inner = straight.getvalue()
inner = inner[inner.index(b"VP8L") + 8:][: struct.unpack("<I", inner[inner.index(b"VP8L") + 4:][:4])[0]]
canvas = bytes(4) + (16383).to_bytes(3, "little") * 2
write("webp-huge-canvas.webp", riff((b"VP8X", canvas), (b"VP8L", inner)))
write("webp-huge-frame.webp", riff((b"VP8L", b"\x2f" + (0xFFFFFFF).to_bytes(4, "little") + inner[5:])))
write("gif-huge-canvas.gif", b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0xF0, 0, 0) + bytes(6) + b",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;")
write("gif-huge-frame.gif", b"GIF89a" + struct.pack("<HHBBB", 9, 9, 0xF0, 0, 0) + bytes(6) + b",\0\0\0\0\xff\xff\xff\xff\0\2\2\x44\1\0;")
write("gif-large-canvas.gif", b"GIF89a" + struct.pack("<HHBBB", 300, 200, 0xF0, 0, 0) + bytes((1, 2, 3, 4, 5, 6)) + b",\x09\0\7\0\1\0\1\0\0\2\2\x4c\1\0;")


def bmp(bits, masks, data, size=40):
    masks = struct.pack(f"<{len(masks)}I", *masks)
    head = struct.pack("<IiiHHIIiiII", size, WIDTH, HEIGHT, 1, bits, 3, 0, 0, 0, 0, 0) + (masks if size > 40 else b"")
    head = head.ljust(size, b"\0") + (masks if size == 40 else b"")
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(data), 0, 0, 14 + len(head)) + head + data


pixels = noise(WIDTH * HEIGHT * 4, 8)
for name, masks in {
    "bgra": (0xFF0000, 0xFF00, 0xFF, 0xFF000000), "rgba": (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
    "abgr": (0xFF000000, 0xFF0000, 0xFF00, 0xFF), "zeros": (0, 0, 0, 0), "bgrx": (0xFF0000, 0xFF00, 0xFF, 0),
}.items():
    write(f"bmp-32-{name}.bmp", bmp(32, masks, pixels, 124))
write("bmp-32-zeros-short.bmp", bmp(32, (0, 0, 0), pixels))
