//! What `CUDA_VISIBLE_DEVICES` leaves visible, as CUDA reads it.
//!
//! A worker gets exactly one of the user's tokens, as it was written: what a token means is CUDA's to say. Here it is
//! only found which device that will be, so that memory can be planned and the worker's own finding compared. Pure: the
//! variable's value comes in as text.
//!
//! CUDA's rules, kept here: the first token decides whether numbers or names are meant; the first that is invalid ends
//! the list; a device named twice makes the whole list empty; a name may be cut as long as it fits one device only; a
//! number is a place in the order that `CUDA_DEVICE_ORDER` asks for. A number that names a GPU in MIG mode means its first
//! instance.

/// A GPU that the driver knows, in the order of the PCI bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Its UUID, `GPU-…`; empty if it does not say.
    pub uuid: String,
    /// Its name: the order that is CUDA's own default depends on it.
    pub name: String,
    /// The UUIDs of its instances if it is in MIG mode, `MIG-…`; then only they can be used.
    pub instances: Option<Vec<String>>,
}

/// A device that a worker may be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visible {
    /// The value of `CUDA_VISIBLE_DEVICES` that shows this device and no other.
    pub token: String,
    /// The GPU, by its place in what was found.
    pub gpu: usize,
    /// The instance, if the GPU is in MIG mode.
    pub instance: Option<usize>,
}

/// The devices that are visible when `CUDA_VISIBLE_DEVICES` is `var` and `CUDA_DEVICE_ORDER` is `order`, and what was
/// wrong with them, a sentence each. A variable that is not set shows all; their tokens are UUIDs, which depend on no
/// order.
pub fn visible(var: Option<&str>, order: Option<&str>, found: &[Found]) -> (Vec<Visible>, Vec<String>) {
    let Some(var) = var else {
        return all(found);
    };
    let mut notes = Vec::new();
    if var.trim().is_empty() {
        notes.push("`CUDA_VISIBLE_DEVICES` is empty, which hides all GPUs".to_owned());
        return (Vec::new(), notes);
    }
    let form = Form::of(var.trim_start());
    let mut visible: Vec<Visible> = Vec::new();
    for token in var.split(',').map(str::trim) {
        let (gpu, instance) = match form.find(token, found) {
            Ok(place) => place,
            Err(reason) => {
                notes.push(format!("`{token}` in `CUDA_VISIBLE_DEVICES` {reason}; CUDA ends the list there"));
                break;
            }
        };
        if visible.iter().any(|other| (other.gpu, other.instance) == (gpu, instance)) {
            notes.push(format!("`CUDA_VISIBLE_DEVICES` names `{token}` twice, for which CUDA hides all GPUs"));
            return (Vec::new(), notes);
        }
        visible.push(Visible { token: token.to_owned(), gpu, instance });
    }
    if form == Form::Number && order == Some("FASTEST_FIRST") && found.iter().any(|gpu| gpu.name != found[0].name) {
        notes.push(
            "`CUDA_DEVICE_ORDER=FASTEST_FIRST` may count unequal GPUs in another order than this list: name them by \
             UUID in `CUDA_VISIBLE_DEVICES`"
                .to_owned(),
        );
    }
    (visible, notes)
}

fn all(found: &[Found]) -> (Vec<Visible>, Vec<String>) {
    let (mut visible, mut notes) = (Vec::new(), Vec::new());
    for (gpu, Found { uuid, name, instances }) in found.iter().enumerate() {
        match instances {
            None if uuid.is_empty() => {
                notes.push(format!("GPU {gpu} ({name}) has no UUID, so no worker can be given it"))
            }
            None => visible.push(Visible { token: uuid.clone(), gpu, instance: None }),
            Some(instances) if instances.is_empty() => {
                notes.push(format!("GPU {gpu} ({name}) is in MIG mode and has no instances"));
            }
            Some(instances) => visible.extend(instances.iter().enumerate().map(|(at, uuid)| Visible {
                token: uuid.clone(),
                gpu,
                instance: Some(at),
            })),
        }
    }
    (visible, notes)
}

/// How the tokens of a list are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number,
    Gpu,
    Mig,
}

impl Form {
    fn of(text: &str) -> Self {
        if text.starts_with("GPU-") {
            Form::Gpu
        } else if text.starts_with("MIG-") {
            Form::Mig
        } else {
            Form::Number
        }
    }

