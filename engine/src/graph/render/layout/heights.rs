//! The height of each vertex, chosen so that lines are straight.
//!
//! The bends of an edge are one block, of one height, so that a long edge is level between its ends; only where two
//! such edges cross is one of them cut in two. Blocks are pulled together by springs along the lines and kept apart by
//! the room that they need; since vertical order is the same in all layers that two blocks share, "is above" has no
//! circles and a placement exists.
//!
//! The springs are first solved as they are, which puts a node amid its branches, and then with a force that grows
//! no further with distance, which makes most lines wholly straight at the cost of a few.

use std::collections::BTreeMap;

use super::super::picture::EdgeKind;
use super::mesh::{Mesh, Path, StandsFor};

const SWEEPS: usize = 60;
/// How much stronger than a spring the room between blocks is.
const STIFFNESS: f64 = 60.0;
/// From these distances on a spring pulls no harder, round by round: first far kinks give way, then near ones.
const SOFT: [f64; 12] = [8.0, 8.0, 8.0, 6.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.5];
/// Pulls what is connected with nothing to the middle.
const GRAVITY: f64 = 0.000_01;
/// Blocks whose line would bend by less than this become one.
const SNAP: f64 = 2.5;

/// A line between two blocks: `to` wants to be `offset` below `from`.
struct Spring {
    from: usize,
    to: usize,
    offset: f64,
    weight: f64,
}

/// Room that one block needs from the one above it.
type Gaps = BTreeMap<(usize, usize), f64>;

/// Chooses the height of the middle of each vertex, counted downwards.
pub(super) fn choose(mesh: &Mesh) -> Vec<f64> {
    let block_of = blocks(mesh);
    let n_blocks = block_of.iter().max().map_or(0, |last| last + 1);
    let gaps = gaps(mesh, &block_of);
    let springs = springs(mesh, &block_of);
    let mut heights = settle(&vec![0.0; n_blocks], &gaps).unwrap_or_else(|| vec![0.0; n_blocks]);
    relax(&mut heights, &springs, &gaps);
    let heights = snapped(&heights, &springs, &gaps).or_else(|| settle(&heights, &gaps)).unwrap_or(heights);
    block_of.iter().map(|&block| heights[block]).collect()
}

/// Numbers the blocks: a node is one by itself, the bends of an edge are one unless they are cut.
fn blocks(mesh: &Mesh) -> Vec<usize> {
    let cut = cuts(mesh);
    let mut block_of: Vec<usize> = (0..mesh.vertices.len()).collect();
    for path in &mesh.paths {
        for pair in path.vertices.windows(2) {
            let bends = pair.iter().all(|&vertex| mesh.vertices[vertex].stands_for == StandsFor::Bend);
            if bends && !cut[pair[1]] {
                block_of[pair[1]] = block_of[pair[0]];
            }
        }
    }
    let mut numbers = BTreeMap::new();
    for block in &mut block_of {
        let next = numbers.len();
        *block = *numbers.entry(*block).or_insert(next);
    }
    block_of
}

/// For each bend whether its edge is cut before it, because it crosses another there.
fn cuts(mesh: &Mesh) -> Vec<bool> {
    let places = mesh.places();
    let mut cut = vec![false; mesh.vertices.len()];
    let mut between: Vec<Vec<(usize, usize, EdgeKind)>> = vec![Vec::new(); mesh.layers.len()];
    for path in &mesh.paths {
        for pair in path.vertices.windows(2) {
            if pair.iter().all(|&vertex| mesh.vertices[vertex].stands_for == StandsFor::Bend) {
                between[mesh.vertices[pair[0]].layer].push((pair[0], pair[1], path.carries));
            }
        }
    }
    for lines in between {
        for (at, &(from, to, carries)) in lines.iter().enumerate() {
            for &(other_from, other_to, _) in &lines[at + 1..] {
                let crosses = (places[from] < places[other_from]) != (places[to] < places[other_to]);
                if crosses && !cut[to] && !cut[other_to] {
                    cut[if carries == EdgeKind::Rejects { to } else { other_to }] = true;
                }
            }
        }
    }
    cut
}

