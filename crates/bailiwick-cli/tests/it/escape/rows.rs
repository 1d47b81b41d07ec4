//! The rows of `escapes.txt`.

/// One thing that is tried.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) heading: &'static str,
    pub(super) scene: &'static str,
    pub(super) attempt: &'static str,
    pub(super) expected: Expected,
    pub(super) outside: Outside,
    pub(super) tried: &'static str,
    pub(super) stopped_by: &'static str,
}

/// What must happen inside.
#[derive(Debug, Clone)]
pub(super) enum Expected {
    Refused,
    Shows(&'static str),
    ShowsOnly(&'static str),
    Hides(&'static str),
    ShowsNothing,
}

/// What happens without a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outside {
    Works,
    WorksForRoot,
    Untried,
}

impl Row {
    /// Whether the row shows that something granted works, rather than that something else does not.
    pub(super) fn is_control(&self) -> bool {
        self.tried.starts_with("(control)")
    }
}

/// All rows, in their order.
pub(super) fn rows() -> Vec<Row> {
    let mut heading = "";
    let mut rows = Vec::new();
    for line in include_str!("escapes.txt").lines() {
        if let Some(text) = line.strip_prefix("# ") {
            heading = text;
        } else if !line.is_empty() && !line.starts_with('#') {
            rows.push(row(line, heading));
        }
    }
    rows
}

fn row(line: &'static str, heading: &'static str) -> Row {
    let cells: Vec<&'static str> = line.split(" | ").map(str::trim).collect();
    let [id, scene, attempt, expected, outside, tried, stopped_by] = cells[..] else {
        panic!("seven cells: {line}");
    };
    Row {
        id,
        heading,
        scene,
        attempt,
        expected: self::expected(expected),
        outside: self::outside(outside),
        tried,
        stopped_by,
    }
}

/// What a cell says must happen.
pub(super) fn expected(text: &'static str) -> Expected {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "no" => Expected::Refused,
        "ok" => Expected::Shows(rest),
        "only" => Expected::ShowsOnly(rest),
        "not" => Expected::Hides(rest),
        "none" => Expected::ShowsNothing,
        _ => panic!("`{text}` is not an expectation"),
    }
}

fn outside(text: &str) -> Outside {
    match text {
        "ok" => Outside::Works,
        "root" => Outside::WorksForRoot,
        "-" => Outside::Untried,
        _ => panic!("`{text}` says nothing about outside"),
    }
}
