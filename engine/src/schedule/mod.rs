//! `Graph` to `Plan`: placement, pool sizes and queue bounds, by pure functions over an inventory.
