"""Makes the pictures of this folder, and what Pillow 13.0.0 says of them.

    python -m venv venv && venv/bin/pip install pillow==13.0.0 opencv-python-headless && venv/bin/python make.py

OpenCV only writes the JPEGs whose subsampling Pillow cannot write.

`given/` holds one small file of each kind, `pillow/` the RGB that Pillow makes of it, `resized/` what Pillow's resize makes of
`given/source.png`, and `pillow.json` sizes, orientations, refusals, and whether Pillow still opens each file cut at some places.
"""

import io
import json
import math
import random
import shutil
import struct
import zlib
from pathlib import Path

import cv2
import numpy
import PIL
from PIL import Image, ImageFile, ImageOps

assert PIL.__version__ == "13.0.0", PIL.__version__
HERE = Path(__file__).parent
GIVEN, PILLOW, RESIZED = HERE / "given", HERE / "pillow", HERE / "resized"
for folder in (GIVEN, PILLOW, RESIZED):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def picture(width, height, seed=1, noise=14):
    """Smooth colour, a few hard edges, some noise."""
    dice = random.Random(seed)
    image = Image.new("RGB", (width, height))
    put = image.load()
    for y in range(height):
        for x in range(width):
            u, v = x / max(width - 1, 1), y / max(height - 1, 1)
            rgb = [128 + 100 * math.sin(5 * u + 2 * v + seed), 128 + 90 * math.cos(4 * v - 3 * u), 255 * u * (1 - v)]
            if (u - 0.6) ** 2 + (v - 0.4) ** 2 < 0.05:
                rgb = [230, 60, 40]
            if 0.1 < u < 0.35 and 0.55 < v < 0.9:
                rgb = [20, 40, 200]
            put[x, y] = tuple(max(0, min(255, int(c + dice.gauss(0, noise)))) for c in rgb)
    return image


def save(name, image, **options):
    image.save(GIVEN / name, **options)


def write(name, data):
    (GIVEN / name).write_bytes(data)


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


BASE = picture(43, 37)

# --- JPEG
for sampling, name in ((0, "444"), (1, "422"), (2, "420")):
    for progressive in (False, True):
        suffix = "-progressive" if progressive else ""
        save(f"jpeg-{name}{suffix}.jpg", BASE, quality=85, subsampling=sampling, progressive=progressive)
for sampling, name in ((0x411111, "411"), (0x121111, "440")):
    for progressive in (0, 1):
        options = [cv2.IMWRITE_JPEG_QUALITY, 85, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling, cv2.IMWRITE_JPEG_PROGRESSIVE, progressive]
        data = cv2.imencode(".jpg", numpy.asarray(BASE)[:, :, ::-1], options)[1].tobytes()
        write(f"jpeg-{name}{'-progressive' if progressive else ''}.jpg", data)
save("jpeg-grey.jpg", BASE.convert("L"), quality=85)
save("jpeg-grey-progressive.jpg", BASE.convert("L"), quality=85, progressive=True)
save("jpeg-rgb.jpg", BASE, quality=90, keep_rgb=True)
save("jpeg-q100.jpg", BASE, quality=100, subsampling=0)
save("jpeg-q5.jpg", BASE, quality=5)
save("jpeg-cmyk.jpg", BASE.convert("CMYK"), quality=90)
save("jpeg-restarts.jpg", BASE, quality=85, restart_marker_blocks=3)
save("jpeg-restarts-progressive.jpg", BASE, quality=85, restart_marker_rows=1, progressive=True)
save("jpeg-optimized.jpg", BASE, quality=85, optimize=True)
write("jpeg-trailing-bytes.jpg", encoded(BASE, "jpeg", quality=85) + b"\0\xff\xd9trailing \xff\xd8\xff bytes" * 3)
for width, height in ((1, 1), (1, 37), (37, 1), (2, 3), (8, 8), (9, 7), (16, 16), (17, 33)):
    save(f"jpeg-{width}x{height}.jpg", picture(width, height), quality=90)
save("jpeg-1x37-444.jpg", picture(1, 37), quality=90, subsampling=0)


