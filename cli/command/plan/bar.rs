//! A GPU's memory as a bar: what is planned, what others use, what is free.

use crate::progress::Charset;

const CELLS: u64 = 10;

/// The three kinds of cells, each with its meaning.
pub(super) fn legend(charset: Charset) -> String {
    let [planned, used, free] = cells(charset);
    format!("{planned} planned  {used} used by others  {free} free")
}

/// What is planned and what others use takes a cell at least, so that it is seen; and what is free is never hidden by
/// rounding.
pub(super) fn bar(planned: u64, used: u64, total: u64, charset: Charset) -> String {
    let cells_of = |bytes: u64| match bytes {
        0 => 0,
        _ => {
            let share = u128::from(bytes) * u128::from(CELLS) * 2 / u128::from(total.max(1));
            u64::try_from(share.div_ceil(2)).unwrap_or(CELLS).clamp(1, CELLS)
        }
    };
    let is_full = planned.saturating_add(used) >= total;
    let most = if is_full { CELLS } else { CELLS - 1 };
    let n_planned = cells_of(planned).min(most);
    let n_used = cells_of(used).min(most - n_planned);
    let [planned, used, free] = cells(charset);
    let repeated = |cell: char, n: u64| cell.to_string().repeat(usize::try_from(n).unwrap_or(0));
    let inside = repeated(planned, n_planned) + &repeated(used, n_used) + &repeated(free, CELLS - n_planned - n_used);
    match charset {
        Charset::Unicode => format!("▕{inside}▏"),
        Charset::Ascii => format!("[{inside}]"),
    }
}

fn cells(charset: Charset) -> [char; 3] {
    match charset {
        Charset::Unicode => ['█', '▒', '░'],
        Charset::Ascii => ['#', 'x', '.'],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(planned: u64, used: u64, total: u64, expected: &str) {
        assert_eq!(bar(planned, used, total, Charset::Ascii), format!("[{expected}]"));
    }

    #[test]
    fn a_bar_has_a_cell_for_all_there_is() {
        check(0, 0, 100, "..........");
        check(30, 20, 100, "###xx.....");
        check(1, 1, 1000, "#x........");
        check(100, 0, 100, "##########");
        check(60, 40, 100, "######xxxx");
        check(95, 0, 100, "#########.");
        check(90, 9, 100, "#########.");
        check(u64::MAX, u64::MAX, u64::MAX, "##########");
        check(0, 0, 0, "..........");
    }

    #[test]
    fn unicode_bars_are_solid() {
        assert_eq!(bar(30, 20, 100, Charset::Unicode), "▕███▒▒░░░░░▏");
        assert_eq!(legend(Charset::Ascii), "# planned  x used by others  . free");
    }
}
