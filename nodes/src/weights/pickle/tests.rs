use proptest::prelude::*;

use super::machine::MAX_VALUES;
use super::*;

fn refused(bytes: &[u8], expected: &str) {
    let error = Pickle::read(bytes, 0).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

/// What Python wrote for `object`, and what is read of it.
fn check(bytes: &[u8], expected: &Value<'_>) {
    let (pickle, end) = Pickle::read(bytes, 0).unwrap();
    assert_eq!(pickle.root(), expected);
    assert_eq!(end, bytes.len());
}

#[test]
fn numbers_and_text_of_all_protocols_are_read() {
    check(b"\x80\x02K\x05.", &Value::Int(5));
    check(b"\x80\x02M\x00\x01.", &Value::Int(256));
    check(b"\x80\x02J\xff\xff\xff\xff.", &Value::Int(-1));
    check(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", &Value::Int(0x1950_a86a_20f9_469c_fc6c));
    check(b"\x80\x02\x8a\x01\xfe.", &Value::Int(-2));
    check(b"\x80\x02\x8a\x00.", &Value::Int(0));
    check(b"\x80\x02X\x02\x00\x00\x00ab.", &Value::Text("ab"));
    check(b"\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02ab\x94.", &Value::Text("ab"));
    check(b"\x80\x02U\x02\xff\xfe.", &Value::Bytes);
    check(b"\x80\x02G?\xf0\x00\x00\x00\x00\x00\x00.", &Value::Float);
    check(b"\x80\x02N.", &Value::None);
}

#[test]
fn a_pickle_may_contain_itself() {
    // a = []; a.append(a)
    let (pickle, _) = Pickle::read(b"\x80\x02]q\x00h\x00a.", 0).unwrap();
    assert_eq!(pickle.root(), &Value::List(vec![ValueId(0)]));
}

#[test]
fn a_million_nested_tuples_are_harmless() {
    let mut bytes = b"\x80\x02)".to_vec();
    bytes.extend([0x85; 1_000_000]);
    bytes.push(b'.');
    let (pickle, _) = Pickle::read(&bytes, 0).unwrap();
    assert!(matches!(pickle.root(), Value::Tuple(items) if items.len() == 1));
}

#[test]
fn the_number_of_values_is_bounded() {
    let bytes = b"N0".repeat(MAX_VALUES + 1);
    refused(&bytes, "has more than 4000000 values");
}

#[test]
fn what_is_recalled_again_and_again_costs_no_more() {
    // One long list of pairs made into dictionaries, one long shape into tensors, one value onto the stack, over and over.
    let recalled = |beginning: &[u8], again: &[u8], times: usize| [beginning, &again.repeat(times)].concat();
    let pairs =
        [b"\x80\x02]q\x00(".to_vec(), b"K\x01K\x02\x86".repeat(100_000), b"eccollections\nOrderedDict\nq\x01".to_vec()]
            .concat();
    refused(&recalled(&pairs, b"h\x01h\x00\x85R", 100), "has more than 4000000 copied pairs");
    refused(&recalled(b"\x80\x02Nq\x00", b"h\x00", MAX_VALUES), "has more than 4000000 values on its stack");
    refused(&recalled(b"\x80\x02", b"(", MAX_VALUES + 1), "has more than 4000000 open groups");
    refused(&recalled(b"\x80\x04N", b"\x94", MAX_VALUES + 1), "has more than 4000000 kept values");
    let shape = [b"(".to_vec(), b"K\x01".repeat(17), b"t".to_vec()].concat();
    let storage = b"(\x8c\x07storagectorch\nFloatStorage\n\x8c\x01k\x8c\x03cpuK\x04tQ";
    let tensor =
        [&b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n("[..], storage, b"K\x00", &shape, &shape, b"tR."].concat();
    refused(&tensor, "has a tensor of 17 dimensions");
}

#[test]
fn functions_are_refused_by_name() {
    // os.system("true"), builtins.eval, the same by the later protocol, by INST, and nested into arguments
    refused(b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", "asks to run `os.system`: refused");
    refused(b"\x80\x02cbuiltins\neval\nq\x00.", "`builtins.eval`");
    refused(b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.", "`builtins.exec`");
    refused(b"(S'true'\nios\nsystem\n.", "instruction 0x53");
    refused(b"(ios\nsystem\n.", "`os.system`");
    refused(b"\x80\x02ccollections\nOrderedDict\n(cposix\nsystem\ntR.", "`posix.system`");
    refused(b"\x80\x02ctorch\nload\n.", "`torch.load`");
    refused(b"\x80\x02ctorch._utils\n_rebuild_tensor_v2.x\n.", "`torch._utils._rebuild_tensor_v2.x`");
    refused(b"\x80\x02cos\x1b[2J\nsystem\n.", "`os\\u{1b}[2J.system`");
    refused(b"\x80\x02ccollections\nOrderedDict\nN\x85R.", "something other than pairs");
}

#[test]
fn only_what_torch_writes_is_interpreted() {
    refused(b"I5\n.", "instruction 0x49 at byte 0");
    refused(b"\x80\x02\x82\x01.", "instruction 0x82 at byte 2");
    refused(b"\x80\x02K\x01K\x02R.", "calls something other than a function");
    refused(b"\x80\x02ctorch\nFloatStorage\n)R.", "calls Storage(F32) with 0 arguments");
    refused(b"\x80\x02K\x01}b.", "gives state to something other than a dictionary");
    refused(b"\x80\x02K\x01K\x02a.", "appends to something other than a list");
    refused(b"\x80\x02K\x01(K\x02u.", "sets items of something other");
    refused(b"\x80\x02}(K\x02u.", "sets items of something other");
    refused(b"\x80\x02X\x02\x00\x00\x00abQ.", "refers to something other than a storage");
}

#[test]
fn a_broken_machine_program_is_refused() {
    refused(b"", "breaks off at byte 0");
    refused(b"\x80\x02", "breaks off at byte 2");
    refused(b"\x80\x02.", "empty stack");
    refused(b"\x80\x02K\x01(0.", "empty stack");
    refused(b"\x80\x02t.", "closes a group that it did not open");
    refused(b"\x80\x02h\x07.", "recalls value 7");
    refused(b"\x80\x02X\xff\xff\xff\xffab.", "breaks off at byte 10");
    refused(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffab.", "breaks off");
    refused(b"\x80\x02\x8a\x11aaaaaaaaaaaaaaaaa.", "a number of 17 bytes");
    refused(b"\x80\x02ccollections", "in the middle of a name");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Pickle::read(&bytes, 0);
    }

    #[test]
    fn no_sequence_of_instructions_makes_it_panic(program in proptest::collection::vec(instruction(), 0..60)) {
        let _ = Pickle::read(&program.concat(), 0);
    }
}

/// Instructions with fitting operands: random bytes alone seldom get beyond the second.
fn instruction() -> impl Strategy<Value = Vec<u8>> {
    let plain = proptest::sample::select(b"(012N)t]ae}suRbQ.\x81\x85\x86\x87\x88\x93\x94".to_vec())
        .prop_map(|opcode| vec![opcode]);
    let small = (proptest::sample::select(b"Kqh".to_vec()), 0u8..6).prop_map(|(opcode, operand)| vec![opcode, operand]);
    let global = proptest::sample::select(vec![
        &b"ccollections\nOrderedDict\n"[..],
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ctorch._utils\n_rebuild_parameter\n",
        b"ctorch\nSize\n",
        b"ctorch\nFloatStorage\n",
        b"\x8c\x07storage",
        b"\x8c\x01k",
        // ("storage", torch.FloatStorage, "k", "cpu", 4) as a storage
        b"(\x8c\x07storagectorch\nFloatStorage\n\x8c\x01k\x8c\x03cpuK\x04tQ",
    ])
    .prop_map(<[u8]>::to_vec);
    prop_oneof![3 => plain, 1 => small, 2 => global]
}
