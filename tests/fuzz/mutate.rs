//! Changes to inputs, the same for a seed on every machine.

/// Marsaglia's xorshift64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that `seed` alone decides.
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| {
            random.next();
        });
        random
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Where arithmetic goes wrong: around powers of two, and signs.
const NUMBERS: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x200,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// One of `inputs`, changed once or a few times.
pub fn changed(inputs: &[(String, Vec<u8>)], random: &mut Random, max_bytes: usize) -> Vec<u8> {
    let mut input = inputs[random.below(inputs.len())].1.clone();
    // Mostly few changes: what is far from any format is refused by its first bytes.
    let n_changes = [1, 1, 2, 3, 5, 12][random.below(6)];
    for _ in 0..n_changes {
        let other = &inputs[random.below(inputs.len())].1;
        change(&mut input, other, random);
        input.truncate(max_bytes);
    }
    input
}

/// A place in the input: beginnings and ends, where headers and footers are, as often as all the rest.
fn place(n_bytes: usize, random: &mut Random) -> usize {
    if n_bytes == 0 {
        return 0;
    }
    match random.below(4) {
        0 => random.below(n_bytes.min(128)),
        1 => n_bytes - 1 - random.below(n_bytes.min(256)),
        _ => random.below(n_bytes),
    }
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = place(input.len(), random);
    let length = 1 + match random.below(3) {
        0 => random.below(4),
        1 => random.below(64),
        _ => random.below(4096),
    };
    let end = input.len().min(at + length);
    match random.below(12) {
        0 | 1 if !input.is_empty() => input[at] ^= 1 << random.below(8),
        2 if !input.is_empty() => input[at] = random.next() as u8,
        3 | 4 => put_number(input, at, random),
        5 => input.truncate(at),
        6 => drop(input.drain(at..end)),
        7 => {
            let block = input[at..end].to_vec();
            let to = place(input.len(), random);
            input.splice(to..to, block);
        }
        8 => {
            let from = place(input.len(), random);
            let block = input[from..input.len().min(from + length)].to_vec();
            let end = input.len().min(at + block.len());
            input.splice(at..end, block);
        }
        9 => {
            let block: Vec<_> = (0..length.min(64)).map(|_| random.next() as u8).collect();
            input.splice(at..at, block);
        }
        10 => {
            let from = place(other.len(), random);
            let block = other[from..other.len().min(from + length)].to_vec();
            input.splice(at..end, block);
        }
        // The beginning of one, the end of another.
        11 => {
            let from = place(other.len(), random);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => {}
    }
}

/// A number where one might stand, in either order of bytes, or as digits.
fn put_number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let mut number = NUMBERS[random.below(NUMBERS.len())];
    if random.one_in(3) {
        number = number.wrapping_add(random.below(5) as u64).wrapping_sub(2);
    }
    if random.one_in(6) {
        let digits = match random.below(3) {
            0 => format!("{number}"),
            1 => format!("-{number}"),
            _ => format!("{number:o}"),
        };
        // In place of digits, where there are some.
        let is_digit = |at: &usize| input.get(*at).is_some_and(u8::is_ascii_digit);
        let start = (at..input.len()).find(is_digit).unwrap_or(at);
        let end = (start..input.len()).find(|at| !is_digit(at)).unwrap_or(start);
        input.splice(start..end, digits.into_bytes());
        return;
    }
    let width = [1, 2, 4, 8][random.below(4)];
    let bytes = if random.one_in(2) { number.to_le_bytes() } else { number.to_be_bytes() };
    let bytes = if bytes == number.to_le_bytes() { &bytes[..width] } else { &bytes[8 - width..] };
    for (offset, byte) in bytes.iter().enumerate() {
        if let Some(place) = input.get_mut(at + offset) {
            *place = *byte;
        }
    }
}

#[test]
fn a_seed_gives_the_same_inputs_again() {
    let inputs = [("a".to_owned(), b"some text, 17".to_vec()), ("b".to_owned(), vec![7; 300])];
    let all = |seed| {
        let mut random = Random::new(seed);
        (0..1000).map(|_| changed(&inputs, &mut random, 400)).collect::<Vec<_>>()
    };
    assert_eq!(all(1), all(1));
    assert_ne!(all(1), all(2));
    assert!(all(3).iter().all(|input| input.len() <= 400));
}
