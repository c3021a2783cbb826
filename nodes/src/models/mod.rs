//! Model architectures in candle, one file each.
