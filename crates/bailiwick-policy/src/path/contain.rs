//! Exact containment of path patterns: a search for a path that is in some patterns and in none of others.
//!
//! Every pattern is a small automaton over the characters of a path key. The search runs all of them in step,
//! breadth first, over representatives of the character classes that the patterns tell apart, and remembers
//! the joint states it has seen. It finds a shortest witness, exhausts the states, or runs out of budget.
//! Names that no file can have (empty, `.`, `..`) are outside the universe.
//!
//! Fails closed when the budget is spent: the answer is `Undecided`, which no caller reads as contained.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::glob::Token;
use super::set::GlobPattern;
use super::{AbsPath, Part};
use crate::lattice::Containment;

/// What one question may cost, in automaton positions visited. Fixed, so that answers never depend on the host.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) const fn new() -> Self {
        Self(2_000_000)
    }

    /// Whether that much was left; a budget that was once overdrawn stays spent.
    const fn spend(&mut self, positions: usize) -> bool {
        match self.0.checked_sub(positions) {
            Some(left) => self.0 = left,
            None => self.0 = 0,
        }
        self.0 > 0
    }
}

/// Is there a path in `driver`, in every clause of `within`, and in none of `outside`?
pub(super) struct Query {
    pub(super) driver: GlobPattern,
    pub(super) within: Vec<Vec<GlobPattern>>,
    pub(super) outside: Vec<GlobPattern>,
}

impl Query {
    /// `Contained` if there is no such path, `Exceeds` with one if there is.
    pub(super) fn solve(self, budget: &mut Budget) -> Containment<AbsPath> {
        Search::new(&self).run(&self.driver.prefix, budget)
    }
}

/// One position of an automaton.
enum Op<'a> {
    /// A component starts here.
    Separator,
    /// A character of a literal name.
    Char(char),
    /// A token of a glob.
    Token(&'a Token),
    /// `**` between components; the next position is inside one of its components.
    DeepEdge,
    /// Inside a component that `**` takes.
    DeepInside { last: bool },
    /// The pattern is used up.
    Accept,
}

/// The automata of all patterns, laid end to end; `clause` says whose a position is.
struct Search<'a> {
    ops: Vec<(Op<'a>, usize)>,
    starts: Vec<u32>,
    clauses: usize,
    letters: Vec<char>,
}

/// Clause 0 is the driver, then those of `within`; the one past the last is `outside`.
type State = (Shape, Vec<u32>);

/// What the component so far is, so that impossible names are never proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Root,
    Started,
    Dot,
    DotDot,
    Name,
}

impl Shape {
    const fn complete(self) -> bool {
        matches!(self, Self::Root | Self::Name)
    }

    const fn after(self, c: char) -> Option<Self> {
        match (self, c) {
            (Self::Root | Self::Name, '\0') => Some(Self::Started),
            (Self::Started | Self::Dot | Self::DotDot, '\0') => None,
            (Self::Root, _) => None,
            (Self::Started, '.') => Some(Self::Dot),
            (Self::Dot, '.') => Some(Self::DotDot),
            (Self::Started | Self::Dot | Self::DotDot | Self::Name, _) => Some(Self::Name),
        }
    }
}

impl<'a> Search<'a> {
    fn new(query: &'a Query) -> Self {
        let mut search =
            Search { ops: Vec::new(), starts: Vec::new(), clauses: query.within.len() + 1, letters: vec![] };
        let mut edges: BTreeSet<u32> = [1, 0x2e, 0x2f, 0x30, 0xd800, 0xe000, 0x11_0000].into();
        search.add(&query.driver, 0, &mut edges);
        for (index, clause) in query.within.iter().enumerate() {
            clause.iter().for_each(|pattern| search.add(pattern, index + 1, &mut edges));
        }
        let outside = search.clauses;
        query.outside.iter().for_each(|pattern| search.add(pattern, outside, &mut edges));
        search.letters = representatives(&edges);
        search
    }

    fn add(&mut self, pattern: &'a GlobPattern, clause: usize, edges: &mut BTreeSet<u32>) {
        self.starts.push(position(self.ops.len()));
        for c in pattern.prefix.chars() {
            self.push(if c == '\0' { Op::Separator } else { Op::Char(c) }, clause, edges);
        }
        for (index, part) in pattern.rest.iter().enumerate() {
            match part {
                Part::Literal(name) => {
                    self.push(Op::Separator, clause, edges);
                    name.chars().for_each(|c| self.push(Op::Char(c), clause, edges));
                }
                Part::Glob(glob) => {
                    self.push(Op::Separator, clause, edges);
                    glob.tokens().iter().for_each(|token| self.push(Op::Token(token), clause, edges));
                }
                Part::Deep => {
                    self.push(Op::DeepEdge, clause, edges);
                    self.push(Op::DeepInside { last: index + 1 == pattern.rest.len() }, clause, edges);
                }
            }
        }
        self.push(Op::Accept, clause, edges);
    }

    fn push(&mut self, op: Op<'a>, clause: usize, edges: &mut BTreeSet<u32>) {
        match &op {
            Op::Char(c) | Op::Token(Token::Char(c)) => edges.extend([u32::from(*c), u32::from(*c) + 1]),
            Op::Token(Token::Class(class)) => {
                let ranges = class.ranges().iter();
                edges.extend(ranges.flat_map(|(low, high)| [u32::from(*low), u32::from(*high) + 1]));
            }
            Op::Token(Token::One | Token::Many)
            | Op::Separator
            | Op::DeepEdge
            | Op::DeepInside { .. }
            | Op::Accept => {}
        }
        self.ops.push((op, clause));
    }

