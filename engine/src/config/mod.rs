//! YAML to `Document`, with the position of everything in it, and the diagnostics that name those positions.
