//! The order inside layers, chosen so that few lines cross.
//!
//! Sweeps to the right and to the left put each vertex at the mean of its neighbours' places (its barycentre), then
//! neighbours in a layer change places as long as that removes a crossing. The best order seen is kept.

use super::mesh::Mesh;

const SWEEPS: usize = 24;
const SWAP_ROUNDS: usize = 12;

/// The lines between neighbouring layers.
struct Lines {
    /// For each vertex its neighbours to the left.
    left: Vec<Vec<usize>>,
    /// For each vertex its neighbours to the right.
    right: Vec<Vec<usize>>,
}

/// Orders the layers of a mesh.
pub(super) fn reduce_crossings(mesh: &mut Mesh) {
    let lines = Lines::of(mesh);
    let mut layers = mesh.layers.clone();
    let mut places = mesh.places();
    let mut fewest = crossings(&layers, &places, &lines);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            return;
        }
        let to_the_right = sweep % 2 == 0;
        let neighbours = if to_the_right { &lines.left } else { &lines.right };
        for at in 0..layers.len() {
            let at = if to_the_right { at } else { layers.len() - 1 - at };
            sort_by_barycentre(&mut layers[at], &mut places, neighbours);
        }
        swap_neighbours(&mut layers, &mut places, &lines);
        let now = crossings(&layers, &places, &lines);
        if now < fewest {
            fewest = now;
            mesh.layers.clone_from(&layers);
        }
    }
}

impl Lines {
    fn of(mesh: &Mesh) -> Self {
        let mut lines =
            Self { left: vec![Vec::new(); mesh.vertices.len()], right: vec![Vec::new(); mesh.vertices.len()] };
        for path in &mesh.paths {
            for pair in path.vertices.windows(2) {
                lines.right[pair[0]].push(pair[1]);
                lines.left[pair[1]].push(pair[0]);
            }
        }
        lines
    }
}

/// A vertex without neighbours on that side keeps its place.
fn sort_by_barycentre(layer: &mut [usize], places: &mut [usize], neighbours: &[Vec<usize>]) {
    let mut keyed: Vec<(f64, usize)> = layer
        .iter()
        .map(|&vertex| match neighbours[vertex].as_slice() {
            [] => (places[vertex] as f64, vertex),
            near => (near.iter().map(|&other| places[other] as f64).sum::<f64>() / near.len() as f64, vertex),
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, vertex)) in keyed.into_iter().enumerate() {
        layer[place] = vertex;
        places[vertex] = place;
    }
}

fn swap_neighbours(layers: &mut [Vec<usize>], places: &mut [usize], lines: &Lines) {
    for _ in 0..SWAP_ROUNDS {
        let mut improved = false;
        for layer in layers.iter_mut() {
            for at in 1..layer.len() {
                let (upper, lower) = (layer[at - 1], layer[at]);
                let as_it_is = crossed(&lines.left[upper], &lines.left[lower], places)
                    + crossed(&lines.right[upper], &lines.right[lower], places);
                let swapped = crossed(&lines.left[lower], &lines.left[upper], places)
                    + crossed(&lines.right[lower], &lines.right[upper], places);
                if swapped < as_it_is {
                    layer.swap(at - 1, at);
                    places[upper] = at;
                    places[lower] = at - 1;
                    improved = true;
                }
            }
        }
        if !improved {
            return;
        }
    }
}

/// Crossings between the lines of a vertex and those of one below it.
fn crossed(upper: &[usize], lower: &[usize], places: &[usize]) -> usize {
    upper.iter().map(|&a| lower.iter().filter(|&&b| places[b] < places[a]).count()).sum()
}

fn crossings(layers: &[Vec<usize>], places: &[usize], lines: &Lines) -> usize {
    let mut n_crossings = 0;
    for layer in layers {
        // Lines from above come first; each crosses those of them that end lower. Kept sorted, they can be counted.
        let mut ends: Vec<usize> = Vec::new();
        for &vertex in layer {
            let mut own: Vec<usize> = lines.right[vertex].iter().map(|&other| places[other]).collect();
            n_crossings +=
                own.iter().map(|end| ends.len() - ends.partition_point(|earlier| earlier <= end)).sum::<usize>();
            ends.append(&mut own);
            ends.sort_unstable();
        }
    }
    n_crossings
}

#[cfg(test)]
mod tests {
    use super::super::super::{samples, wiring::Wiring};
    use super::*;

    fn count(mesh: &Mesh) -> usize {
        crossings(&mesh.layers, &mesh.places(), &Lines::of(mesh))
    }

    #[test]
    fn drawings_that_need_no_crossing_have_none() {
        for picture in [samples::classify(), samples::two_models(), samples::union_with_rejects()] {
            let mut mesh = Mesh::new(&picture, &Wiring::of(&picture));
            reduce_crossings(&mut mesh);
            assert_eq!(count(&mesh), 0, "{}", picture.title);
        }
    }

    #[test]
    fn random_graphs_lose_most_of_their_crossings() {
        let (mut before, mut after) = (0, 0);
        for seed in 0..20 {
            let picture = samples::random(30, seed);
            let mut mesh = Mesh::new(&picture, &Wiring::of(&picture));
            before += count(&mesh);
            reduce_crossings(&mut mesh);
            after += count(&mesh);
        }
        assert!(after * 2 < before, "{before} before, {after} after");
    }
}
