//! `CUDA_VISIBLE_DEVICES` from the environment to the list of devices.

use serde_json::{Value as Json, json};

use crate::machine::{Machine, gpu, uuid, with};

/// Four GPUs; the third is cut into two instances.
fn machine() -> Machine {
    let instance = |uuid: &str| json!({"uuid": uuid, "name": "Stand-in A MIG 1g.5gb", "memory": 5_u64 << 30});
    let cut = with(gpu(2), "mig", json!([instance("MIG-aaaa-1"), instance("MIG-bbbb-2")]));
    Machine::new(&[gpu(0), gpu(1), cut, gpu(3)])
}

/// Token and UUID of each visible device.
fn visible(devices: &Json) -> Vec<(String, String)> {
    let gpus = devices["gpus"].as_array().expect("a list");
    for (at, gpu) in gpus.iter().enumerate() {
        assert_eq!(gpu["index"], at, "numbers follow each other");
        assert_eq!(gpu["device"], format!("cuda:{at}"));
    }
    let text = |value: &Json| value.as_str().expect("a text").to_owned();
    gpus.iter().map(|gpu| (text(&gpu["token"]), text(&gpu["uuid"]))).collect()
}

/// What is visible through `var`, and a part of what is noted about it.
fn check(var: Option<&str>, expected: &[(&str, &str)], note: Option<&str>) {
    let machine = match var {
        None => machine(),
        Some(var) => machine().set("CUDA_VISIBLE_DEVICES", var),
    };
    let devices = machine.devices();
    let expected: Vec<_> = expected.iter().map(|&(token, uuid)| (token.to_owned(), uuid.to_owned())).collect();
    assert_eq!(visible(&devices), expected, "{var:?}: {devices}");
    match note {
        None => assert_eq!(devices["gpus_note"], Json::Null, "{var:?}"),
        Some(part) => {
            let note = devices["gpus_note"].as_str().unwrap_or_else(|| panic!("{var:?} has no note"));
            assert!(note.contains(part), "{var:?}: {note}");
        }
    }
}

#[test]
fn without_the_variable_all_are_visible_by_uuid() {
    let (first, second, last) = (&*uuid(0), &*uuid(1), &*uuid(3));
    let all = [first, second, "MIG-aaaa-1", "MIG-bbbb-2", last];
    check(None, &all.map(|uuid| (uuid, uuid)), None);
}

#[test]
fn one_number() {
    check(Some("0"), &[("0", &uuid(0))], None);
}

#[test]
fn several_numbers_keep_their_order() {
    check(Some("3,0"), &[("3", &uuid(3)), ("0", &uuid(0))], None);
}

#[test]
fn the_number_of_a_gpu_in_mig_mode() {
    check(Some("2"), &[("2", "MIG-aaaa-1")], None);
}

#[test]
fn a_uuid() {
    check(Some(&uuid(1)), &[(&uuid(1), &uuid(1))], None);
}

#[test]
fn the_start_of_a_uuid() {
    check(Some("GPU-33,GPU-0"), &[("GPU-33", &uuid(3)), ("GPU-0", &uuid(0))], None);
}

#[test]
fn an_instance() {
    check(Some("MIG-bbbb-2"), &[("MIG-bbbb-2", "MIG-bbbb-2")], None);
    check(Some("MIG-b,MIG-aaaa-1"), &[("MIG-b", "MIG-bbbb-2"), ("MIG-aaaa-1", "MIG-aaaa-1")], None);
}

#[test]
fn empty() {
    check(Some(""), &[], Some("is empty"));
}

#[test]
fn minus_one() {
    check(Some("-1"), &[], Some("`-1`"));
    check(Some("0,-1,1"), &[("0", &uuid(0))], Some("`-1`"));
}

#[test]
fn duplicates() {
    check(Some("0,1,0"), &[], Some("twice"));
    check(Some("GPU-0,GPU-00"), &[], Some("twice"));
}

#[test]
fn unknown() {
    check(Some("1,7,0"), &[("1", &uuid(1))], Some("`7` in `CUDA_VISIBLE_DEVICES` is not there: there are 4 GPUs"));
    check(Some("GPU-77"), &[], Some("fits no device"));
    check(Some("all"), &[], Some("`all`"));
}

#[test]
fn an_order_of_cuda_own_is_told_where_it_matters() {
    let fast = with(gpu(1), "name", json!("Stand-in B"));
    let machine = Machine::new(&[gpu(0), fast]).set("CUDA_DEVICE_ORDER", "FASTEST_FIRST");
    assert_eq!(machine.devices()["gpus_note"], Json::Null);
    let machine = machine.set("CUDA_VISIBLE_DEVICES", "0");
    assert!(machine.devices()["gpus_note"].as_str().expect("a note").contains("FASTEST_FIRST"));
}