def with_adobe(data, transform):
    """Puts or replaces the Adobe marker."""
    marker = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0" + bytes([transform])
    at = data.find(b"\xff\xee\0\x0eAdobe")
    if at >= 0:
        data = data[:at] + data[at + 16:]
    return data[:2] + marker + data[2:]


cmyk = encoded(BASE.convert("CMYK"), "jpeg", quality=90)
write("jpeg-ycck.jpg", with_adobe(cmyk, 2))
at = cmyk.find(b"\xff\xee")
write("jpeg-cmyk-without-adobe.jpg", cmyk[:at] + cmyk[at + 16:])
base = encoded(BASE, "jpeg", quality=85)
write("jpeg-adobe-transform-1.jpg", with_adobe(base, 1))
plain = base[:2] + base[20:]  # without the JFIF segment
assert base[2:4] == b"\xff\xe0"
write("jpeg-no-app.jpg", plain)
write("jpeg-jfif-and-adobe-0.jpg", base[:20] + with_adobe(base, 0)[2:18] + base[20:])
write("jpeg-comment-and-fill.jpg", base[:2] + b"\xff\xff\xff\xfe\0\x07hello" + base[2:])
write("jpeg-cut-with-end-marker.jpg", base[: len(base) * 3 // 4] + b"\xff\xd9")
write("jpeg-garbage-before-end.jpg", base[:-2] + b"\0garbage" + base[-2:])
damaged = bytearray(base)
for n in range(len(base) * 2 // 3, len(base) * 2 // 3 + 6):
    damaged[n] ^= 0x5A if damaged[n] ^ 0x5A != 0xFF else 0
write("jpeg-damaged-scan.jpg", bytes(damaged))
sof = base.find(b"\xff\xc0")
for marker, name in ((0xC9, "arithmetic"), (0xC3, "lossless"), (0xC5, "hierarchical")):
    write(f"jpeg-{name}.jpg", base[: sof + 1] + bytes([marker]) + base[sof + 2:])
write("jpeg-12-bit.jpg", base[: sof + 4] + b"\x0c" + base[sof + 5:])
write("jpeg-no-height.jpg", base[: sof + 5] + b"\0\0" + base[sof + 7:])
write("jpeg-huge-header.jpg", base[: sof + 5] + b"\xff\xff\xff\xff" + base[sof + 9:])
write("jpeg-no-tables.jpg", base[:20] + base[sof:])

# --- orientation
tall = picture(18, 26, seed=3)
exif = Image.Exif()
for value in range(1, 9):
    exif[0x0112] = value
    save(f"exif-{value}.jpg", tall, quality=92, exif=exif)
exif[0x0112] = 6
save("exif-6.png", tall, exif=exif)
save("exif-6.webp", tall, exif=exif, lossless=True)
block = exif.tobytes()
plain_jpeg = encoded(tall, "jpeg", quality=92)


def app1(body):
    return plain_jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + plain_jpeg[2:]


write("exif-broken-offset.jpg", app1(b"Exif\0\0II*\0\xff\xff\xff\x7f"))
write("exif-cut.jpg", app1(block[: len(block) // 2]))
write("exif-noise.jpg", app1(b"Exif\0\0" + bytes(random.Random(5).randbytes(300))))
write("exif-empty.jpg", app1(b"Exif\0\0"))
entries = struct.pack("<H", 2) + struct.pack("<HHII", 0x011A, 5, 1, 0x40) + struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0)
tiff = b"II*\0\x08\0\0\0" + entries + b"\0\0\0\0"
write("exif-rational-by-zero.jpg", app1(b"Exif\0\0" + tiff.ljust(0x40, b"\0") + struct.pack("<II", 72, 0)))

write("xmp-orientation.jpg", app1(b'http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation="8"/>'))
write("xmp-not-utf8.jpg", app1(b"http://ns.adobe.com/xap/1.0/\0\xff\xfe\xfa<x/>"))

# --- PNG
def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png(width, height, color, depth, interlaced=False, extra=b"", seed=7, palette=None, tail=True):
    """Any colour type and depth, with samples from a formula."""
    dice = random.Random(seed)
    n = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    most = (1 << depth) - 1
    if color == 3 and palette:
        most = min(most, palette - 1)

    def sample(x, y, c):
        value = (math.sin(x / 9 + c) * math.cos(y / 7 - c) + 1) / 2
        # Small and large values both, where 16 bits are clipped.
        value = value**4 / 50 if depth == 16 and color == 0 and y % 2 else value
        return max(0, min(most, int(value * most + dice.random() * most / 16)))

    samples = [[[sample(x, y, c) for c in range(n)] for x in range(width)] for y in range(height)]

    def packed(pixels):
        bits = "".join(format(s, f"0{depth}b") for pixel in pixels for s in pixel)
        bits += "0" * (-len(bits) % 8)
        return b"\0" + bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))

    if interlaced:
        rows = [packed([samples[y][x] for x in range(left, width, dx)])
                for left, top, dx, dy in ADAM7 for y in range(top, height, dy) if left < width]
    else:
        rows = [packed(row) for row in samples]
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    if color == 3:
        colors = b"".join(bytes((n * 37 % 256, 255 - n * 11 % 256, n * 5 % 256)) for n in range(palette or 1 << depth))
        extra = chunk(b"PLTE", colors) + extra
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(b"".join(rows), 9))
    return out + (chunk(b"IEND", b"") if tail else b"")


for color, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))):
    for depth in depths:
        write(f"png-{color}-{depth}.png", png(33, 21, color, depth))
        write(f"png-{color}-{depth}-interlaced.png", png(33, 21, color, depth, True))
