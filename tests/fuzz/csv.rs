//! `source.csv`.

use nodes::source::csv::Csv;

use crate::tables::{dress, table};
use crate::target::{Target, nothing_made};

pub const TARGET: Target = Target {
    name: "csv",
    n_cases: 4_000,
    max_memory: 12 << 20,
    seeds: &[],
    made: nothing_made,
    dress,
    prepare: || {
        let with = "{path: x, column: file, carry: [label, score], types: {label: int, score: float}, \
                    id_column: name, max_line_bytes: 4KiB}";
        table::<Csv>(with, "file,label,score,name\n")
    },
};
