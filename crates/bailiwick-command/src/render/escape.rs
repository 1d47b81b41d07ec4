//! Text from files, made harmless: control characters, direction marks and invisible letters are spelt out.

/// Whether a character can move the cursor, change colours, reorder text or hide.
fn acts(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() || invisible
}

/// One line for a terminal or a log.
pub fn line(text: &str) -> String {
    let spelt = |c: char| match c {
        '\n' | '\r' | '\t' => c.escape_default().to_string(),
        _ if acts(c) => c.escape_unicode().to_string(),
        _ => c.to_string(),
    };
    text.chars().map(spelt).collect()
}

/// The same text with the same byte offsets, for snippets with carets.
pub fn in_place(text: &str) -> String {
    let stand_in = |c: char| match c.len_utf8() {
        1 => '?',
        2 => '¿',
        3 => char::REPLACEMENT_CHARACTER,
        _ => '\u{1fbc4}',
    };
    text.chars().map(|c| if acts(c) && !matches!(c, '\n' | '\t') { stand_in(c) } else { c }).collect()
}

/// JSON that says the same without a character that acts; line breaks of the layout stay.
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) && c != '\n' {
            let mut units = [0; 2];
            escaped.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Inline HTML in Markdown that shows exactly this text: no markup, no link, no mention of a person.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    for c in line(text).chars() {
        let plain = c.is_alphanumeric() || " /-,=+$%;".contains(c) || (c == '.' && !"wW".contains(before));
        if plain {
            escaped.push(c);
        } else {
            escaped += &format!("&#{};", u32::from(c));
        }
        before = c;
    }
    escaped
}

/// A relative path or name as the path of a URI.
pub fn uri(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_gets_through() {
        let nasty = "a\u{1b}[31mb\u{9b}c\u{202e}d\ne\u{e0041}\u{7f}";
        assert_eq!(line(nasty), "a\\u{1b}[31mb\\u{9b}c\\u{202e}d\\ne\\u{e0041}\\u{7f}");
        assert_eq!(in_place(nasty).len(), nasty.len());
        assert!(!in_place(nasty).chars().any(|c| acts(c) && c != '\n'));
        let quoted = serde_json::to_string(nasty).unwrap();
        let safe = json(&quoted);
        assert!(!safe.chars().any(acts));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), nasty);
    }

    #[test]
    fn markdown_has_no_markup_link_or_mention() {
        let text = markdown("`a|b` <b> @alice [x](https://e.test) www.e.test *c*");
        for mark in ["`", "|", "<", "@", "[", "://", "www.", "*"] {
            assert!(!text.contains(mark), "{mark} in {text}");
        }
        assert_eq!(markdown("read /srv/a.txt"), "read /srv/a.txt");
    }

    #[test]
    fn a_uri_has_no_spaces() {
        assert_eq!(uri("my files/ä.toml"), "my%20files/%C3%A4.toml");
    }
}
