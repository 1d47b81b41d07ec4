//! `bailiwick coverage`: how well each sandbox would hold a manifest, side by side.

use bailiwick_command::COMPILER;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::render::{escape, json, style};
use bailiwick_compile::{Refusal, Target};
use bailiwick_policy::artifact::Provenance;
use bailiwick_policy::enforcement::{Aspect, Coverage as Held, Level, Precision};
use bailiwick_policy::plan::Plan;
use serde_json::{Map, Value, json};

use crate::args::compile::{Coverage, CoverageFormat};
use crate::planned::{self, Planned};

/// The width of a column of the table.
const WIDTH: usize = 11;

/// What the cells mean.
const LEGEND: [&str; 3] = [
    "kernel    the kernel alone refuses           ~  more can be done than is declared",
    "mediated  a gateway outside decides          -  not held",
    "advisory  only the process itself holds it",
];

pub(super) fn run(args: &Coverage) -> anyhow::Result<Answer> {
    let planned = match planned::plan(&args.manifest, args.tool.as_deref(), &args.host)? {
        Ok(planned) => planned,
        Err(unplanned) => return Ok(unplanned.refusal()),
    };
    let targets = Target::ALL.into_iter().map(|target| Row::for_target(target, &planned.plan));
    #[cfg(target_os = "linux")]
    let targets = std::iter::once(Row::native(&planned.plan)).chain(targets);
    let rows: Vec<Row> = targets.collect();
    let text = match args.format {
        CoverageFormat::Text => text(&planned, &rows),
        CoverageFormat::Json => json::document(&document(&planned, &rows)),
        CoverageFormat::Markdown => markdown(&rows),
    };
    Ok(Answer::result(Exit::Fine, text))
}

/// One sandbox.
struct Row {
    name: &'static str,
    coverage: Held,
    refusal: Option<Short>,
}

/// Why it is refused, and for which axes.
struct Short {
    axes: Vec<Aspect>,
    why: String,
}

impl Row {
    /// What `bailiwick run` starts, on a host that has all it uses.
    #[cfg(target_os = "linux")]
    fn native(plan: &Plan) -> Self {
        let coverage = bailiwick_confine::native_coverage(plan);
        let shortfalls = coverage.below(&plan.floor());
        let refusal = (!shortfalls.is_empty()).then(|| Short {
            axes: shortfalls.iter().map(|one| one.aspect).collect(),
            why: shortfalls.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        });
        Self { name: "native", coverage, refusal }
    }

    fn for_target(target: Target, plan: &Plan) -> Self {
        let provenance = Provenance { manifest: None, compiler: COMPILER.to_owned() };
        let refusal = bailiwick_compile::compile(target, plan, &plan.floor(), provenance).err();
        let refusal = refusal.map(|refusal| Short { axes: axes(&refusal), why: refusal.to_string() });
        Self { name: target.as_str(), coverage: bailiwick_compile::coverage(target, plan), refusal }
    }

    /// A line about the axes that it is refused for.
    fn short(&self) -> Option<String> {
        let axes: Vec<&str> = self.refusal.as_ref()?.axes.iter().map(|axis| axis.as_str()).collect();
        Some(format!("  {:WIDTH$}{}\n", self.name, axes.join(", ")))
    }
}

fn axes(refusal: &Refusal) -> Vec<Aspect> {
    match refusal {
        Refusal::BelowFloor { shortfalls, .. } => shortfalls.iter().map(|one| one.aspect).collect(),
        Refusal::Inexpressible { aspect, .. } => vec![*aspect],
        Refusal::Egress { .. } => vec![Aspect::Network],
    }
}

/// One cell, and the same with its colour.
fn cell(coverage: &Held, aspect: Aspect) -> (String, String) {
    let held = coverage.held(aspect);
    if held.level == Level::Unsupported {
        return ("-".to_owned(), style::faint("-"));
    }
    let mark = if held.precision == Precision::Superset { " ~" } else { "" };
    let plain = format!("{}{mark}", held.level);
    let painted = match held.level {
        Level::Kernel | Level::Mediated if mark.is_empty() => style::good(&plain),
        Level::Kernel | Level::Mediated | Level::Advisory | Level::Unsupported => style::warning(&plain),
    };
    (plain, painted)
}

fn text(planned: &Planned, rows: &[Row]) -> String {
    let subject = planned.plan.subject();
    let tool = subject.tool.as_ref().map_or_else(String::new, |tool| format!(", tool {tool}"));
    let mut text = escape::line(&format!("{}{tool}", subject.name)) + "\n\n";
    text += &format!("{:WIDTH$}", "");
    for aspect in Aspect::ALL {
        text += &format!("{:WIDTH$}", aspect.as_str());
    }
    text = format!("{}\n", text.trim_end());
    for row in rows {
        let mut line = style::strong(row.name) + &" ".repeat(WIDTH.saturating_sub(row.name.len()));
        for (index, aspect) in Aspect::ALL.into_iter().enumerate() {
            let (plain, painted) = cell(&row.coverage, aspect);
            let last = index + 1 == Aspect::ALL.len();
            line += &painted;
            line += &" ".repeat(if last { 0 } else { WIDTH.saturating_sub(plain.chars().count()) });
        }
        text += &format!("{line}\n");
    }
    text += &format!("\n  {}\n", LEGEND.join("\n  "));
    let refused: String = rows.iter().filter_map(Row::short).collect();
    if !refused.is_empty() {
        text += &format!("\nrefused, unless --require demands less:\n{refused}");
    }
    text
}

fn document(planned: &Planned, rows: &[Row]) -> Value {
    let subject = planned.plan.subject();
    let targets: Map<String, Value> = rows
        .iter()
        .map(|row| {
            let refused = row.refusal.as_ref().map(|short| &short.why);
            (row.name.to_owned(), json!({ "coverage": row.coverage.to_json(), "refused": refused }))
        })
        .collect();
    json!({
        "format": "bailiwick.coverage/1",
        "file": planned.source.name(),
        "manifest": planned.hash,
        "server": subject.name,
        "tool": subject.tool,
        "targets": targets,
    })
}

fn markdown(rows: &[Row]) -> String {
    let names: Vec<&str> = Aspect::ALL.map(Aspect::as_str).to_vec();
    let mut text = format!("| target | {} |\n|---{}|\n", names.join(" | "), "|---".repeat(names.len()));
    for row in rows {
        let cells: Vec<String> =
            Aspect::ALL.into_iter().map(|aspect| cell(&row.coverage, aspect).0).collect();
        text += &format!("| {} | {} |\n", row.name, cells.join(" | "));
    }
    text + "\n`~`: more can be done than is declared; `-`: not held.\n"
}
