//! Models dealt over GPUs, for when they do not all fit on one.

use std::cmp::Reverse;

use super::super::ModelMemory;
use super::{Need, Policy, Room, Wish};

/// The largest model first, each to the GPU with the most room left, so that GPUs end up about equally full; if that runs
/// out of room, each to the fullest GPU that still holds it, which wastes less. GPUs that are left over get copies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread;

impl Policy for Spread {
    fn deal<'a>(&self, wishes: &[Wish<'a>], rooms: &mut [Room<'a>]) -> Result<(), Vec<&'a Need>> {
        let mut sorted: Vec<&Wish<'a>> = wishes.iter().collect();
        sorted.sort_by_key(|(need, _)| (Reverse(ModelMemory::of(need).bytes()), need.node));
        let before = rooms.to_vec();
        let homeless = deal_by(&sorted, rooms, |room| Reverse(room.left()));
        if !homeless.is_empty() {
            rooms.clone_from_slice(&before);
            if !deal_by(&sorted, rooms, Room::left).is_empty() {
                rooms.clone_from_slice(&before);
                return Err(homeless);
            }
        }
        replicate_into_empty(&sorted, rooms);
        Ok(())
    }
}

/// Each model to the GPU that comes first by `rank`; says which found none.
fn deal_by<'a, R: Ord>(sorted: &[&Wish<'a>], rooms: &mut [Room<'a>], rank: impl Fn(&Room<'a>) -> R) -> Vec<&'a Need> {
    let mut homeless = Vec::new();
    for (need, gpus) in sorted {
        let fitting = gpus.iter().copied().filter(|&gpu| rooms[gpu].holds(&[need]));
        match fitting.min_by_key(|&gpu| (rank(&rooms[gpu]), gpu)) {
            Some(gpu) => rooms[gpu].models.push(need),
            None => homeless.push(*need),
        }
    }
    homeless
}

/// A GPU without a model gets the one that has the fewest copies, of several the largest, which is likely to take longest.
fn replicate_into_empty<'a>(sorted: &[&Wish<'a>], rooms: &mut [Room<'a>]) {
    for gpu in 0..rooms.len() {
        if !rooms[gpu].models.is_empty() {
            continue;
        }
        let copies = |need: &Need| {
            let has = |room: &&Room<'_>| room.models.iter().any(|other| other.node == need.node);
            rooms.iter().filter(has).count()
        };
        let fitting = sorted.iter().filter(|(need, gpus)| gpus.contains(&gpu) && rooms[gpu].holds(&[need]));
        if let Some((need, _)) = fitting.min_by_key(|(need, _)| copies(need)) {
            rooms[gpu].models.push(need);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{deal, need};
    use super::*;

    fn check(sizes: &[u64], free: &[u64], expected: Result<&[&str], &str>) {
        let all: Vec<usize> = (0..free.len()).collect();
        let names = ["a", "b", "c", "d", "e"].iter();
        let needs: Vec<_> = names
            .zip(sizes)
            .enumerate()
            .map(|(node, (name, &size))| (Need { node, ..need(name, size, 0, 0) }, all.clone()))
            .collect();
        let expected = expected.map(|models| models.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(deal(&Spread, &needs, free), expected.map_err(str::to_owned), "{sizes:?} on {free:?}");
    }

    #[test]
    fn the_largest_goes_first_and_gpus_fill_evenly() {
        check(&[100, 300, 200], &[8000, 8000], Ok(&["b", "c+a"]));
        check(&[100, 300, 200], &[8000, 7300], Ok(&["b+a", "c"]));
    }

    #[test]
    fn gpus_that_are_left_over_get_copies_of_the_largest() {
        check(&[100, 200], &[8000, 8000, 8000, 8000], Ok(&["b", "a", "b", "a"]));
        check(&[100], &[8000, 540, 8000], Ok(&["a", "", "a"]));
    }

    #[test]
    fn what_does_not_fit_evenly_is_packed() {
        // Evenly, a and b would be apart, and after c and d no room would be left for e.
        check(&[300, 300, 200, 200, 200], &[1050, 1050], Ok(&["a+b", "c+d+e"]));
    }

    #[test]
    fn what_finds_no_place_is_told_and_nothing_is_dealt() {
        check(&[100, 5000], &[4000, 4000], Err("b"));
        check(&[3000, 3000, 3000], &[4000, 4000], Err("c"));
    }

    #[test]
    fn only_gpus_that_are_allowed_are_used() {
        let needs = [(need("a", 100, 0, 0), vec![1]), (Need { node: 1, ..need("b", 50, 0, 0) }, vec![1])];
        assert_eq!(deal(&Spread, &needs, &[8000, 4000, 8000]), Ok(vec!["".into(), "a+b".into(), "".into()]));
    }
}
