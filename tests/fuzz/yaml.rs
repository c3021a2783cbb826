//! Pipeline files, through all that `flowgpu validate` and `flowgpu graph` do.

use engine::config::{Document, Look, Mistakes};
use engine::graph::Graph;
use engine::graph::render::{Page, RENDERINGS};

use crate::target::{Check, Target, as_it_is, nothing_made};
use crate::unpacking::Scratch;

pub const TARGET: Target = Target {
    name: "yaml",
    n_cases: 4_000,
    max_memory: 64 << 20,
    seeds: &["pipelines"],
    made: nothing_made,
    dress: as_it_is,
    prepare,
};

const SECRET: &str = "S3CRETVALUE";

fn prepare() -> Check {
    let registry = nodes::registry();
    let scratch = Scratch::new();
    Box::new(move |input| {
        let file = scratch.write("p.yaml", input);
        let env = |name: &str| (name == "TOKEN").then(|| SECRET.to_owned());
        let overrides = [];
        let document = Document::read_mistaken(&file, &overrides, &env, &registry);
        let graph = document.and_then(|document| Graph::compile(&document, &registry));
        match graph {
            Ok(graph) => {
                let picture = graph.picture();
                for rendering in RENDERINGS {
                    let text = (rendering.render)(&picture, Page::default());
                    assert!(!text.is_empty(), "{}", rendering.name);
                }
            }
            Err(mistakes) => told(&mistakes),
        }
    })
}

/// Every mistake is somewhere in the file, and can be shown in every form.
fn told(mistakes: &Mistakes) {
    assert!(!mistakes.is_empty(), "neither a graph nor a mistake");
    let text = mistakes.source().text();
    for mistake in mistakes.iter() {
        match mistake.span {
            Some(span) => assert!(text.get(span.range()).is_some(), "{span:?} of {} bytes: {mistake:?}", text.len()),
            // Of a file that is no text there is nothing to point into.
            None => assert!(text.is_empty(), "no place: {mistake:?}"),
        }
    }
    let said = [mistakes.render(Look::PLAIN), mistakes.render(Look::COLOUR), mistakes.lines()];
    for said in said {
        assert!(said.contains("p.yaml"), "{said}");
        assert!(!said.contains('\0') && said.len() < 16 << 20);
    }
    let n_lines = text.lines().count() as u64 + 1;
    for mistake in mistakes.to_json() {
        assert!(mistake["line"].as_u64().is_none_or(|line| (1..=n_lines).contains(&line)), "{mistake}");
    }
}
