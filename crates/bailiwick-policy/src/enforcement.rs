//! How well a property is held, and by whom: predicted for a target, achieved by a sandbox, demanded by a floor.
//!
//! Claiming more than is held is the worst bug this project can have: whoever makes a [`Coverage`] must name
//! every aspect, and what is not known to be held is `unsupported`.

pub mod judge;
pub mod mechanism;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::capability::nearest;

/// One side of a tool's reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aspect {
    /// Which files can be read, changed, created, deleted.
    Files,
    /// Whom the network can reach.
    Network,
    /// Which programs can be started.
    Exec,
    /// Which environment variables are visible.
    Environment,
    /// Which local services can be talked to.
    Ipc,
    /// Which other processes can be seen, signalled or traced.
    Processes,
    /// The clock and the time zones.
    Clock,
    /// Time, memory, processes, processor, file size.
    Limits,
}

impl Aspect {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 8] = [
        Self::Files,
        Self::Network,
        Self::Exec,
        Self::Environment,
        Self::Ipc,
        Self::Processes,
        Self::Clock,
        Self::Limits,
    ];

    /// The short name, as `--require` takes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "fs",
            Self::Network => "net",
            Self::Exec => "exec",
            Self::Environment => "env",
            Self::Ipc => "ipc",
            Self::Processes => "process",
            Self::Clock => "clock",
            Self::Limits => "limits",
        }
    }
}

impl fmt::Display for Aspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who holds it. Ordered: more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nobody.
    Unsupported,
    /// The tool's own process, if it is honest.
    Advisory,
    /// The kernel closes every other way, and a supervisor outside decides.
    Mediated,
    /// The kernel alone refuses.
    Kernel,
}

impl Level {
    /// All of them, weakest first.
    pub const ALL: [Self; 4] = [Self::Unsupported, Self::Advisory, Self::Mediated, Self::Kernel];

    /// The lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Advisory => "advisory",
            Self::Mediated => "mediated",
            Self::Kernel => "kernel",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether what is held is what was declared. Ordered: more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// More can be done than was declared.
    Superset,
    /// Nothing beyond what was declared.
    Exact,
}

impl Precision {
    /// The lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Superset => "superset",
            Self::Exact => "exact",
        }
    }
}

/// How one aspect is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// By whom.
    pub level: Level,
    /// How closely.
    pub precision: Precision,
    /// By which mechanism, or what is missing: one line for people.
    pub why: String,
}

impl Held {
    /// Held by the kernel, exactly.
    #[must_use]
    pub fn kernel(why: impl Into<String>) -> Self {
        Self { level: Level::Kernel, precision: Precision::Exact, why: why.into() }
    }

    /// Held by a supervisor outside, exactly.
    #[must_use]
    pub fn mediated(why: impl Into<String>) -> Self {
        Self { level: Level::Mediated, precision: Precision::Exact, why: why.into() }
    }

    /// Held only by the tool's own process.
    #[must_use]
    pub fn advisory(why: impl Into<String>) -> Self {
        Self { level: Level::Advisory, precision: Precision::Superset, why: why.into() }
    }

    /// Not held.
    #[must_use]
    pub fn unsupported(why: impl Into<String>) -> Self {
        Self { level: Level::Unsupported, precision: Precision::Superset, why: why.into() }
    }

    /// The same, but more than was declared can be done.
    #[must_use]
    pub fn superset(self, why: impl fmt::Display) -> Self {
        Self { precision: Precision::Superset, why: format!("{}; {why}", self.why), ..self }
    }
}

/// How every aspect is held.
///
/// # Examples
/// ```
/// use bailiwick_policy::enforcement::{Aspect, Coverage, Floor, Held, Level, Requirement};
///
/// let coverage = Coverage::from_fn(|aspect| match aspect {
///     Aspect::Network => Held::unsupported("it opens no namespace"),
///     _ => Held::kernel("mounts"),
/// });
/// assert_eq!(coverage.held(Aspect::Network).level, Level::Unsupported);
/// let floor = Floor::none().with(Requirement::level(Aspect::Network, Level::Kernel));
/// assert_eq!(coverage.below(&floor).len(), 1, "below the floor nothing starts");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage(BTreeMap<Aspect, Held>);

impl Coverage {
    /// Asks about each aspect in turn.
    #[must_use]
    pub fn from_fn(held: impl FnMut(Aspect) -> Held) -> Self {
        let mut held = held;
        Self(Aspect::ALL.into_iter().map(|aspect| (aspect, held(aspect))).collect())
    }

    /// How one aspect is held.
    #[must_use]
    pub fn held(&self, aspect: Aspect) -> &Held {
        static UNKNOWN: Held =
            Held { level: Level::Unsupported, precision: Precision::Superset, why: String::new() };
        self.0.get(&aspect).unwrap_or(&UNKNOWN)
    }

    /// All aspects in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Aspect, &Held)> {
        self.0.iter().map(|(aspect, held)| (*aspect, held))
    }

    /// What a floor demands and this does not reach.
    #[must_use]
    pub fn below(&self, floor: &Floor) -> Vec<Shortfall> {
        let demands = floor.0.iter().map(|(aspect, demand)| (*aspect, *demand));
        let missed = demands.filter(|(aspect, demand)| !demand.is_met_by(self.held(*aspect)));
        missed.map(|(aspect, demand)| Shortfall { aspect, demand, held: self.held(aspect).clone() }).collect()
    }

    /// For machines: an object by aspect.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let entry = |(aspect, held): (&Aspect, &Held)| {
            let value = json!({
                "level": held.level.as_str(), "precision": held.precision.as_str(), "why": held.why,
            });
            (aspect.as_str().to_owned(), value)
        };
        Value::Object(self.0.iter().map(entry).collect::<Map<_, _>>())
    }
}