    /// The device that a token means, or why it means none.
    fn find(self, token: &str, found: &[Found]) -> Result<(usize, Option<usize>), String> {
        match self {
            Form::Number => {
                let number = leading_number(token).ok_or_else(|| "is no number".to_owned())?;
                let missing = || match found.len() {
                    1 => "is not there: there is 1 GPU, number 0".to_owned(),
                    n => format!("is not there: there are {n} GPUs, numbers from 0"),
                };
                let gpu = usize::try_from(number).ok().filter(|&gpu| gpu < found.len()).ok_or_else(missing)?;
                first_instance(found, gpu)
            }
            Form::Gpu if !token.starts_with("GPU-") => Err("is no UUID of a GPU, as the first one is".to_owned()),
            Form::Gpu => {
                let gpu = only(found.iter().map(|gpu| gpu.uuid.as_str()), token)?;
                first_instance(found, gpu)
            }
            Form::Mig if !token.starts_with("MIG-") => Err("is no MIG instance, as the first one is".to_owned()),
            Form::Mig => {
                let all = found.iter().enumerate().flat_map(|(gpu, found)| {
                    let instances = found.instances.iter().flatten().enumerate();
                    instances.map(move |(at, uuid)| (gpu, at, uuid.as_str()))
                });
                let all: Vec<_> = all.collect();
                match only(all.iter().map(|(_, _, uuid)| *uuid), token) {
                    Ok(at) => Ok((all[at].0, Some(all[at].1))),
                    Err(reason) => old_form(token, found).ok_or(reason),
                }
            }
        }
    }
}

/// `MIG-GPU-<uuid>/<gpu instance>/<compute instance>`, the form of drivers before R470, which newer ones still take. NVML
/// does not tell the two numbers of an instance through its safe interface, so it can be matched where the GPU has one.
fn old_form(token: &str, found: &[Found]) -> Option<(usize, Option<usize>)> {
    let gpu_uuid = token.strip_prefix("MIG-")?.split('/').next().filter(|uuid| uuid.starts_with("GPU-"))?;
    let gpu = only(found.iter().map(|gpu| gpu.uuid.as_str()), gpu_uuid).ok()?;
    (found[gpu].instances.as_ref()?.len() == 1).then_some((gpu, Some(0)))
}

fn first_instance(found: &[Found], gpu: usize) -> Result<(usize, Option<usize>), String> {
    match &found[gpu].instances {
        None => Ok((gpu, None)),
        Some(instances) if instances.is_empty() => Err("is in MIG mode and has no instances".to_owned()),
        Some(_) => Ok((gpu, Some(0))),
    }
}

/// The place of the only one that starts with `prefix`. Letters of UUIDs count the same in both cases.
fn only<'a>(uuids: impl Iterator<Item = &'a str>, prefix: &str) -> Result<usize, String> {
    let fits = |uuid: &str| uuid.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let mut fitting = uuids.enumerate().filter(|(_, uuid)| fits(uuid) && prefix.len() > "GPU-".len());
    match (fitting.next(), fitting.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some(_), Some(_)) => Err("fits several devices".to_owned()),
        (None, _) => Err("fits no device".to_owned()),
    }
}