for width, height in ((1, 1), (1, 30), (30, 1), (3, 2)):
    write(f"png-{width}x{height}.png", png(width, height, 2, 8))
    write(f"png-{width}x{height}-interlaced.png", png(width, height, 2, 8, True))
write("png-trns-palette.png", png(33, 21, 3, 4, extra=chunk(b"tRNS", bytes(range(0, 160, 10)))))
write("png-trns-grey.png", png(33, 21, 0, 8, extra=chunk(b"tRNS", b"\0\x40")))
write("png-trns-grey-16.png", png(33, 21, 0, 16, extra=chunk(b"tRNS", b"\0\x40")))
write("png-trns-rgb.png", png(33, 21, 2, 8, extra=chunk(b"tRNS", b"\0\x40\0\x40\0\x40")))
write("png-short-palette.png", png(33, 21, 3, 8, palette=5).replace(chunk(b"PLTE", b""), b""))
long_index = png(33, 21, 3, 4, palette=16)
at = long_index.find(b"PLTE") - 4
write("png-index-beyond-palette.png", long_index[:at] + chunk(b"PLTE", bytes(range(30))) + long_index[at + 12 + 48:])
write("png-without-end.png", png(33, 21, 2, 8, tail=False))
write("png-trailing-bytes.png", png(33, 21, 2, 8) + b"more" * 20)
good = png(33, 21, 2, 8)
at = good.find(b"IDAT")
size = struct.unpack(">I", good[at - 4:at])[0]
body = good[at + 4:at + 4 + size]
write("png-split-idat.png", good[:at - 4] + b"".join(chunk(b"IDAT", body[n:n + 50]) for n in range(0, size, 50)) + good[at + 8 + size:])
write("png-idat-crc-wrong.png", good[:at + 4 + size] + b"\0\0\0\0" + good[at + 8 + size:])
write("png-adler-wrong.png", good[:at - 4] + chunk(b"IDAT", body[:-4] + b"\0\0\0\0") + good[at + 8 + size:])
write("png-header-crc-wrong.png", good[:29] + b"\0\0\0\0" + good[33:])
write("png-gamma-and-text.png", png(33, 21, 2, 8, extra=chunk(b"gAMA", b"\0\0\xb1\x8f") + chunk(b"tEXt", b"Title\0x")))
write("png-noise-idat.png", good[:at - 4] + chunk(b"IDAT", random.Random(2).randbytes(200)) + chunk(b"IEND", b""))
write("png-zero-width.png", good[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 21, 8, 2, 0, 0, 0)) + good[33:])
write("png-bomb.png", good[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 20000, 20000, 8, 2, 0, 0, 0)) + good[33:])
save("png-animated.png", picture(20, 14, 1), save_all=True, append_images=[picture(20, 14, 2)], duration=50)

