//! What two answers of a program have in common although it ran twice.

/// A text without numbers, ids and hashes: what differs from run to run.
///
/// # Examples
/// ```
/// use bailiwick_learn::without_numbers;
///
/// assert_eq!(without_numbers("took 12 ms, id 9f86d081"), without_numbers("took 9 ms, id 2c26b46b"));
/// assert_ne!(without_numbers("one file"), without_numbers("no file"));
/// ```
#[must_use]
pub fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let is_id = word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        plain += if is_id || is_number { "#" } else { &word };
        word.clear();
        plain.push(c);
    }
    plain
}
