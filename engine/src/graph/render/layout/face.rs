//! What stands in a node's box, and how large the box must be.

use super::super::figures::{grouped, percent, rate};
use super::super::picture::{Live, Origin, PictureNode};
use super::super::plain::one_line;
use super::measure::{mono, sans, shorten, wrap};

/// Width of the stripe with the role's sign, at the left of a box.
pub const STRIPE: f64 = 24.0;
/// Where text begins.
pub const TEXT_X: f64 = STRIPE + 9.0;
/// Height of the bar of shares.
pub const BAR_HEIGHT: f64 = 7.0;

const PAD: f64 = 11.0;
const NARROWEST: f64 = 92.0;
const LONGEST_NAME: usize = 26;
const LONGEST_DETAIL: usize = 24;

/// The lines in a box, with their places from the box's top left corner.
#[derive(Debug, Clone, PartialEq)]
pub struct Face {
    /// The lines of text.
    pub lines: Vec<FaceLine>,
    /// The top of the bar of shares, if there are figures.
    pub bar: Option<f64>,
    /// The width that the text needs.
    pub width: f64,
    /// The height that it needs.
    pub height: f64,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct FaceLine {
    /// The text.
    pub text: String,
    /// How it looks.
    pub tone: Tone,
    /// The line that it stands on.
    pub baseline: f64,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The node's name.
    Name,
    /// Its kind.
    Kind,
    /// Its options.
    Detail,
    /// A figure of the run.
    Figure,
    /// A figure that asks for attention.
    Alert,
}

impl Tone {
    /// Size of the font.
    #[must_use]
    pub fn size(self) -> f64 {
        match self {
            Self::Name => 13.0,
            Self::Kind | Self::Detail | Self::Figure | Self::Alert => 10.5,
        }
    }

    fn line_height(self) -> f64 {
        match self {
            Self::Name => 18.0,
            Self::Kind => 14.0,
            Self::Detail | Self::Figure | Self::Alert => 13.5,
        }
    }

    /// Room from the left of the text to its right; bold letters are a little wider.
    fn width(self, text: &str) -> f64 {
        match self {
            Self::Name | Self::Alert => sans(text, self.size()) * 1.08,
            Self::Kind => mono(text, self.size()),
            Self::Detail | Self::Figure => sans(text, self.size()),
        }
    }
}

impl Face {
    /// The face of a node.
    #[must_use]
    pub fn of(node: &PictureNode) -> Self {
        let mut face = Self { lines: Vec::new(), bar: None, width: NARROWEST, height: 6.0 };
        face.write(Tone::Name, shorten(&one_line(&node.name), LONGEST_NAME));
        let kind = match node.origin {
            Origin::Written => one_line(&node.kind),
            Origin::Inserted => format!("{} (added)", one_line(&node.kind)),
        };
        face.write(Tone::Kind, shorten(&kind, LONGEST_NAME));
        for line in wrap(&one_line(&node.detail), LONGEST_DETAIL, 2) {
            face.write(Tone::Detail, line);
        }
        if let Some(live) = &node.live {
            face.write_live(live);
        }
        face.height += 8.0;
        face
    }

    fn write(&mut self, tone: Tone, text: String) {
        self.width = self.width.max((TEXT_X + tone.width(&text) + PAD).ceil());
        self.height += tone.line_height();
        self.lines.push(FaceLine { text, tone, baseline: self.height - 3.5 });
    }

    fn write_live(&mut self, live: &Live) {
        self.height += 5.0;
        self.bar = Some(self.height);
        self.height += BAR_HEIGHT + 1.0;
        self.write(Tone::Figure, format!("{}, busy {}", rate(live.rows_per_s), percent(live.busy)));
        if live.rejects > 0 {
            self.write(Tone::Alert, format!("{} rejects", grouped(live.rejects)));
        }
        if live.limits_run {
            self.write(Tone::Alert, "limits the run".to_owned());
        }
    }
}