# --- GIF
small = picture(32, 24, seed=4, noise=2)
save("gif-plain.gif", small.quantize(64))
save("gif-interlaced.gif", small.quantize(64), interlace=1)
save("gif-grey.gif", small.convert("L"))
save("gif-bits-1.gif", small.convert("1"))
save("gif-transparent.gif", small.quantize(16), transparency=3)
save("gif-animated.gif", small.quantize(32), save_all=True, append_images=[picture(32, 24, seed=9).quantize(32)], duration=40)


def gif(screen, frame, colors, indices, background=0, local=None, transparent=None, tail=b";"):
    """One frame at some place of the screen, its codes uncompressed."""
    left, top, width, height = frame
    bits = 3
    out = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80 | bits - 1, background, 0) + colors.ljust(3 << bits, b"\0")
    if transparent is not None:
        out += b"!\xf9\4\1\0\0" + bytes([transparent]) + b"\0"
    out += b"," + struct.pack("<HHHHB", left, top, width, height, 0x80 | bits - 1 if local else 0)
    if local:
        out += local.ljust(3 << bits, b"\0")
    codes = []
    for n, index in enumerate(indices):
        if n % 6 == 0:
            codes.append(8)  # clear, so that codes stay 4 bits wide
        codes.append(index)
    codes.append(9)
    text = "".join(format(code, "04b")[::-1] for code in codes)
    text += "0" * (-len(text) % 8)
    packed = bytes(int(text[n:n + 8][::-1], 2) for n in range(0, len(text), 8))
    blocks = b"".join(bytes([len(packed[n:n + 255])]) + packed[n:n + 255] for n in range(0, len(packed), 255))
    return out + bytes([bits]) + blocks + b"\0" + tail


