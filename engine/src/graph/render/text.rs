//! The picture as lines for a terminal.
//!
//! One line per node in aligned columns; the indentation is the flow (`tree`). A node that reads more than the
//! rows of the node above it names what it reads. On a narrow terminal details are cut first, then the ends of lines.

use super::Page;
use super::figures::{grouped, percent, rate};
use super::picture::{EdgeKind, Live, Picture, PictureNode};
use super::plain::{Charset, fit, for_terminal, pad, width};
use super::tree::{Indent, Reads, TreeLine, lines_of};
use super::wiring::Wiring;

/// Details are not cut below this as long as the line's end can give.
const SHORTEST_DETAIL: usize = 12;

/// The cells of one line.
struct Cells {
    name: String,
    kind: String,
    live: String,
    detail: String,
    columns: String,
}

/// The picture as aligned lines.
#[must_use]
pub fn render(picture: &Picture, page: Page) -> String {
    if picture.nodes.is_empty() {
        return "no nodes\n".to_owned();
    }
    let wiring = Wiring::of(picture);
    let lines: Vec<Cells> = lines_of(&wiring).iter().map(|line| cells(picture, &wiring, line, page.charset)).collect();
    let widest = |cell: fn(&Cells) -> &String| lines.iter().map(|line| width(cell(line))).max().unwrap_or(0);
    let (name, kind, live) = (widest(|line| &line.name), widest(|line| &line.kind), widest(|line| &line.live));
    let columns = widest(|line| &line.columns);
    let mut detail = widest(|line| &line.detail);
    if let Some(page_width) = page.width {
        let others: usize = [name, kind, live, columns].iter().map(|&cell| if cell > 0 { cell + 2 } else { 0 }).sum();
        detail = detail.min(page_width.saturating_sub(others).max(SHORTEST_DETAIL));
    }
    let mut text = String::new();
    for line in &lines {
        let mut shown = String::new();
        // Where nothing follows, a detail may run on.
        let detail = if line.columns.is_empty() { detail + 2 + columns } else { detail };
        let parts = [
            (&line.name, name),
            (&line.kind, kind),
            (&line.live, live),
            (&line.detail, detail),
            (&line.columns, columns),
        ];
        for (cell, cell_width) in parts.into_iter().filter(|(_, cell_width)| *cell_width > 0) {
            shown.push_str(&pad(&fit(cell, cell_width, page.charset), cell_width + 2));
        }
        let shown = shown.trim_end();
        text.push_str(&page.width.map_or_else(|| shown.to_owned(), |columns| fit(shown, columns, page.charset)));
        text.push('\n');
    }
    text
}

fn cells(picture: &Picture, wiring: &Wiring, line: &TreeLine, charset: Charset) -> Cells {
    let node: &PictureNode = &picture.nodes[line.node];
    let shown = |text: &str| for_terminal(text, charset);
    let mut name: String = line.indent.iter().map(|step| indent(*step, charset)).collect();
    name.push_str(&shown(&node.name));
    let mut detail = shown(&node.detail);
    if let Reads::Links(links) = &line.reads {
        let feeders: Vec<String> = links.iter().map(|&link| shown(&feeder(picture, wiring, link))).collect();
        let reads = format!("{} {}", mark(charset, "←", "<-"), feeders.join(", "));
        detail = if detail.is_empty() { reads } else { format!("{reads}; {detail}") };
    }
    let columns = if node.columns.is_empty() {
        String::new()
    } else {
        format!("{} {}", mark(charset, "→", "->"), shown(&node.columns.join(", ")))
    };
    let live = node.live.map_or_else(String::new, |live| live_text(&live, charset));
    Cells { name, kind: shown(&node.kind), live, detail, columns }
}

fn feeder(picture: &Picture, wiring: &Wiring, link: usize) -> String {
    let link = wiring.links[link];
    let name = &picture.nodes[link.from].name;
    match link.carries {
        EdgeKind::Rows => name.clone(),
        EdgeKind::Rejects => format!("{name}.rejects"),
    }
}

/// The figures of a run, without those that are nothing.
fn live_text(live: &Live, charset: Charset) -> String {
    let mut text = format!("{:>8}", rate(live.rows_per_s));
    for (word, share) in [("busy", live.busy), ("starved", live.starved), ("blocked", live.blocked)] {
        if word == "busy" || share >= 0.005 {
            text.push_str(&format!("  {word} {:>4}", percent(share)));
        }
    }
    if live.rejects > 0 {
        text.push_str(&format!("  rejects {}", grouped(live.rejects)));
    }
    if live.limits_run {
        text.push_str(&format!("  {} limits the run", mark(charset, "←", "<-")));
    }
    text
}