fn gaps(mesh: &Mesh, block_of: &[usize]) -> Gaps {
    let mut gaps = Gaps::new();
    for layer in &mesh.layers {
        for pair in layer.windows(2) {
            let (upper, lower) = (&mesh.vertices[pair[0]], &mesh.vertices[pair[1]]);
            let space = match (upper.stands_for, lower.stands_for) {
                (StandsFor::Node, StandsFor::Node) => 24.0,
                (StandsFor::Bend, StandsFor::Bend) => 9.0,
                _ => 12.0,
            };
            let gap = gaps.entry((block_of[pair[0]], block_of[pair[1]])).or_insert(0.0);
            *gap = f64::max(*gap, upper.below + space + lower.above);
        }
    }
    gaps
}

/// An end that many lines share pulls each of them less, so that a branch is level with the box that it alone leads to.
fn springs(mesh: &Mesh, block_of: &[usize]) -> Vec<Spring> {
    let ends = |path: &Path| (path.vertices[0], path.vertices[path.vertices.len() - 1]);
    let mut n_out = vec![0.0; mesh.vertices.len()];
    let mut n_in = n_out.clone();
    for path in &mesh.paths {
        n_out[ends(path).0] += 1.0;
        n_in[ends(path).1] += 1.0;
    }
    let mut springs = Vec::new();
    for path in &mesh.paths {
        let weight = match path.carries {
            EdgeKind::Rows => 1.0,
            EdgeKind::Rejects => 0.2,
        };
        let last = path.vertices.len() - 2;
        for (at, pair) in path.vertices.windows(2).enumerate() {
            let (from, to) = (block_of[pair[0]], block_of[pair[1]]);
            if from != to {
                let offset = if at == 0 { path.port } else { 0.0 };
                let shared: f64 = if at == 0 {
                    n_out[pair[0]]
                } else if at == last {
                    n_in[pair[1]]
                } else {
                    1.0
                };
                springs.push(Spring { from, to, offset, weight: weight / shared });
            }
        }
    }
    springs
}

/// Lets the springs pull until little changes. What is left of overlaps, [`settle`] resolves.
fn relax(heights: &mut [f64], springs: &[Spring], gaps: &Gaps) {
    let n_blocks = heights.len();
    let mut springs_of = vec![Vec::new(); n_blocks];
    for (at, spring) in springs.iter().enumerate() {
        springs_of[spring.from].push((at, spring.to, -spring.offset));
        springs_of[spring.to].push((at, spring.from, spring.offset));
    }
    let mut above = vec![Vec::new(); n_blocks];
    let mut below = vec![Vec::new(); n_blocks];
    for (&(upper, lower), &gap) in gaps {
        above[lower].push((upper, gap));
        below[upper].push((lower, gap));
    }
    let middle = heights.iter().copied().fold(0.0, f64::max) / 2.0;
    let mut pulls: Vec<f64> = springs.iter().map(|spring| spring.weight).collect();
    for soft in SOFT {
        for sweep in 0..SWEEPS {
            for at in 0..n_blocks {
                let block = if sweep % 2 == 0 { at } else { n_blocks - 1 - at };
                let mut weight = GRAVITY;
                let mut sum = GRAVITY * middle;
                for &(spring, other, offset) in &springs_of[block] {
                    weight += pulls[spring];
                    sum += pulls[spring] * (heights[other] + offset);
                }
                heights[block] = kept_apart(sum, weight, &above[block], &below[block], heights);
            }
        }
        for (pull, spring) in pulls.iter_mut().zip(springs) {
            let stretch = heights[spring.to] - heights[spring.from] - spring.offset;
            *pull = spring.weight * soft / stretch.hypot(soft);
        }
    }
}

/// The best height of one block: where its springs want it, pushed by the neighbours that it would overlap there.
fn kept_apart(sum: f64, weight: f64, above: &[(usize, f64)], below: &[(usize, f64)], heights: &[f64]) -> f64 {
    let mut height = sum / weight;
    for _ in 0..3 {
        let (mut sum, mut weight) = (sum, weight);
        for &(upper, gap) in above {
            if heights[upper] + gap > height {
                weight += STIFFNESS;
                sum += STIFFNESS * (heights[upper] + gap);
            }
        }
        for &(lower, gap) in below {
            if heights[lower] - gap < height {
                weight += STIFFNESS;
                sum += STIFFNESS * (heights[lower] - gap);
            }
        }
        height = sum / weight;
    }
    height
}

