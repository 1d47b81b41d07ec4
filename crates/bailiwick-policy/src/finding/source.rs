//! A named text, and the line and column of a byte in it.

/// A text with the name people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    lines: Vec<usize>,
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Source {
    /// A text called `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let after_newlines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(after_newlines).collect();
        Self { name: name.into(), text, lines }
    }

    /// The name people know it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte is; past the end means the end.
    #[must_use]
    pub fn place(&self, offset: usize) -> LineColumn {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|start| *start <= offset);
        let line_start = line.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or(0);
        let column = self.text.get(line_start..offset).unwrap_or_default().chars().count() + 1;
        LineColumn { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let source = Source::new("x", "ab\nçé=1\n");
        assert_eq!(source.place(0), LineColumn { line: 1, column: 1 });
        assert_eq!(source.place(3), LineColumn { line: 2, column: 1 });
        assert_eq!(source.place(7), LineColumn { line: 2, column: 3 });
        assert_eq!(source.place(6), LineColumn { line: 2, column: 2 }, "inside a character");
        assert_eq!(source.place(99), LineColumn { line: 3, column: 1 });
    }
}
