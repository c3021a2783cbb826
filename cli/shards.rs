//! Which shards a command is about: what was asked for, and what the environment says.

use std::env;

use engine::config::{RunOptions, ShardChoice};
use engine::node::Shard;

use crate::failure::Failure;

/// The variables that number what a scheduler starts, the first that is set counts: our own, Kubernetes' indexed jobs,
/// Slurm's arrays, the tasks of a Slurm step.
const VARIABLES: [&str; 4] = ["FLOWGPU_SHARD", "JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "SLURM_PROCID"];

/// Into how many shards a run is divided.
#[derive(Debug, clap::Args)]
pub(crate) struct ShardsArg {
    /// Into how many shards the run is divided
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99_999), help_heading = "What is run")]
    pub(crate) shards: Option<u32>,
}

/// Which part of a run is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct ShardArgs {
    #[command(flatten)]
    shards: ShardsArg,

    /// Which of the shards: one, several one after the other, or auto for the one that FLOWGPU_SHARD, Kubernetes or
    /// Slurm names
    #[arg(long, value_name = "I|A-B|auto", help_heading = "What is run")]
    shard: Option<ShardChoice>,
}

impl ShardArgs {
    /// What was said here, over `options`.
    pub(crate) fn over(&self, options: RunOptions) -> RunOptions {
        options.overridden_by(RunOptions { shards: self.shards.shards, shard: self.shard, ..RunOptions::default() })
    }
}