/// Resolves all overlaps: once by pushing down, once by pushing up; the mean of two placements without overlaps has none.
/// `None` if the gaps go round in a circle.
fn settle(heights: &[f64], gaps: &Gaps) -> Option<Vec<f64>> {
    let order = from_the_top(heights.len(), gaps)?;
    let mut below = vec![Vec::new(); heights.len()];
    for (&(upper, lower), &gap) in gaps {
        below[upper].push((lower, gap));
    }
    let mut pushed_down = heights.to_vec();
    for &upper in &order {
        for &(lower, gap) in &below[upper] {
            pushed_down[lower] = pushed_down[lower].max(pushed_down[upper] + gap);
        }
    }
    let mut pushed_up = heights.to_vec();
    for &upper in order.iter().rev() {
        for &(lower, gap) in &below[upper] {
            pushed_up[upper] = pushed_up[upper].min(pushed_up[lower] - gap);
        }
    }
    Some(pushed_down.iter().zip(&pushed_up).map(|(down, up)| (down + up) / 2.0).collect())
}

/// The blocks, each after those above it.
fn from_the_top(n_blocks: usize, gaps: &Gaps) -> Option<Vec<usize>> {
    let mut n_above = vec![0_usize; n_blocks];
    let mut below = vec![Vec::new(); n_blocks];
    for &(upper, lower) in gaps.keys() {
        n_above[lower] += 1;
        below[upper].push(lower);
    }
    let mut order: Vec<usize> = (0..n_blocks).filter(|&block| n_above[block] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        for &lower in &below[order[at]] {
            n_above[lower] -= 1;
            if n_above[lower] == 0 {
                order.push(lower);
            }
        }
        at += 1;
    }
    (order.len() == n_blocks).then_some(order)
}

/// Makes lines that are nearly straight wholly so: their blocks become one and settle together.
/// `None` if that brings blocks into each other's way.
fn snapped(heights: &[f64], springs: &[Spring], gaps: &Gaps) -> Option<Vec<f64>> {
    // For each block the one that leads it, and how far below that it is.
    let mut leads: Vec<(usize, f64)> = (0..heights.len()).map(|block| (block, 0.0)).collect();
    for spring in springs {
        let stretch = heights[spring.to] - heights[spring.from] - spring.offset;
        let ((from_lead, from_offset), (to_lead, to_offset)) = (leads[spring.from], leads[spring.to]);
        if stretch.abs() > SNAP || from_lead == to_lead {
            continue;
        }
        let shift = from_offset + spring.offset - to_offset;
        for lead in leads.iter_mut().filter(|lead| lead.0 == to_lead) {
            *lead = (from_lead, lead.1 + shift);
        }
    }
    let mut sums = vec![(0.0, 0.0); heights.len()];
    for (height, (lead, offset)) in heights.iter().zip(&leads) {
        sums[*lead].0 += height - offset;
        sums[*lead].1 += 1.0;
    }
    let led: Vec<f64> = sums.iter().map(|(sum, n)| if *n > 0.0 { (sum / n).round() } else { 0.0 }).collect();
    let mut led_gaps = Gaps::new();
    for (&(upper, lower), &gap) in gaps {
        let ((upper_lead, upper_offset), (lower_lead, lower_offset)) = (leads[upper], leads[lower]);
        let needed = gap + upper_offset - lower_offset;
        if upper_lead != lower_lead {
            let gap = led_gaps.entry((upper_lead, lower_lead)).or_insert(needed);
            *gap = f64::max(*gap, needed);
        } else if needed > 1e-9 {
            return None;
        }
    }
    let led = settle(&led, &led_gaps)?;
    Some(leads.iter().map(|(lead, offset)| led[*lead] + offset).collect())
}