COLORS = bytes((250, 10, 10, 10, 250, 10, 10, 10, 250, 200, 200, 0, 0, 200, 200, 90, 90, 90, 255, 255, 255, 0, 0, 0))
LOCAL = COLORS[::-1]
DOTS = [(n * 3 + n // 7) % 8 for n in range(6 * 4)]
write("gif-small-frame.gif", gif((10, 8), (2, 3, 6, 4), COLORS, DOTS, background=3))
write("gif-small-frame-transparent.gif", gif((10, 8), (2, 3, 6, 4), COLORS, DOTS, background=3, transparent=5))
write("gif-local-palette.gif", gif((6, 4), (0, 0, 6, 4), COLORS, DOTS, local=LOCAL))
without = gif((6, 4), (0, 0, 6, 4), COLORS, DOTS)
write("gif-without-palette.gif", without[:10] + bytes([without[10] & 0x7F]) + without[11:13] + without[13 + 24:])
write("gif-frame-beyond-screen.gif", gif((5, 3), (2, 2, 6, 4), COLORS, DOTS))
write("gif-without-trailer.gif", gif((6, 4), (0, 0, 6, 4), COLORS, DOTS, tail=b""))
write("gif-too-few-pixels.gif", gif((6, 4), (0, 0, 6, 4), COLORS, DOTS[:15]))
write("gif-too-many-pixels.gif", gif((6, 4), (0, 0, 6, 4), COLORS, DOTS + DOTS))
write("gif-no-frame.gif", gif((6, 4), (0, 0, 6, 4), COLORS, DOTS)[:37] + b";")

# --- WebP
soft = picture(50, 34, seed=6, noise=5)
save("webp-lossy.webp", soft, quality=80)
save("webp-lossy-odd.webp", picture(33, 17, seed=6), quality=60)
save("webp-lossy-1x1.webp", picture(1, 1, seed=6), quality=60)
save("webp-lossless.webp", soft, lossless=True)
alpha = soft.copy()
alpha.putalpha(soft.convert("L"))
clear = alpha.copy()
clear.putalpha(Image.linear_gradient("L").resize((50, 34)).point(lambda a: a if a > 128 else 0))
save("webp-lossy-alpha.webp", alpha, quality=80)
save("webp-lossless-alpha.webp", clear, lossless=True)
save("webp-lossless-alpha-exact.webp", clear, lossless=True, exact=True)
save("webp-animated.webp", soft, save_all=True, append_images=[picture(50, 34, seed=8)], duration=50, quality=80)
save("webp-animated-alpha.webp", clear, save_all=True, append_images=[picture(50, 34, seed=8)], duration=50, lossless=True)
webp = (GIVEN / "webp-lossy.webp").read_bytes()
write("webp-trailing-bytes.webp", webp + b"more" * 10)
write("webp-damaged.webp", webp[:200] + bytes(b ^ 0x33 for b in webp[200:260]) + webp[260:])
lossless = (GIVEN / "webp-lossless.webp").read_bytes()
write("webp-lossless-damaged.webp", lossless[:60] + bytes(b ^ 0x33 for b in lossless[60:100]) + lossless[100:])

# --- BMP
save("bmp-24.bmp", BASE)
save("bmp-32.bmp", clear)
save("bmp-8.bmp", small.quantize(60))
save("bmp-8-grey.bmp", small.convert("L"))
save("bmp-1.bmp", small.convert("1"))


def bmp(width, height, bits, rows, compression=0, palette=b"", masks=b"", size=40, colors=0):
    offset = 14 + size + len(palette) + (len(masks) if size == 40 else 0)
    head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, len(rows), 0, 0, colors, 0)
    if size > 40:
        head += masks.ljust(size - 40, b"\0")
        masks = b""
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + head + masks + palette + rows


def ramp(n):
    return b"".join(bytes((n * 16 % 256, 255 - n * 7 % 256, n * 50 % 256, 0)) for n in range(n))


dice = random.Random(11)
write("bmp-4.bmp", bmp(9, 5, 4, dice.randbytes(8 * 5), palette=ramp(16)))
write("bmp-1-colours.bmp", bmp(37, 5, 1, dice.randbytes(8 * 5), palette=ramp(2)))
write("bmp-16-555.bmp", bmp(9, 5, 16, dice.randbytes(20 * 5)))
write("bmp-16-565.bmp", bmp(9, 5, 16, dice.randbytes(20 * 5), 3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)))
write("bmp-32-masks.bmp", bmp(9, 5, 32, dice.randbytes(36 * 5), 3, masks=struct.pack("<IIII", 0xFF, 0xFF00, 0xFF0000, 0xFF000000), size=56))
write("bmp-32-v4.bmp", bmp(9, 5, 32, dice.randbytes(36 * 5), 3, masks=struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000), size=108))
write("bmp-top-down.bmp", bmp(9, -5, 24, dice.randbytes(28 * 5)))
write("bmp-few-colours.bmp", bmp(9, 5, 8, bytes(n % 7 for n in range(12 * 5)), palette=ramp(7), colors=7))
write("bmp-index-beyond-palette.bmp", bmp(9, 5, 8, bytes(n % 30 for n in range(12 * 5)), palette=ramp(7), colors=7))
write("bmp-os2.bmp", b"BM" + struct.pack("<IHHI", 0, 0, 0, 26 + 48) + struct.pack("<IHHHH", 12, 9, 5, 1, 4)
      + b"".join(ramp(16)[n * 4:n * 4 + 3] for n in range(16)) + dice.randbytes(8 * 5))
