//! One colour per role, the same in every rendering, for light and dark paper.

use super::picture::Role;

/// The colours of one role on one paper, as `#rrggbb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tint {
    /// The strong colour: stripe, outline.
    pub strong: &'static str,
    /// The faint colour: the inside of a box.
    pub faint: &'static str,
}

/// The colours on light paper.
#[must_use]
pub fn light(role: Role) -> Tint {
    match role {
        Role::Source => Tint { strong: "#15803d", faint: "#f0faf3" },
        Role::Decode => Tint { strong: "#0369a1", faint: "#eff8fd" },
        Role::Batch => Tint { strong: "#57606f", faint: "#f5f6f8" },
        Role::Infer => Tint { strong: "#6d28d9", faint: "#f6f2fe" },
        Role::Transform => Tint { strong: "#b45309", faint: "#fdf7ec" },
        Role::Sink => Tint { strong: "#be185d", faint: "#fdf1f6" },
    }
}

/// The colours on dark paper.
#[must_use]
pub fn dark(role: Role) -> Tint {
    match role {
        Role::Source => Tint { strong: "#2f9e5c", faint: "#15241b" },
        Role::Decode => Tint { strong: "#2b8cc4", faint: "#13212b" },
        Role::Batch => Tint { strong: "#7d8797", faint: "#1d2127" },
        Role::Infer => Tint { strong: "#8f62ea", faint: "#201a30" },
        Role::Transform => Tint { strong: "#cf7a1c", faint: "#2a2014" },
        Role::Sink => Tint { strong: "#d9477f", faint: "#2b1720" },
    }
}

/// Edges that carry rejects, on light paper.
pub const REJECTS_LIGHT: &str = "#b42318";
/// Edges that carry rejects, on dark paper.
pub const REJECTS_DARK: &str = "#f0776b";
