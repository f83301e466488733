//! In: how much of something is done. Out: a bar for a terminal.

/// How far it is, to see at a glance; with a few words it fits 80 columns.
pub fn bar(done: u64, total: u64) -> String {
    const WIDTH: u64 = 30;
    let full = (done.min(total) * WIDTH).checked_div(total).unwrap_or(WIDTH) as usize;
    format!("[{}{}]", "#".repeat(full), "-".repeat(WIDTH as usize - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_whatever_is_done() {
        assert_eq!(bar(1, 3), "[##########--------------------]");
        assert_eq!(bar(9, 3), format!("[{}]", "#".repeat(30)));
        assert_eq!(bar(0, 0), format!("[{}]", "#".repeat(30)));
    }
}