fn indent(step: Indent, charset: Charset) -> &'static str {
    match (charset, step) {
        (_, Indent::Only) => "  ",
        (_, Indent::Under) => "   ",
        (Charset::Unicode, Indent::Branch) => "├─ ",
        (Charset::Unicode, Indent::LastBranch) => "└─ ",
        (Charset::Unicode, Indent::Beside) => "│  ",
        (Charset::Ascii, Indent::Branch) => "|- ",
        (Charset::Ascii, Indent::LastBranch) => "`- ",
        (Charset::Ascii, Indent::Beside) => "|  ",
    }
}

fn mark(charset: Charset, unicode: &'static str, ascii: &'static str) -> &'static str {
    match charset {
        Charset::Unicode => unicode,
        Charset::Ascii => ascii,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn check(picture: &Picture, page: Page, expected: &[&str]) {
        let text = render(picture, page);
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "\n{text}");
    }

    #[test]
    fn a_chain_is_indented_step_by_step() {
        check(
            &samples::classify(),
            Page::default(),
            &[
                "photos          source.files    photos/**/*.jpg                     → id, uri, bytes",
                "  pixels        decode.image    256 bicubic, crop 224 (from model)  → image u8 [224,224,3]",
                "    batches     batch           32                                  → image u8 [32,224,224,3]",
                "      scores    infer           efficientnet_lite0 f32              → logits f32 [32,1000]",
                "        labels  transform.topk  5, imagenet1k                       → labels list<5>",
                "          out   sink.jsonl      out/labels.jsonl",
            ],
        );
    }

    #[test]
    fn branches_hang_where_they_part_and_a_join_where_they_parted() {
        check(
            &samples::two_models(),
            Page::default(),
            &[
                "photos               source.files    photos/**/*.jpg                     → id, uri, bytes",
                "  pixels             decode.image    256 bicubic, crop 224 (from model)  → image u8 [224,224,3]",
                "  ├─ lite.batch      batch           32                                  → image u8 [32,224,224,3]",
                "  │    lite          infer           efficientnet_lite0 f32              → logits f32 [32,1000]",
                "  │      lite_top    transform.topk  5, imagenet1k                       → lite list<5>",
                "  ├─ mobile.batch    batch           16                                  → image u8 [16,224,224,3]",
                "  │    mobile        infer           mobilenet_v2 f32                    → logits f32 [16,1000]",
                "  │      mobile_top  transform.topk  5, imagenet1k                       → mobile list<5>",
                "  └─ both            transform.join  ← lite_top, mobile_top              → lite list<5>, mobile list<5>",
                "       out           sink.jsonl      out/both.jsonl",
            ],
        );
    }

    #[test]
    fn a_terminal_without_unicode_gets_ascii() {
        let page = Page { charset: Charset::Ascii, width: None };
        check(
            &samples::union_with_rejects(),
            page,
            &[
                "cats             source.files  cats/*.jpg                       -> id, uri, bytes",
                "dogs             source.files  dogs/*.jpg                       -> id, uri, bytes",
                "pixels           decode.image  <- cats, dogs; 224x224 bilinear  -> image u8 [224,224,3]",
                "|- bad           sink.csv      <- pixels.rejects; out/bad.csv",
                "`- scores.batch  batch         32                               -> image u8 [32,224,224,3]",
                "     scores      infer         resnet18 f32                     -> features f32 [32,512]",
                "       out       sink.npy      out/features.npy",
            ],
        );
        assert!(render(&samples::hostile(), page).is_ascii());
    }

    #[test]
    fn a_narrow_terminal_loses_details_first() {
        let page = Page { charset: Charset::Unicode, width: Some(72) };
        check(
            &samples::classify(),
            page,
            &[
                "photos          source.files    photos/**/*.…  → id, uri, bytes",
                "  pixels        decode.image    256 bicubic,…  → image u8 [224,224,3]",
                "    batches     batch           32             → image u8 [32,224,224,3]",
                "      scores    infer           efficientnet…  → logits f32 [32,1000]",
                "        labels  transform.topk  5, imagenet1k  → labels list<5>",
                "          out   sink.jsonl      out/labels.jsonl",
            ],
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width_asked in 1..120 {
            for charset in [Charset::Unicode, Charset::Ascii] {
                for picture in
                    [samples::two_models(), samples::classify_live(), samples::hostile(), samples::random(30, 7)]
                {
                    let text = render(&picture, Page { charset, width: Some(width_asked) });
                    assert!(text.lines().all(|line| width(line) <= width_asked));
                    assert_eq!(text.lines().count(), picture.nodes.len());
                }
            }
        }
    }

    #[test]
    fn figures_of_a_run_stand_beside_the_kind() {
        let text = render(&samples::classify_live(), Page::default());
        let pixels = text.lines().nth(1).unwrap_or_default();
        assert!(
            pixels.contains(
                "decode.image     2,310/s  busy 97 %  starved  2 %  blocked  1 %  rejects 17  ← limits the run"
            ),
            "{pixels}"
        );
    }
}
