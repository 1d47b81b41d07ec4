//! Every guardrails file that holds for a session: its own directory's and those above it.
//!
//! A repository that is made inside a project does not shed the project's rules. The files are looked for from the
//! directory in which the session began up to the home, or up to `/` outside of it. All that are found apply, each
//! with its own names, past, trust and scripts; the strictest verdict counts.

use std::path::{Path, PathBuf};

use super::file::Policy;
use super::trust::Trust;

/// One directory's guardrails.
#[derive(Debug)]
pub struct Level {
    /// The directory; scripts run in it.
    pub dir: PathBuf,
    /// Its file.
    pub policy: Policy,
}

impl Level {
    /// The guardrails that hold for a session that began in `workdir`: at least that directory's own, which may be
    /// absent, then those above it. `known` is the digest of rules of that directory that were found good before.
    #[must_use]
    pub fn all(workdir: &Path, home: Option<&Path>, trust: &Trust, known: Option<&str>) -> Vec<Self> {
        let mut levels = Vec::new();
        for dir in workdir.ancestors() {
            let policy = Policy::load_known(dir, trust, known.filter(|_| dir == workdir));
            if dir == workdir || !matches!(policy, Policy::Absent) {
                levels.push(Self { dir: dir.to_path_buf(), policy });
            }
            if Some(dir) == home {
                break;
            }
        }
        levels
    }
}
