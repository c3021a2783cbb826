//! Whether the kernel has killed for want of memory while a run went on: the likeliest reason why a process dies of
//! signal 9 that nobody has sent.

use std::fs;

use engine::node::Fault;

/// Counts kills from its making on.
pub(super) struct MemoryKiller {
    before: Option<u64>,
}

impl MemoryKiller {
    /// Notes how many there were.
    pub(super) fn watch() -> Self {
        MemoryKiller { before: n_kills() }
    }

    /// Processes that it has killed since, on the whole machine; nothing where the kernel does not tell.
    pub(super) fn n_kills(&self) -> Option<u64> {
        Some(n_kills()?.saturating_sub(self.before?))
    }
}

fn n_kills() -> Option<u64> {
    parse(&fs::read_to_string("/proc/vmstat").ok()?)
}

fn parse(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// Adds the likely cause to a fault that is about such a death, and what to do.
pub(super) fn explain(fault: &mut Fault, n_kills: Option<u64>) {
    let Some(likely) = likely(&fault.message, n_kills) else { return };
    fault.details.insert(0, format!("likely: {likely}"));
    if n_kills.is_some_and(|n_kills| n_kills > 0) {
        let help = "let models hold less at once: a smaller `batch`, fewer `workers_per_device`, or more memory";
        fault.help.get_or_insert_with(|| help.to_owned());
    }
}

/// The likely cause of the death that a text tells of, if it was by signal 9.
pub(super) fn likely(text: &str, n_kills: Option<u64>) -> Option<String> {
    if !text.contains("signal 9") {
        return None;
    }
    Some(match n_kills {
        None => "the kernel's memory killer, or a `kill -9`: `dmesg` may tell".to_owned(),
        Some(0) => "a `kill -9`: the kernel's memory killer has killed nothing meanwhile".to_owned(),
        Some(1) => "the kernel's memory killer: it has killed 1 process meanwhile".to_owned(),
        Some(n) => format!("the kernel's memory killer: it has killed {n} processes meanwhile"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_from_the_kernels_own_list() {
        assert_eq!(parse("nr_free_pages 12\noom_kill 3\noom_kill_other 7\n"), Some(3));
        assert_eq!(parse("nr_free_pages 12\n"), None);
        let since = |before| MemoryKiller { before }.n_kills();
        assert_eq!((since(None), since(Some(u64::MAX))), (None, n_kills().map(|_| 0)));
    }

    #[test]
    fn a_fault_gets_its_likely_cause_before_other_details() {
        let mut fault = Fault::transient("worker 0 (cpu, pid 7) died of signal 9 (kill)").detail("its last words:\n-");
        explain(&mut fault, Some(1));
        assert!(fault.details[0].starts_with("likely: the kernel's memory killer"), "{fault:?}");
        assert!(fault.help.as_ref().is_some_and(|help| help.contains("`batch`")), "{fault:?}");
        let mut other = Fault::transient("no space left");
        explain(&mut other, Some(1));
        assert_eq!(other, Fault::transient("no space left"));
    }

    #[test]
    fn only_a_death_by_signal_9_is_the_memory_killers() {
        assert_eq!(likely("died of signal 11 (segmentation fault)", Some(3)), None);
        let check = |n_kills, part: &str| {
            let likely = likely("died of signal 9 (kill)", n_kills).unwrap();
            assert!(likely.contains(part), "{likely}");
        };
        check(Some(2), "memory killer: it has killed 2 processes");
        check(Some(0), "a `kill -9`: the kernel's memory killer has killed nothing");
        check(None, "`dmesg`");
    }
}
