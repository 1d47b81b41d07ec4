//! Patterns of names as shells write them: `*`, `?`, `[…]`.

/// What a pattern has that does not stand for itself.
const SPECIAL: [char; 3] = ['*', '?', '['];

/// Whether a pattern stands for a text. Linear in the pattern for every character of the text.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    // Most patterns differ in what stands before their first special character, or have none.
    let Some((start, rest)) = pattern.find(SPECIAL).and_then(|at| pattern.split_at_checked(at)) else {
        return pattern == text;
    };
    text.strip_prefix(start).is_some_and(|text| matches_from(rest, text))
}

fn matches_from(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` stood, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(read) {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, read));
            at += 1;
        } else if let Some(width) = one(pattern.get(at..).unwrap_or_default(), *c) {
            at += width;
            read += 1;
        } else {
            let Some((after, taken)) = star else { return false };
            star = Some((after, taken + 1));
            at = after;
            read = taken + 1;
        }
    }
    pattern.iter().skip(at).all(|c| *c == '*')
}

/// Whether a text is a pattern at all.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    text.contains(SPECIAL)
}

/// How much of the pattern takes this character, if it does.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => match pattern.iter().skip(2).position(|end| *end == ']') {
            Some(end) => {
                let set = pattern.get(1..end + 2).unwrap_or_default();
                in_set(set, c).then_some(end + 3)
            }
            None => (c == '[').then_some(1),
        },
        same => (*same == c).then_some(1),
    }
}

fn in_set(set: &[char], c: char) -> bool {
    let (negated, set) = match set.split_first() {
        Some(('!' | '^', rest)) => (true, rest),
        Some(_) | None => (false, set),
    };
    let ranged = set.windows(3).any(|part| matches!(part, [from, '-', to] if (*from..=*to).contains(&c)));
    (ranged || set.contains(&c)) != negated
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_stand_for_what_shells_make_of_them() {
        for (pattern, text, fits) in [
            (".env", ".env", true),
            (".en?", ".env", true),
            (".e*", ".env", true),
            ("*v", ".env", true),
            (".[a-f]nv", ".env", true),
            (".[!e]nv", ".env", false),
            ("id_*", "id_rsa", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("", "", true),
            ("*", "", true),
            ("[", "[", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
        assert!(!matches(&"a*".repeat(2_000), &"b".repeat(2_000)));
    }
}