/// The shards that `options` ask for, in this environment; `None` for a run that is not divided.
pub(crate) fn chosen(options: &RunOptions) -> Result<Option<Vec<Shard>>, Failure> {
    choose(options, &|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

fn choose(options: &RunOptions, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Vec<Shard>>, Failure> {
    let (of, choice) = match (options.shards, options.shard) {
        (None, None) => return Ok(None),
        (Some(of), Some(choice)) => (of, choice),
        (None, Some(choice)) => {
            let message = format!("`--shard {choice}` of how many?");
            return Err(usage(message, "say how many shards there are: `--shards N`, the same N for each".to_owned()));
        }
        (Some(of), None) => {
            let help = format!(
                "say which with `--shard`: `0` to `{}`, `0-{0}` for all one after the other, or `auto`",
                of - 1
            );
            return Err(usage(format!("which of the {of} shards is to be run?"), help));
        }
    };
    let (first, last, named) = match choice {
        ShardChoice::Numbers { first, last } => (first, last, None),
        ShardChoice::Auto => {
            let (name, value) = from_environment(variable)?;
            let wrong = || {
                let message = format!("`--shard auto`: `{name}` is `{value}`, and that is no number of a shard");
                usage(message, format!("shards are numbered from 0 to {}", of - 1))
            };
            // What a scheduler gives is one number; who sets our own variable may mean several.
            let choice = if name == VARIABLES[0] || !value.contains('-') { value.trim().parse().ok() } else { None };
            match choice {
                Some(ShardChoice::Numbers { first, last }) => (first, last, Some(name)),
                Some(ShardChoice::Auto) | None => return Err(wrong()),
            }
        }
    };
    if last >= of {
        return Err(out_of_range(last, of, named));
    }
    Ok(Some((first..=last).map(|index| Shard { index, of }).collect()))
}

/// The variable that names the shard, and what it says. One that is empty says nothing.
fn from_environment(variable: &dyn Fn(&str) -> Option<String>) -> Result<(&'static str, String), Failure> {
    let set = VARIABLES.iter().find_map(|name| Some((*name, variable(name)?)).filter(|(_, value)| !value.is_empty()));
    set.ok_or_else(|| {
        let names: Vec<_> = VARIABLES.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("`--shard auto`: none of {} is set", names.join(", "));
        usage(message, "outside of a scheduler, say which shard: `--shard 3`".to_owned())
    })
}

fn out_of_range(index: u32, of: u32, named: Option<&str>) -> Failure {
    let range = format!("there are {of} shards, from 0 to {}", of - 1);
    let Some(name) = named else {
        return usage(format!("there is no shard {index}"), range);
    };
    let help = match name {
        "SLURM_ARRAY_TASK_ID" => format!("{range}: submit the array with `--array=0-{}`", of - 1),
        "JOB_COMPLETION_INDEX" => format!("{range}: the job's `completions` and `--shards` have to be the same number"),
        "SLURM_PROCID" => format!("{range}: the step's `--ntasks` and `--shards` have to be the same number"),
        _ => range,
    };
    usage(format!("`--shard auto`: `{name}` is {index}, and there is no such shard"), help)
}

fn usage(message: String, help: String) -> Failure {
    Failure::Usage { message, help: Some(help) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shards: Option<u32>, shard: Option<&str>, set: &[(&str, &str)]) -> Result<Vec<u32>, (String, String)> {
        let shard = shard.map(|word| word.parse().unwrap());
        let options = RunOptions { shards, shard, ..RunOptions::default() };
        let variable = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
        match choose(&options, &variable) {
            Ok(chosen) => Ok(chosen.unwrap_or_default().iter().map(|shard| shard.index).collect()),
            Err(Failure::Usage { message, help }) => Err((message, help.unwrap())),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn shards_are_those_asked_for() {
        assert_eq!(check(None, None, &[]), Ok(vec![]));
        assert_eq!(check(Some(16), Some("3"), &[]), Ok(vec![3]));
        assert_eq!(check(Some(4), Some("1-3"), &[]), Ok(vec![1, 2, 3]));
        assert_eq!(check(Some(1), Some("0"), &[]), Ok(vec![0]));
    }

    #[test]
    fn the_first_variable_that_is_set_names_the_shard() {
        let mut set = vec![("SLURM_PROCID", "1")];
        for (name, value, expected) in [
            ("SLURM_ARRAY_TASK_ID", "2", vec![2]),
            ("JOB_COMPLETION_INDEX", "3", vec![3]),
            ("FLOWGPU_SHARD", "4-6", vec![4, 5, 6]),
            ("FLOWGPU_SHARD", "7", vec![7]),
        ] {
            set.insert(0, (name, value));
            assert_eq!(check(Some(16), Some("auto"), &set), Ok(expected), "{set:?}");
        }
        assert_eq!(check(Some(16), Some("auto"), &[("FLOWGPU_SHARD", ""), ("SLURM_PROCID", "1")]), Ok(vec![1]));
    }

    #[test]
    fn what_cannot_be_is_said_with_what_to_do() {
        let check = |shards, shard, set: &[(&str, &str)], message: &str, help: &str| {
            let wrong = check(shards, shard, set).unwrap_err();
            assert!(wrong.0.contains(message) && wrong.1.contains(help), "{wrong:?}");
        };
        check(None, Some("3"), &[], "`--shard 3` of how many?", "`--shards N`");
        check(Some(16), None, &[], "which of the 16 shards", "`0-15` for all");
        check(Some(16), Some("16"), &[], "there is no shard 16", "from 0 to 15");
        check(Some(16), Some("auto"), &[], "none of `FLOWGPU_SHARD`, `JOB_COMPLETION_INDEX`", "`--shard 3`");
        let slurm = [("SLURM_ARRAY_TASK_ID", "16")];
        check(Some(16), Some("auto"), &slurm, "`SLURM_ARRAY_TASK_ID` is 16", "`--array=0-15`");
        check(Some(16), Some("auto"), &[("JOB_COMPLETION_INDEX", "20")], "no such shard", "`completions`");
        for value in ["x", "-1", "1.5", "auto", "3-1"] {
            check(Some(16), Some("auto"), &[("FLOWGPU_SHARD", value)], "is no number of a shard", "from 0 to 15");
        }
        check(Some(16), Some("auto"), &[("SLURM_PROCID", "1-3")], "is no number of a shard", "from 0 to 15");
    }
}