    fn run(&self, prefix: &str, budget: &mut Budget) -> Containment<AbsPath> {
        let Some(first) = self.advance_through(prefix, budget) else {
            return if budget.0 == 0 { Containment::Undecided } else { Containment::Contained };
        };
        let mut seen: HashMap<State, usize> = HashMap::from([(first.clone(), 0)]);
        let mut trail: Vec<(usize, char)> = vec![(0, '\0')];
        let mut queue: VecDeque<(State, usize)> = VecDeque::from([(first, 0)]);
        while let Some((state, index)) = queue.pop_front() {
            if self.is_witness(&state) {
                return Containment::Exceeds(witness(prefix, &trail, index));
            }
            for letter in self.letters_from(&state) {
                let Some(next) = self.step(&state, letter) else { continue };
                if !budget.spend(next.1.len() + 1) {
                    return Containment::Undecided;
                }
                if self.is_alive(&next) && !seen.contains_key(&next) {
                    seen.insert(next.clone(), trail.len());
                    queue.push_back((next, trail.len()));
                    trail.push((index, letter));
                }
            }
        }
        Containment::Contained
    }

    /// The joint state after the driver's literal prefix; `None` if nothing can match there.
    fn advance_through(&self, prefix: &str, budget: &mut Budget) -> Option<State> {
        let mut state = (Shape::Root, self.closure(self.starts.clone()));
        for c in prefix.chars() {
            if !budget.spend(state.1.len()) {
                return None;
            }
            state = self.step(&state, c)?;
        }
        self.is_alive(&state).then_some(state)
    }

    fn step(&self, (shape, positions): &State, c: char) -> Option<State> {
        let shape = shape.after(c)?;
        let next = positions.iter().filter_map(|at| match &self.op(*at)?.0 {
            Op::Separator | Op::DeepEdge => (c == '\0').then_some(at + 1),
            Op::Char(own) => (*own == c).then_some(at + 1),
            Op::Token(Token::Many) | Op::DeepInside { .. } => (c != '\0').then_some(*at),
            Op::Token(token) => (c != '\0' && token.takes(c)).then_some(at + 1),
            Op::Accept => None,
        });
        Some((shape, self.closure(next.collect())))
    }

    /// Adds what is reached without a character, then sorts.
    fn closure(&self, mut positions: Vec<u32>) -> Vec<u32> {
        let mut index = 0;
        while let Some(at) = positions.get(index).copied() {
            match self.op(at) {
                Some((Op::Token(Token::Many), _)) => positions.push(at + 1),
                Some((Op::DeepEdge, _)) => positions.push(at + 2),
                // A component of `**` may end here: its edge is live again.
                Some((Op::DeepInside { .. }, _)) => positions.push(at - 1),
                Some((Op::Separator | Op::Char(_) | Op::Token(_) | Op::Accept, _)) | None => {}
            }
            index += 1;
        }
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    fn op(&self, at: u32) -> Option<&(Op<'a>, usize)> {
        self.ops.get(at as usize)
    }

    /// Every clause still has a chance, and `outside` does not cover all that follows.
    fn is_alive(&self, (_, positions): &State) -> bool {
        let mut live = vec![false; self.clauses + 1];
        for (op, clause) in positions.iter().filter_map(|at| self.op(*at)) {
            if *clause == self.clauses && matches!(op, Op::DeepInside { last: true }) {
                return false;
            }
            if let Some(mark) = live.get_mut(*clause) {
                *mark = true;
            }
        }
        live.iter().take(self.clauses).all(|mark| *mark)
    }

    fn is_witness(&self, (shape, positions): &State) -> bool {
        let mut accepts = vec![false; self.clauses + 1];
        for (op, clause) in positions.iter().filter_map(|at| self.op(*at)) {
            if matches!(op, Op::Accept)
                && let Some(mark) = accepts.get_mut(*clause)
            {
                *mark = true;
            }
        }
        let outside = accepts.pop().unwrap_or(true);
        shape.complete() && !outside && accepts.iter().all(|mark| *mark)
    }

    /// The letters that the driver can take next.
    fn letters_from(&self, (_, positions): &State) -> Vec<char> {
        let mut letters = Vec::new();
        for (op, clause) in positions.iter().filter_map(|at| self.op(*at)) {
            match op {
                _ if *clause != 0 => {}
                Op::Token(Token::Char(c)) | Op::Char(c) => letters.push(*c),
                Op::Token(_) | Op::DeepInside { .. } => letters.extend_from_slice(&self.letters),
                Op::Separator | Op::DeepEdge => letters.push('\0'),
                Op::Accept => {}
            }
        }
        letters.sort_unstable();
        letters.dedup();
        letters
    }
}

fn witness(prefix: &str, trail: &[(usize, char)], mut index: usize) -> AbsPath {
    let mut letters = Vec::new();
    while index != 0 {
        let Some((parent, letter)) = trail.get(index) else { break };
        letters.push(*letter);
        index = *parent;
    }
    let mut key = String::from(prefix);
    key.extend(letters.iter().rev());
    AbsPath::from_key(key)
}

/// One readable character for every interval between edges that a file name can have.
fn representatives(edges: &BTreeSet<u32>) -> Vec<char> {
    let starts = edges.iter();
    let ends = edges.iter().skip(1);
    starts
        .zip(ends)
        .filter(|(start, _)| **start != 0x2f && **start != 0)
        .filter_map(|(s, e)| readable(*s, *e))
        .collect()
}

fn readable(start: u32, end: u32) -> Option<char> {
    let nice = ['a'..='z', '0'..='9', 'A'..='Z', '!'..='.', ':'..='~'];
    let shown = nice.into_iter().find_map(|range| {
        let low = u32::from(*range.start()).max(start);
        (low < end && low <= u32::from(*range.end())).then_some(low)
    });
    char::from_u32(shown.unwrap_or(start))
}

fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
