"""Makes the photographs that `benches/decode.rs` decodes, of `pipelines/photos/coffee.png` (CC0). Pillow 13.0.0 made the committed ones."""

from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
PHOTO = HERE.parent.parent / "pipelines/photos/coffee.png"

with Image.open(PHOTO) as photo:
    # 600×400, of which the middle 533×400 is of the same shape as 500×375.
    small = photo.convert("RGB").resize((500, 375), Image.Resampling.LANCZOS, box=(33, 0, 566, 400))
for name, sampling in [("420", "4:2:0"), ("444", "4:4:4")]:
    small.save(HERE / f"coffee-{name}.jpg", quality=88, subsampling=sampling)
