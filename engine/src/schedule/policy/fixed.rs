//! Models whose node names the one GPU that they run on.

use super::{Need, Policy, Room, Wish};

/// Each model to the only GPU that it may run on. What was fixed comes first: other models get what it leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Policy for Fixed {
    fn deal<'a>(&self, wishes: &[Wish<'a>], rooms: &mut [Room<'a>]) -> Result<(), Vec<&'a Need>> {
        for (gpu, room) in rooms.iter_mut().enumerate() {
            let wanted: Vec<&Need> = wishes.iter().filter(|(_, gpus)| gpus[..] == [gpu]).map(|wish| wish.0).collect();
            if !room.holds(&wanted) {
                return Err(wanted);
            }
            room.models.extend(wanted);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{deal, need};
    use super::*;

    #[test]
    fn each_model_goes_where_it_was_put() {
        let needs = [
            (need("a", 1000, 0, 0), vec![1]),
            (Need { node: 1, ..need("b", 500, 0, 0) }, vec![0]),
            (Need { node: 2, ..need("c", 500, 0, 0) }, vec![1]),
        ];
        assert_eq!(deal(&Fixed, &needs, &[950, 1950, 99]), Ok(vec!["b".into(), "a+c".into(), "".into()]));
        assert_eq!(deal(&Fixed, &needs, &[950, 1949, 99]), Err("a+c".into()));
        assert_eq!(deal(&Fixed, &needs, &[949, 1950, 99]), Err("b".into()));
    }
}
