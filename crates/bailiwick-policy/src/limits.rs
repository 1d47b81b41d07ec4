//! Resource limits of a process, as values. Where they are written they are read elsewhere.

/// What a server may use; absent means the sandbox's own default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time of one call, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Memory, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Processor time, in thousandths of a processor.
    pub cpu_milli: Option<u64>,
    /// The largest file that may be written, in bytes.
    pub file_size: Option<u64>,
}

/// One kind of limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Wall-clock time of one call.
    Timeout,
    /// Memory.
    Memory,
    /// Processes and threads.
    Pids,
    /// Processor time.
    Cpu,
    /// The largest file.
    FileSize,
}

impl Limit {
    /// The name that a manifest has for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::FileSize => "file_size",
        }
    }
}

impl Limits {
    /// The limits that are declared.
    pub fn declared(&self) -> impl Iterator<Item = Limit> {
        let all = [
            (Limit::Timeout, self.timeout_ms),
            (Limit::Memory, self.memory),
            (Limit::Pids, self.pids),
            (Limit::Cpu, self.cpu_milli),
            (Limit::FileSize, self.file_size),
        ];
        all.into_iter().filter(|(_, value)| value.is_some()).map(|(limit, _)| limit)
    }
}
