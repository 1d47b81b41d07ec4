//! What programs print that only make text of text: `echo`, `printf`, `base64 -d`, `rev`, `tr`, `xxd -r`.

use super::MAX_KNOWN;
use super::word::{Field, digits, digits_text};

/// What a command prints; `None` if it is only known when it runs.
pub(super) fn printed(words: &[Field], input: Option<&str>) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    if arguments.iter().any(|field| field.dynamic || field.glob) {
        return None;
    }
    let arguments: Vec<&str> = arguments.iter().map(|field| field.text.as_str()).collect();
    let input = input.filter(|text| text.len() <= MAX_KNOWN);
    match program.text.as_str() {
        "echo" => Some(echoed(&arguments)),
        "printf" => {
            let (format, values) = arguments.split_first()?;
            formatted(format, values)
        }
        "cat" | "tee" if arguments.is_empty() || arguments == ["-"] => input.map(str::to_owned),
        "base64" | "openssl"
            if arguments.iter().any(|flag| matches!(*flag, "-d" | "-D" | "--decode" | "-di")) =>
        {
            decoded(input?)
        }
        "rev" if arguments.is_empty() => {
            Some(input?.lines().map(|line| line.chars().rev().collect::<String>() + "\n").collect())
        }
        "xxd" if arguments.concat().contains('r') => unhexed(input?),
        "tr" => match arguments[..] {
            ["-d", set] => Some(input?.chars().filter(|c| !expanded(set).contains(c)).collect()),
            [from, to] => Some(translated(input?, from, to)),
            _ => None,
        },
        "mktemp" => Some("/tmp/tmp.made\n".to_owned()),
        "which" | "command" | "type" => {
            let name = arguments.iter().find(|word| !word.starts_with('-'))?;
            Some(format!("{name}\n"))
        }
        "dirname" => Some(format!("{}\n", arguments.first()?.rsplit_once('/')?.0)),
        "basename" => match arguments[..] {
            [path] => Some(format!("{}\n", path.rsplit('/').next()?)),
            _ => None,
        },
        "nproc" => Some("2\n".to_owned()),
        "git" if arguments == ["rev-parse", "--show-toplevel"] => Some(".\n".to_owned()),
        _ => None,
    }
}

fn echoed(arguments: &[&str]) -> String {
    let flags = arguments.iter().take_while(|word| matches!(**word, "-n" | "-e" | "-E" | "-ne" | "-en"));
    let (count, escapes) = flags.fold((0, false), |(count, on), flag| (count + 1, on || flag.contains('e')));
    let text = arguments.get(count..).unwrap_or_default().join(" ");
    (if escapes { unescaped(&text) } else { text }) + "\n"
}

/// `printf`, with `%s`, `%b`, `%d`, `%%` and escapes; the format is used again while values are left.
fn formatted(format: &str, values: &[&str]) -> Option<String> {
    let (mut made, mut values) = (String::new(), values.iter());
    let format = unescaped(format);
    loop {
        let left = values.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                made.push(c);
                continue;
            }
            match chars.next()? {
                '%' => made.push('%'),
                's' | 'd' | 'i' => made += values.next().copied().unwrap_or_default(),
                'b' => made += &unescaped(values.next().copied().unwrap_or_default()),
                _ => return None,
            }
        }
        if values.len() == 0 || values.len() == left || made.len() > MAX_KNOWN {
            return Some(made);
        }
    }
}

/// Backslashes as `printf` and `echo -e` read them.
fn unescaped(text: &str) -> String {
    let mut made = String::new();
    let mut chars = text.chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            made.push(c);
            continue;
        }
        let code = match chars.next() {
            Some('x') => digits(&mut chars, 16, 2),
            Some('u') => digits(&mut chars, 16, 4),
            Some(first @ '0'..='7') => {
                let rest = digits_text(&mut chars, 8, if first == '0' { 3 } else { 2 });
                u32::from_str_radix(&format!("{first}{rest}"), 8).ok()
            }
            Some('n') => Some(10),
            Some('t') => Some(9),
            Some(other) => {
                if other != '\\' {
                    made.push('\\');
                }
                Some(u32::from(other))
            }
            None => None,
        };
        made.extend(code.and_then(char::from_u32));
    }
    made
}

/// Base64, without regard to line ends and padding.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0_u32);
    for c in text.bytes().filter(|c| !c.is_ascii_whitespace() && *c != b'=') {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or_default());
        }
    }
    String::from_utf8(bytes).ok()
}

fn unhexed(text: &str) -> Option<String> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high * 16 + low).ok(),
        _ => None,
    });
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}

fn translated(text: &str, from: &str, to: &str) -> String {
    let (from, to) = (expanded(from), expanded(to));
    let one = |c: char| match from.iter().position(|known| *known == c) {
        Some(at) => to.get(at).or(to.last()).copied().unwrap_or(c),
        None => c,
    };
    text.chars().map(one).collect()
}

/// The characters of a set such as `a-zA-Z`.
fn expanded(set: &str) -> Vec<char> {
    let set = unescaped(set);
    let (mut made, chars): (Vec<char>, Vec<char>) = (Vec::new(), set.chars().collect());
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(end)) if end >= c && made.len() < 512 => {
                made.extend((*c..=*end).take(256));
                at += 3;
            }
            _ => {
                made.push(*c);
                at += 1;
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prints(line: &str, input: Option<&str>) -> Option<String> {
        let words: Vec<Field> = line.split(' ').map(Field::known).collect();
        printed(&words, input)
    }

    #[test]
    fn texts_are_made_of_texts() {
        assert_eq!(prints("echo a b", None).as_deref(), Some("a b\n"));
        assert_eq!(prints("printf .%s env", None).as_deref(), Some(".env"));
        assert_eq!(prints("printf \\162\\x6d", None).as_deref(), Some("rm"));
        assert_eq!(prints("base64 -d", Some("LmVudg==\n")).as_deref(), Some(".env"));
        assert_eq!(prints("rev", Some("vne.\n")).as_deref(), Some(".env\n"));
        assert_eq!(prints("tr a-z n-za-m", Some("ez")).as_deref(), Some("rm"));
        assert_eq!(prints("xxd -r -p", Some("726d\n")).as_deref(), Some("rm"));
        assert_eq!(prints("base64 -d", Some("!")), None);
        assert_eq!(prints("curl x", None), None);
    }
}
