//! Which devices each model may run on: what `device:` comes to on this machine.

use super::super::{Bytes, Inventory};
use super::{Need, PlaceError};
use crate::node::Devices;

/// Where a model may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Allowed {
    /// On the CPU.
    Cpu,
    /// On these GPUs, by their places in [`Inventory::gpus`], in order.
    Gpus(Vec<usize>),
}

/// Where each model may run. `auto` takes the GPUs where they can be used, else the CPU, and then a note says why: nothing
/// else ever chooses the CPU by itself.
pub(in super::super) fn allowed(
    needs: &[Need],
    have: &Inventory,
) -> Result<(Vec<Allowed>, Option<String>), PlaceError> {
    let all: Vec<usize> = (0..have.gpus.len()).collect();
    let why_not = why_no_gpu(have);
    let mut note = None;
    let allowed = needs.iter().map(|need| match (&need.devices, &why_not) {
        (Devices::Cpu, _) => Ok(Allowed::Cpu),
        (Devices::Auto, None) => Ok(Allowed::Gpus(all.clone())),
        (Devices::Auto, Some(why)) => {
            note.get_or_insert_with(|| format!("models run on the CPU: {}", why.message));
            Ok(Allowed::Cpu)
        }
        (Devices::Cuda(numbers), _) => {
            // A wrong number is told before a missing worker: it is wrong whatever is installed.
            let gpus = numbers.iter().map(|&number| find(need, number, have)).collect::<Result<Vec<_>, _>>()?;
            if let Some(why) = &why_not {
                return Err(PlaceError {
                    message: format!("`{}` asks for `{}`, and {}", need.name, need.devices, why.message),
                    help: why.help.clone(),
                });
            }
            Ok(Allowed::Gpus(if gpus.is_empty() { all.clone() } else { gpus }))
        }
    });
    let allowed = allowed.collect::<Result<Vec<_>, _>>()?;
    Ok((allowed, note))
}

fn find(need: &Need, number: u32, have: &Inventory) -> Result<usize, PlaceError> {
    let found = have.gpus.iter().position(|gpu| gpu.index == number);
    found.ok_or_else(|| {
        if have.gpus.is_empty() {
            let why = why_no_gpu(have).unwrap_or_else(|| no_gpu(have));
            let message = format!("`{}` asks for `cuda:{number}`, and {}", need.name, why.message);
            return PlaceError { message, help: why.help };
        }
        let list = have.gpus.iter().map(|gpu| format!("cuda:{} {} ({})", gpu.index, gpu.name, Bytes(gpu.total)));
        let list: Vec<_> = list.collect();
        let note = have.gpus_note.as_ref().map(|note| format!("\n{note}")).unwrap_or_default();
        PlaceError {
            message: format!(
                "`{}` asks for `cuda:{number}`, and there {}: {}{note}",
                need.name,
                if list.len() == 1 { "is 1 GPU".to_owned() } else { format!("are {} GPUs", list.len()) },
                list.join(", ")
            ),
            help: "`flowgpu devices` shows them all; `device: cuda` takes every one".to_owned(),
        }
    })
}

/// Why no GPU can be used, if none can.
fn why_no_gpu(have: &Inventory) -> Option<PlaceError> {
    if have.gpus.is_empty() {
        return Some(no_gpu(have));
    }
    let missing = have.cuda_worker.as_ref().err()?;
    Some(PlaceError { message: missing.to_string(), help: missing.help() })
}

fn no_gpu(have: &Inventory) -> PlaceError {
    PlaceError {
        message: have.gpus_note.clone().unwrap_or_else(|| "there is no GPU".to_owned()),
        help: "`flowgpu devices` shows what there is; `device: auto` takes GPUs where there are some, `device: cpu` \
               none"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::inventory::tests::{gpus, without_worker};
    use super::super::tests::need;
    use super::*;

    fn check(devices: &str, have: &Inventory) -> Result<(Allowed, Option<String>), PlaceError> {
        let need = Need { devices: devices.parse().unwrap(), ..need("scores", 1, 1, 1) };
        allowed(&[need], have).map(|(mut allowed, note)| (allowed.remove(0), note))
    }

    #[test]
    fn gpus_are_taken_where_there_are_some() {
        let have = gpus(&[1000, 1000, 1000]);
        assert_eq!(check("auto", &have), Ok((Allowed::Gpus(vec![0, 1, 2]), None)));
        assert_eq!(check("cuda", &have), Ok((Allowed::Gpus(vec![0, 1, 2]), None)));
        assert_eq!(check("cuda:2,0", &have), Ok((Allowed::Gpus(vec![2, 0]), None)));
        assert_eq!(check("cpu", &have), Ok((Allowed::Cpu, None)));
    }

    #[test]
    fn only_auto_falls_back_to_the_cpu_and_says_why() {
        let mut none = gpus(&[]);
        none.gpus_note = Some("there is no driver".to_owned());
        let reason = Some("models run on the CPU: there is no driver".to_owned());
        assert_eq!(check("auto", &none), Ok((Allowed::Cpu, reason)));
        assert_eq!(check("cpu", &none), Ok((Allowed::Cpu, None)));
        for devices in ["cuda", "cuda:0"] {
            let error = check(devices, &none).unwrap_err();
            assert_eq!(error.message, format!("`scores` asks for `{devices}`, and there is no driver"));
        }
    }

    #[test]
    fn without_the_worker_no_gpu_is_used() {
        let have = without_worker(&[1000]);
        let (allowed, note) = check("auto", &have).unwrap();
        assert_eq!(allowed, Allowed::Cpu);
        assert!(note.as_ref().is_some_and(|note| note.contains("looked for `/bin/flowgpu-worker-cuda`")), "{note:?}");
        let error = check("cuda", &have).unwrap_err();
        assert!(error.message.contains("looked for `/bin/flowgpu-worker-cuda`"), "{error}");
        assert!(error.help.contains("FLOWGPU_WORKER_CUDA"), "{}", error.help);
        assert!(check("cuda:4", &have).unwrap_err().message.contains("there is 1 GPU"));
    }

    #[test]
    fn a_number_that_is_not_there_gets_the_list() {
        let error = check("cuda:1,7", &gpus(&[1024, 2048, 1024, 1024])).unwrap_err();
        assert_eq!(
            error.message,
            "`scores` asks for `cuda:7`, and there are 4 GPUs: cuda:0 A (1 GiB), cuda:1 A (2 GiB), cuda:2 A (1 GiB), \
             cuda:3 A (1 GiB)"
        );
    }
}