/// The number that a token starts with, as C's `strtoul` reads it: `1`, and `1x` too. Negative ones are none.
fn leading_number(token: &str) -> Option<u64> {
    let digits = token.strip_prefix('+').unwrap_or(token);
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(uuid: &str) -> Found {
        Found { uuid: uuid.to_owned(), name: "A".to_owned(), instances: None }
    }

    /// Four GPUs: the first two begin alike, the third is cut into two instances, the fourth into one.
    fn found() -> Vec<Found> {
        let instances = |uuids: &[&str]| Some(uuids.iter().map(|&uuid| uuid.to_owned()).collect());
        vec![
            gpu("GPU-1111-a"),
            gpu("GPU-1112-b"),
            Found { instances: instances(&["MIG-aaaa", "MIG-aabb"]), ..gpu("GPU-3333-c") },
            Found { instances: instances(&["MIG-cccc"]), ..gpu("GPU-4444-d") },
        ]
    }

    fn check(var: &str, expected: &[(&str, usize, Option<usize>)], n_notes: usize) {
        let (visible, notes) = visible(Some(var), None, &found());
        let visible: Vec<_> =
            visible.iter().map(|device| (device.token.as_str(), device.gpu, device.instance)).collect();
        assert_eq!(visible, expected, "{var}");
        assert_eq!(notes.len(), n_notes, "{var}: {notes:?}");
    }

    #[test]
    fn numbers_are_places_and_their_order_is_kept() {
        check("0", &[("0", 0, None)], 0);
        check("1,0", &[("1", 1, None), ("0", 0, None)], 0);
        check(" 0 , 1 ", &[("0", 0, None), ("1", 1, None)], 0);
        check("01", &[("01", 1, None)], 0);
        check("1x,0", &[("1x", 1, None), ("0", 0, None)], 0);
    }

    #[test]
    fn the_number_of_a_gpu_in_mig_mode_means_its_first_instance() {
        check("2", &[("2", 2, Some(0))], 0);
        check("GPU-3333-c", &[("GPU-3333-c", 2, Some(0))], 0);
    }

    #[test]
    fn names_may_be_cut_as_long_as_they_fit_one_device() {
        check("GPU-1112-b", &[("GPU-1112-b", 1, None)], 0);
        check("GPU-1112", &[("GPU-1112", 1, None)], 0);
        check("GPU-1111-A", &[("GPU-1111-A", 0, None)], 0);
        check("GPU-111", &[], 1);
        check("GPU-", &[], 1);
        check("GPU-1111-a-and-more", &[], 1);
    }

    #[test]
    fn instances_have_names_of_their_own() {
        check("MIG-aabb,MIG-aaaa", &[("MIG-aabb", 2, Some(1)), ("MIG-aaaa", 2, Some(0))], 0);
        check("MIG-c", &[("MIG-c", 3, Some(0))], 0);
        check("MIG-aa", &[], 1);
    }

    #[test]
    fn the_old_form_of_an_instance_is_known_where_the_gpu_has_one() {
        check("MIG-GPU-4444-d/7/0", &[("MIG-GPU-4444-d/7/0", 3, Some(0))], 0);
        check("MIG-GPU-3333-c/7/0", &[], 1);
        check("MIG-GPU-1111-a/7/0", &[], 1);
    }

    #[test]
    fn empty_and_negative_hide_all() {
        check("", &[], 1);
        check("  ", &[], 1);
        check("-1", &[], 1);
        check("NoDevFiles", &[], 1);
        check(",0", &[], 1);
    }

    #[test]
    fn a_device_named_twice_hides_all() {
        check("0,0", &[], 1);
        check("1,0,01", &[], 1);
        check("GPU-1111,GPU-1111-a", &[], 1);
        check("MIG-aaaa,MIG-aaaa", &[], 1);
    }

    #[test]
    fn the_first_invalid_one_ends_the_list() {
        check("0,-1,1", &[("0", 0, None)], 1);
        check("1,4,0", &[("1", 1, None)], 1);
        check("7", &[], 1);
        check("0,GPU-1112", &[("0", 0, None)], 1);
        check("GPU-1112,0", &[("GPU-1112", 1, None)], 1);
        check("MIG-cccc,GPU-1112", &[("MIG-cccc", 3, Some(0))], 1);
        check("0,,1", &[("0", 0, None)], 1);
        check("99999999999999999999", &[], 1);
        check("0,0x1", &[], 1);
    }

    #[test]
    fn without_the_variable_all_are_visible_by_uuid() {
        let mut found = found();
        found.push(Found { instances: Some(Vec::new()), ..gpu("GPU-5555-e") });
        let (devices, notes) = visible(None, None, &found);
        let tokens: Vec<_> = devices.iter().map(|device| device.token.as_str()).collect();
        assert_eq!(tokens, ["GPU-1111-a", "GPU-1112-b", "MIG-aaaa", "MIG-aabb", "MIG-cccc"]);
        assert!(notes.len() == 1 && notes[0].contains("MIG mode"), "{notes:?}");
        assert_eq!(visible(None, None, &[]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_order_that_cannot_be_known_is_told() {
        let mut found = found();
        let order = Some("FASTEST_FIRST");
        assert_eq!(visible(Some("1"), order, &found).1, [""; 0]);
        found[1].name = "B".to_owned();
        assert_eq!(visible(Some("1"), order, &found).1.len(), 1);
        assert_eq!(visible(Some("GPU-1112"), order, &found).1, [""; 0]);
        assert_eq!(visible(Some("1"), Some("PCI_BUS_ID"), &found).1, [""; 0]);
    }
}
