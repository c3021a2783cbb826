//! A sign per role, twelve pixels square, so that roles differ without colour.

use super::super::picture::Role;

/// What stands inside the sign's group.
pub(super) fn sign(role: Role) -> &'static str {
    match role {
        // Out of a wall.
        Role::Source => "<path d=\"M1.5,1.5 V10.5 M4,6 H10.5 M7.5,3 L10.5,6 L7.5,9\"/>",
        // A picture.
        Role::Decode => {
            "<path d=\"M1,2 H11 V10 H1 Z M1.5,9 L4.5,6 L7,8.5 L8.5,7 L10.5,9\"/><circle cx=\"8.3\" cy=\"4.4\" r=\"1.1\"/>"
        }
        // A stack.
        Role::Batch => "<path d=\"M2,2.5 H10 M2,6 H10 M2,9.5 H10\"/>",
        // A net.
        Role::Infer => {
            "<path d=\"M2,2.5 L6,6 L2,9.5 M6,6 H10.5\"/><circle cx=\"2\" cy=\"2.5\" r=\"1.6\"/><circle cx=\"2\" cy=\"9.5\" r=\"1.6\"/>\
             <circle cx=\"6\" cy=\"6\" r=\"1.6\"/><circle cx=\"10.3\" cy=\"6\" r=\"1.6\"/>"
        }
        // A diamond.
        Role::Transform => "<path d=\"M6,1 L11,6 L6,11 L1,6 Z\"/>",
        // Into a wall.
        Role::Sink => "<path d=\"M10.5,1.5 V10.5 M1.5,6 H8 M5,3 L8,6 L5,9\"/>",
    }
}
