//! Who gives rows when: a union passes on its sources one after the other, so each of them has a part of the time.

use std::time::Duration;

use engine::graph::Graph;
use engine::node::Role;

/// A source's place among those that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    place: u32,
    of: u32,
}

impl Turn {
    /// That of a source by itself.
    #[cfg(test)]
    pub(super) const ONLY: Turn = Turn { place: 0, of: 1 };

    /// No other source follows: it goes on until the run is stopped.
    pub(super) fn is_last(self) -> bool {
        self.place + 1 >= self.of
    }

    /// When the turn ends, in a time of this length.
    pub(super) fn end(self, length: Duration) -> Duration {
        length * (self.place + 1) / self.of.max(1)
    }
}

/// The turns of a graph's sources, by their numbers.
pub(super) fn of(graph: &Graph) -> Vec<Turn> {
    let unions = graph.read_by_sinks();
    let turn = |source: u32| {
        let among = unions.iter().filter(|sources| sources.contains(&source)).max_by_key(|sources| sources.len());
        let place = among.and_then(|sources| sources.iter().position(|other| *other == source));
        Turn { place: place.unwrap_or(0) as u32, of: among.map_or(1, Vec::len) as u32 }
    };
    (0..graph.with_role(Role::Source).count() as u32).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_divide_the_time() {
        let length = Duration::from_secs(6);
        let ends: Vec<_> = (0..3).map(|place| Turn { place, of: 3 }.end(length).as_secs()).collect();
        assert_eq!(ends, [2, 4, 6]);
        assert!(Turn { place: 2, of: 3 }.is_last() && !Turn { place: 1, of: 3 }.is_last());
        assert!(Turn { place: 0, of: 1 }.is_last());
    }
}
