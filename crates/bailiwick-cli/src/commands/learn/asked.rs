//! Hosts that a program asked for and was refused: a person says which of them it may reach.

use std::collections::BTreeSet;

use bailiwick_command::args::learn::Watched;
use bailiwick_command::render::escape;
use bailiwick_command::terminal;
use bailiwick_learn::Evidence;

/// Words of `--net` that are no hosts.
const ASK: &str = "ask";
const DENY: &str = "deny";
/// The most questions.
const MOST: usize = 20;

/// The hosts of a command line.
pub(super) fn hosts(args: &Watched) -> Vec<String> {
    args.reached.iter().filter(|word| ![ASK, DENY].contains(&word.as_str())).cloned().collect()
}

/// Who decides about hosts that no option names.
pub(super) struct HostQuestions {
    asks: bool,
    /// What was asked already.
    asked: BTreeSet<String>,
}

impl HostQuestions {
    /// # Errors
    /// If both words are given.
    pub(super) fn new(args: &Watched) -> anyhow::Result<Self> {
        let has = |word: &str| args.reached.iter().any(|own| own == word);
        anyhow::ensure!(!(has(ASK) && has(DENY)), "`--net ask` and `--net deny` contradict each other");
        Ok(Self { asks: !has(DENY), asked: BTreeSet::new() })
    }

    /// The hosts that a person lets it reach, each asked about once; none without a terminal.
    pub(super) fn allowed(&mut self, evidence: &Evidence) -> anyhow::Result<Vec<String>> {
        let mut allowed = Vec::new();
        if !self.asks {
            return Ok(allowed);
        }
        for (host, port) in evidence.refused_hosts() {
            // A name without a port was only looked up: `https` is what most names are for.
            let place = format!("{host}:{}", port.unwrap_or(443));
            let is_host = host.chars().all(|c| c.is_ascii_alphanumeric() || "._-:[]".contains(c));
            if !is_host || self.asked.len() >= MOST || !self.asked.insert(place.clone()) {
                continue;
            }
            match terminal::confirm(&format!("it wants to reach {}; let it?", escape::line(&place)))? {
                Some(true) => allowed.push(place),
                Some(false) => {}
                None => {
                    self.asks = false;
                    break;
                }
            }
        }
        Ok(allowed)
    }
}
