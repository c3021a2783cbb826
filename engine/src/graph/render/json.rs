//! The picture itself as JSON.
//!
//! `version` grows when a field changes its meaning or goes; new fields come without notice.

use serde::Serialize;

use super::picture::Picture;

/// The form of the JSON written here.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a> {
    version: u32,
    #[serde(flatten)]
    picture: &'a Picture,
}

/// The picture as indented JSON.
#[must_use]
pub fn render(picture: &Picture) -> String {
    let versioned = Versioned { version: VERSION, picture };
    let mut json = serde_json::to_string_pretty(&versioned).expect("a picture has only string keys and plain values");
    json.push('\n');
    without_raw_controls(&json)
}

/// JSON lets the control characters from U+007F to U+009F stand in strings, where a terminal would obey them.
fn without_raw_controls(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() && c != '\n' {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn names_and_figures_come_back_as_they_were() {
        let picture = samples::hostile();
        let read: serde_json::Value = serde_json::from_str(&render(&picture)).expect("valid JSON");
        assert_eq!(read["version"], 1);
        assert_eq!(read["title"], picture.title);
        for (idx, node) in picture.nodes.iter().enumerate() {
            assert_eq!(read["nodes"][idx]["name"], node.name);
        }
        let live: serde_json::Value = serde_json::from_str(&render(&samples::classify_live())).expect("valid JSON");
        assert_eq!(live["nodes"][1]["live"]["limits_run"], true);
        assert_eq!(live["nodes"][1]["role"], "decode");
        assert_eq!(live["edges"][0]["carries"], "rows");
    }
}
