//! Every model on every GPU that holds them all.

use super::{Need, Policy, Room, Wish};

/// Each GPU that holds all models that may run on it gets them all, the others none: so that every GPU does the same work
/// and rows need no other GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replicate;

impl Policy for Replicate {
    fn deal<'a>(&self, wishes: &[Wish<'a>], rooms: &mut [Room<'a>]) -> Result<(), Vec<&'a Need>> {
        for (gpu, room) in rooms.iter_mut().enumerate() {
            let wanted: Vec<&Need> = wishes.iter().filter(|(_, gpus)| gpus.contains(&gpu)).map(|wish| wish.0).collect();
            if room.holds(&wanted) {
                room.models.extend(wanted);
            }
        }
        let placed = |need: &Need| rooms.iter().any(|room| room.models.iter().any(|other| other.node == need.node));
        let homeless: Vec<_> = wishes.iter().map(|wish| wish.0).filter(|need| !placed(need)).collect();
        if homeless.is_empty() { Ok(()) } else { Err(homeless) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{deal, need};
    use super::*;

    fn two() -> [(Need, Vec<usize>); 2] {
        [(need("a", 1000, 0, 0), vec![0, 1, 2]), (Need { node: 1, ..need("b", 500, 0, 0) }, vec![0, 1, 2])]
    }

    fn check(free: &[u64], expected: Result<&[&str], &str>) {
        let expected = expected.map(|models| models.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(deal(&Replicate, &two(), free), expected.map_err(str::to_owned), "{free:?}");
    }

    #[test]
    fn all_models_go_to_each_gpu_that_holds_them_all() {
        check(&[8000, 8000, 8000], Ok(&["a+b", "a+b", "a+b"]));
        check(&[8000, 1949, 1950], Ok(&["a+b", "", "a+b"]));
    }

    #[test]
    fn gpus_that_hold_only_some_get_none() {
        check(&[1900, 1900, 1900], Err("a+b"));
    }

    #[test]
    fn a_gpu_gets_what_may_run_on_it() {
        let mut needs = two();
        needs[1].1 = vec![2];
        assert_eq!(deal(&Replicate, &needs, &[1450, 1449, 8000]), Ok(vec!["a".into(), "".into(), "a+b".into()]));
    }
}