/// What one aspect must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// At least this level.
    pub level: Level,
    /// At least this precision.
    pub precision: Precision,
}

impl Demand {
    /// Whether it is reached.
    #[must_use]
    pub fn is_met_by(self, held: &Held) -> bool {
        held.level >= self.level && held.precision >= self.precision
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.as_str())?;
        if self.precision == Precision::Exact { f.write_str(":exact") } else { Ok(()) }
    }
}

/// What must be held at least, by aspect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Floor(BTreeMap<Aspect, Demand>);

impl Floor {
    /// Nothing is demanded: for looking at what a target would hold.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The same floor with one demand set. What a person writes replaces what was there, also by less.
    #[must_use]
    pub fn with(mut self, Requirement { aspect, demand }: Requirement) -> Self {
        self.0.insert(aspect, demand);
        self
    }

    /// What is demanded of one aspect.
    #[must_use]
    pub fn demand(&self, aspect: Aspect) -> Option<Demand> {
        self.0.get(&aspect).copied()
    }
}

/// One demand as a person writes it: `fs=kernel`, `net=mediated`, `fs=kernel:exact`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    /// Of which aspect.
    pub aspect: Aspect,
    /// How much.
    pub demand: Demand,
}

impl Requirement {
    /// At least this level, whatever the precision.
    #[must_use]
    pub const fn level(aspect: Aspect, level: Level) -> Self {
        Self { aspect, demand: Demand { level, precision: Precision::Superset } }
    }
}

/// A demand that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RequirementError(String);

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        let fault = |what: String| RequirementError(format!("`{text}`: {what}, as in `fs=kernel`"));
        let (aspect, demand) =
            text.split_once('=').ok_or_else(|| fault("write an axis, `=` and a level".to_owned()))?;
        let (level, exact) = match demand.split_once(':') {
            None => (demand, Precision::Superset),
            Some((level, "exact")) => (level, Precision::Exact),
            Some((_, other)) => return Err(fault(format!("`{other}` is not `exact`"))),
        };
        let aspect = named(aspect, &Aspect::ALL, Aspect::as_str).map_err(|e| fault(format!("axis {e}")))?;
        let level = named(level, &Level::ALL, Level::as_str).map_err(|e| fault(format!("level {e}")))?;
        Ok(Self { aspect, demand: Demand { level, precision: exact } })
    }
}

/// A name that nothing has.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not known ({hint})")]
struct UnknownName {
    text: String,
    /// What was meant, or what names there are.
    hint: String,
}

/// The value of that name, or what names there are.
fn named<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, UnknownName> {
    if let Some(found) = all.iter().find(|value| name(**value) == text) {
        return Ok(*found);
    }
    let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
    let meant = nearest(text, names.iter().copied());
    let hint = meant
        .map_or_else(|| format!("one of {}", names.join(", ")), |meant| format!("did you mean `{meant}`?"));
    Err(UnknownName { text: text.to_owned(), hint })
}

/// A demand that is not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    /// Of which aspect.
    pub aspect: Aspect,
    /// What was demanded.
    pub demand: Demand,
    /// What is held.
    pub held: Held,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { level, precision, why } = &self.held;
        let (aspect, precision) = (self.aspect, precision.as_str());
        write!(f, "`{aspect}` must be `{}` and is `{level}` ({precision}): {why}", self.demand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_compared_aspect_by_aspect() {
        let coverage = Coverage::from_fn(|aspect| match aspect {
            Aspect::Files => Held::kernel("mounts").superset("a glob became its directory"),
            Aspect::Network => Held::mediated("egress"),
            Aspect::Exec
            | Aspect::Environment
            | Aspect::Ipc
            | Aspect::Processes
            | Aspect::Clock
            | Aspect::Limits => Held::unsupported("nothing"),
        });
        let floor = |text: &[&str]| text.iter().fold(Floor::none(), |f, t| f.with(t.parse().unwrap()));
        assert!(coverage.below(&floor(&["fs=kernel", "net=mediated"])).is_empty());
        let missed = coverage.below(&floor(&["fs=kernel:exact", "net=kernel", "exec=advisory"]));
        let aspects: Vec<_> = missed.iter().map(|one| one.aspect.as_str()).collect();
        assert_eq!(aspects, ["fs", "net", "exec"]);
        assert_eq!(
            missed[0].to_string(),
            "`fs` must be `kernel:exact` and is `kernel` (superset): mounts; a glob became its directory"
        );
    }

    #[test]
    fn a_requirement_says_what_is_wrong_with_it() {
        let message = |text: &str| text.parse::<Requirement>().unwrap_err().to_string();
        assert!(message("fs").contains("write an axis"), "{}", message("fs"));
        assert!(message("sf=kernel").contains("did you mean `fs`"), "{}", message("sf=kernel"));
        assert!(message("fs=kernle").contains("did you mean `kernel`"), "{}", message("fs=kernle"));
        assert!(message("fs=kernel:exactly").contains("is not `exact`"));
    }
}
