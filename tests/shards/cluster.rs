//! The examples for clusters: the scripts, run as the schedulers would, and the manifest against the API's schema.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{ROOT, TESTING};
use crate::scene::{LINES, Scene, done};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines/cluster/slurm-array.sh");
const MANIFEST: &str = include_str!("../../pipelines/cluster/kubernetes-indexed-job.yaml");
const SCHEMA: &str = include_str!("kubernetes/job-batch-v1.json");

/// Rows that take so long that most are left when the grace is over.
const STOPPED_EARLY: [&str; 4] = ["--set", "micros=60000", "--grace", "10ms"];

/// A command with the program on its path as `flowgpu`.
fn with_program(scene: &Scene, program: &str, args: &[&str]) -> Command {
    let tools = scene.path("tools");
    fs::create_dir_all(&tools).expect("a folder");
    if !tools.join("flowgpu").exists() {
        // Several tests of one scene at once make the same link.
        let _ = symlink(TESTING, tools.join("flowgpu"));
    }
    let path = std::env::var("PATH").expect("a path");
    let mut command = scene.command(program, args);
    command.env("PATH", format!("{}:{path}", tools.display()));
    command
}

/// The script as Slurm starts it for one task of an array.
fn slurm_task(scene: &Scene, task: u32, args: &[&str]) -> Command {
    let mut command = with_program(scene, "bash", &[&[SCRIPT, "p.yaml"], args].concat());
    command.env("SLURM_ARRAY_JOB_ID", "4711").env("SLURM_ARRAY_TASK_ID", task.to_string());
    // Set in every job; the task's number comes before it.
    command.env("SLURM_PROCID", "0");
    command
}

#[test]
fn a_slurm_array_of_sixteen_tasks_merged_is_the_undivided_run() {
    let scene = Scene::new(640, LINES);
    let expected = scene.undivided();
    thread::scope(|scope| {
        for task in 0..16 {
            let mut command = slurm_task(&scene, task, &["-q"]);
            scope.spawn(move || done(command.output().expect("it starts")).expect(0).len());
        }
    });
    scene.merge(&[]).expect(3);
    assert_eq!(scene.merged(), expected);
}

#[test]
fn a_slurm_task_that_is_told_to_stop_is_queued_again() {
    let scene = Scene::new(640, LINES);
    let mut command = slurm_task(&scene, 3, &STOPPED_EARLY);
    scene.write("tools/scontrol", "#!/bin/sh\necho \"$@\" > requeued\n");
    fs::set_permissions(scene.path("tools/scontrol"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a file of one's own");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    scene.wait_for_cut(3, 16);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    done(child.wait_with_output().expect("it ends")).expect(130);
    assert_eq!(scene.read("requeued"), "requeue 4711_3\n");
    let done = done(slurm_task(&scene, 3, &[]).output().expect("it starts"));
    assert!(done.expect(0).contains("resuming at "), "{done:?}");
}

#[test]
fn the_slurm_script_asks_for_as_many_tasks_as_there_are_shards() {
    let script = fs::read_to_string(SCRIPT).expect("the example");
    assert!(script.contains("\n#SBATCH --array=0-15\n") && script.contains("\nSHARDS=16\n"), "{script}");
}

fn manifest() -> Value {
    serde_yaml::from_str(MANIFEST).expect("one YAML document")
}

#[test]
fn the_kubernetes_job_is_one_by_the_schema_of_the_api() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mistakes = |job: &Value| validator.iter_errors(job).map(|error| error.to_string()).collect::<Vec<_>>();
    let mut job = manifest();
    assert_eq!(mistakes(&job), [] as [&str; 0]);
    job["spec"]["completion"] = 16.into();
    job["spec"]["template"]["spec"]["containers"][0]["image"] = 1.into();
    assert_eq!(mistakes(&job).len(), 2, "mistakes are found");
}

#[test]
fn the_kubernetes_job_has_as_many_completions_as_there_are_shards() {
    let job = manifest();
    let args = &job["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(job["spec"]["completionMode"], "Indexed");
    assert_eq!(args[4], job["spec"]["completions"].to_string());
    assert!(job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64() > Some(20));
}

#[test]
fn a_kubernetes_pod_takes_rejects_for_success_and_passes_signals_on() {
    let scene = Scene::new(640, LINES);
    let job = manifest();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    let words = container["command"].as_array().into_iter().chain(container["args"].as_array()).flatten();
    let words: Vec<_> = words.map(|word| word.as_str().expect("text")).collect();
    let words: Vec<_> = words.iter().map(|word| if word.starts_with("/data/") { "p.yaml" } else { word }).collect();
    let pod = |args: &[&str]| {
        let mut command = with_program(&scene, words[0], &[&words[1..], args].concat());
        command.env("JOB_COMPLETION_INDEX", "3").stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let child = pod(&STOPPED_EARLY);
    scene.wait_for_cut(3, 16);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    done(child.wait_with_output().expect("it ends")).expect(130);
    let ended = done(pod(&[]).wait_with_output().expect("it ends"));
    assert!(ended.expect(0).contains("resuming at "), "{ended:?}");
    done(pod(&["--shards", "nonsense"]).wait_with_output().expect("it ends")).expect(2);
}

#[test]
fn the_scripts_parse() {
    done(Command::new("bash").args(["-n", SCRIPT]).output().expect("bash")).expect(0);
    assert!(SCRIPT.starts_with(ROOT));
}