runs8 = b"\x05\x03\x04\x07\0\0" + b"\0\x05\x01\x02\x03\x04\x05\0" + b"\x04\x09\0\0" + b"\x09\x0a\0\0" + b"\x02\x01\0\x02\x03\x01" + b"\x04\x05\0\0\0\x01"
write("bmp-rle8.bmp", bmp(9, 5, 8, runs8, 1, palette=ramp(16), colors=16))
full8 = b"".join(b"\x05" + bytes([y]) + b"\x04" + bytes([y + 7]) + b"\0\0" for y in range(5)) + b"\0\1"
write("bmp-rle8-full.bmp", bmp(9, 5, 8, full8, 1, palette=ramp(16), colors=16))
full4 = b"".join(b"\x05" + bytes([y * 16 + 3]) + b"\0\x04\x12\x34" + b"\0\0" for y in range(5)) + b"\0\1"
write("bmp-rle4.bmp", bmp(9, 5, 4, full4, 2, palette=ramp(16)))
odd4 = b"".join(b"\x04" + bytes([y * 16 + 3]) + b"\0\x05\x12\x34\x50\0" + b"\0\0" for y in range(5)) + b"\0\1"
write("bmp-rle4-odd.bmp", bmp(9, 5, 4, odd4, 2, palette=ramp(16)))
long8 = b"".join(b"\x0c" + bytes([y]) + b"\0\0" for y in range(5)) + b"\0\1"
write("bmp-rle8-run-too-long.bmp", bmp(9, 5, 8, long8, 1, palette=ramp(16), colors=16))
write("bmp-huge.bmp", bmp(30000, 30000, 24, b"\0" * 64))
write("bmp-jpeg-inside.bmp", bmp(9, 5, 0, base, 4))

# --- no pictures
write("empty.jpg", b"")
write("text.jpg", b"This is not a picture.\n")
write("page.jpg", b"<!DOCTYPE html>\n<html><body>404 not found</body></html>\n")
write("noise.jpg", random.Random(1).randbytes(200))
write("png-named.jpg", png(9, 7, 2, 8))

# --- what Pillow says
def opened(data):
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        orientation = image.getexif().get(0x0112, 1)
        kind = image.format
        return kind, orientation, ImageOps.exif_transpose(image).convert("RGB")


def cuts(data):
    n = len(data)
    places = [n * share // 1000 for share in (20, 250, 500, 900, 990, 999)] + [n - 1, n - 2, n - 3]
    result = []
    for place in sorted(set(place for place in places if 0 < place < n)):
        try:
            whole = opened(data)[2].tobytes()
            result.append([place, "same" if opened(data[:place])[2].tobytes() == whole else "other"])
        except Exception:
            result.append([place, "refused"])
    return result


told = {}
for path in sorted(GIVEN.iterdir()):
    data = path.read_bytes()
    try:
        kind, orientation, rgb = opened(data)
    except Exception as error:
        told[path.name] = {"refused": f"{type(error).__name__}: {error}"[:120]}
        continue
    # By its bytes alone: `save` would write the original's metadata too.
    Image.frombytes("RGB", rgb.size, rgb.tobytes()).save(PILLOW / f"{path.name}.png", optimize=True)
    told[path.name] = {"format": kind.lower(), "size": rgb.size, "orientation": orientation, "cuts": cuts(data)}

# --- resizing
source = picture(61, 47, seed=12)
sources = {"source": source, "column": picture(1, 40, seed=13), "row": picture(40, 1, seed=14), "dot": picture(1, 1, seed=15)}
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1}
resized = []
for name, image in sources.items():
    image.save(RESIZED / f"{name}.png", optimize=True)
    sizes = [(61, 47), (30, 23), (17, 47), (61, 11), (72, 56), (64, 20), (7, 90), (1, 1), (1, 60), (75, 1), (5, 3)]
    for width, height in sizes if name == "source" else sizes[3:7]:
        for filter_name, value in FILTERS.items():
            if (width, height) == image.size and filter_name != "bicubic":
                continue  # nothing to see: a copy
            out = image.resize((width, height), value)
            file = f"{name}-{width}x{height}-{filter_name}.png"
            out.save(RESIZED / file, optimize=True)
            resized.append({"source": name, "size": [width, height], "filter": filter_name, "file": file})

(HERE / "pillow.json").write_text(json.dumps({"files": told, "resized": resized}).replace("}, ", "},\n") + "\n")
total = sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file())
print(len(told), "files,", len(resized), "resizes,", total, "bytes")
