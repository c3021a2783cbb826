//! Pictures of a graph: text, dot, mermaid, svg, html, json.
//!
//! Everything starts from a [`Picture`], a plain value of names, texts and figures; each rendering is a pure function
//! of it, one file each, and one line in [`RENDERINGS`]. The same picture always gives the same bytes.
//!
//! Nothing here knows where a picture comes from: no graph library, no kind, no run. Every text in a picture is taken
//! as hostile: a name may hold quotes, markup, line ends or terminal escapes, and each rendering is valid and harmless
//! all the same.

pub mod dot;
pub mod figures;
pub mod html;
pub mod json;
pub mod layout;
pub mod mermaid;
pub mod palette;
pub mod picture;
pub mod plain;
pub mod svg;
pub mod text;
mod tree;
mod wiring;
mod xml;

#[cfg(test)]
mod samples;

pub use picture::{EdgeKind, Live, Origin, Picture, PictureEdge, PictureNode, Role};
pub use plain::Charset;

/// What a rendering for a terminal must know about it; the other renderings do not look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// What the terminal can show.
    pub charset: Charset,
    /// Columns of the terminal; `None` where lines may be as long as they are.
    pub width: Option<usize>,
}

impl Default for Page {
    fn default() -> Self {
        Self { charset: Charset::Unicode, width: None }
    }
}

/// One way to show a picture.
#[derive(Debug, Clone, Copy)]
pub struct Rendering {
    /// The word that chooses it (`--format svg`).
    pub name: &'static str,
    /// What it is good for, in a few words.
    pub about: &'static str,
    /// Makes the text of the file.
    pub render: fn(&Picture, Page) -> String,
}

/// All renderings, the default first.
pub const RENDERINGS: &[Rendering] = &[
    Rendering { name: "text", about: "aligned lines for a terminal", render: text::render },
    Rendering { name: "dot", about: "for graphviz", render: |picture, _| dot::render(picture) },
    Rendering { name: "mermaid", about: "for Markdown pages", render: |picture, _| mermaid::render(picture) },
    Rendering { name: "json", about: "the graph as data", render: |picture, _| json::render(picture) },
    Rendering {
        name: "svg",
        about: "a drawing, light or dark as its reader",
        render: |picture, _| svg::render(picture),
    },
    Rendering { name: "html", about: "a page with the drawing", render: |picture, _| html::render(picture) },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rendering_of_a_hostile_picture_ends_in_one_line_end_and_holds_no_control_characters() {
        for rendering in RENDERINGS {
            let shown = (rendering.render)(&samples::hostile(), Page::default());
            assert!(shown.ends_with('\n') && !shown.ends_with("\n\n"), "{}", rendering.name);
            let bad = shown.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(bad, None, "{}", rendering.name);
        }
    }

    #[test]
    fn an_empty_picture_renders() {
        for rendering in RENDERINGS {
            assert!(!(rendering.render)(&Picture::default(), Page::default()).is_empty(), "{}", rendering.name);
        }
    }

    #[test]
    fn edges_to_nowhere_and_circles_render() {
        for rendering in RENDERINGS {
            assert!(!(rendering.render)(&samples::broken(), Page::default()).is_empty(), "{}", rendering.name);
        }
    }

    #[test]
    fn the_same_picture_gives_the_same_bytes() {
        for rendering in RENDERINGS {
            let once = (rendering.render)(&samples::union_with_rejects(), Page::default());
            let again = (rendering.render)(&samples::union_with_rejects(), Page::default());
            assert_eq!(once, again, "{}", rendering.name);
        }
    }
}
