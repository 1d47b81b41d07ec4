//! A plan checked against this host, with everything opened and allocated that starting it needs.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use bailiwick_policy::enforcement::Coverage;
use bailiwick_policy::manifest::Limits;
use bailiwick_policy::plan::{BASE, Network, Plan};
use rustix::io::Errno;

use crate::cgroup::Places;
use crate::command::{Command, Options, Stdio};
use crate::confined::{self, Confined, Confining};
use crate::coverage::{self, Means};
use crate::fault::{Fault, Step};
use crate::ipc;
use crate::landlock::{self, Access, Rule, Ruleset};
use crate::limits::{Applied, Situation};
use crate::native::base::{self, System};
use crate::native::guarded::{Guarded, Unasked};
use crate::native::image::{Asked, Identity, Image, Maps};
use crate::native::layout::{Host, Kind, Layout, Node, lies_in, relative, text};
use crate::native::programs::Programs;
use crate::native::{environment, grants, protected};
use crate::refusal::Refusal;
use crate::seccomp::{self, Asking, Needs, UnixSockets};
use crate::status::{Status, counted};
use crate::stdio::{self, Relays};
use crate::sys::clone::{Program as Executable, Stack, Strings};
use crate::sys::{mount, netns};

/// How much may be written to the sandbox's own memory, in bytes, if the plan has no limit.
const SCRATCH: u64 = 1 << 30;

/// Where programs open most of what they open.
const OFTEN_READ: [&str; 2] = ["/usr/lib", "/usr/share"];

/// What may be done to devices.
const DEVICES: Access = landlock::TERMINAL | landlock::READ_DIR;

/// A sandbox, ready to start.
pub struct Prepared {
    image: Image,
    control: OwnedFd,
    status: Status,
    limits: Applied,
    sockets: Vec<PathBuf>,
    asks: Option<OwnedFd>,
    relays: Relays,
}

impl Prepared {
    /// Checks a plan and a command against this host.
    ///
    /// # Errors
    /// What is missing, and what to write to change that. Nothing was started.
    pub fn new(plan: &Plan, command: Command, options: Options) -> Result<Self, Refusal> {
        Self::with(System::look(plan), plan, command, options)
    }

    /// The same on a host whose system was looked at before.
    ///
    /// # Errors
    /// What is missing, and what to write to change that. Nothing was started.
    pub fn on(system: &System, plan: &Plan, command: Command, options: Options) -> Result<Self, Refusal> {
        Self::with(system.clone(), plan, command, options)
    }

    fn with(system: System, plan: &Plan, command: Command, options: Options) -> Result<Self, Refusal> {
        mount::look();
        let mut built = Built::of(system.into_layout(plan), plan, &command, &options)?;
        let rules = built.rules()?;
        for gap in rules.iter().flat_map(|rules| rules.level().missing()) {
            built.notes.push(format!("this kernel's Landlock is old: {gap}"));
        }
        let needs = needs(plan);
        let filter = seccomp::program(needs);
        let (sockets, absent) = ipc::names(plan.ipc(), &options.services);
        built.notes.extend(absent.iter().map(|endpoint| format!("`ipc:{endpoint}` is not on this host")));
        let means = Means {
            landlock: rules.as_ref().map_or(0, Ruleset::abi),
            filter: !filter.is_empty(),
            files_need_rules: built.needs_rules,
            protected: built.guarded.is_complete(),
        };
        let limits = limits(plan);
        let coverage = coverage::of(plan, means, limits.held());
        let shortfalls = coverage.below(&options.floor.unwrap_or_else(|| plan.floor()));
        if !shortfalls.is_empty() {
            return Err(Refusal::BelowFloor { shortfalls });
        }
        let terminal = matches!(command.stdio, Stdio::Terminal);
        let inner_rules = built.inner_rules()?;
        let program = Some(built.program.as_path());
        let envp = environment::of(plan.environment(), &command.env, &built.private, program, terminal)?;
        let folder = built.folder(&command)?;
        let (control, inner) = line()?;
        let asking = Asking {
            unix_mediated: needs.unix_sockets == UnixSockets::Mediated,
            guarded: built.guarded.net.is_some(),
        };
        let (asks, passed_on) =
            if asking.unix_mediated { line().map(|(a, b)| (Some(a), Some(b)))? } else { (None, None) };
        let desk = asking.program().map(|filter| Asked {
            filter,
            own_filter: seccomp::program(Needs { desk: true, ..needs }),
            guarded: built.guarded,
            supervisor: passed_on,
            nested: plan.nested_sandbox(),
        });
        let argv = argv(&command)?;
        let (stdio, relays) = stdio::open(command.stdio)?;
        let image = Image {
            maps: maps(),
            entries: built.layout.entries()?,
            scratch: number(plan.limits().memory.unwrap_or(SCRATCH)),
            // Without Landlock nothing else would keep the kernel's settings from being written.
            proc_writable: plan.nested_sandbox() && rules.is_some(),
            network: network(plan)?,
            limits: limits.resources().to_vec(),
            rules,
            inner_rules,
            filter,
            desk,
            waits: limits.has_groups() || *plan.network() != Network::None,
            program: Executable { path: text(built.program.as_os_str())?, argv, envp: Strings::new(envp) },
            folder,
            stdio,
            stack: Stack::new(),
            control: inner,
            supervisors: control.as_raw_fd().cast_unsigned(),
        };
        let status = Status { coverage, backend: "native", details: counted(built.notes) };
        Ok(Self { image, control, status, limits, sockets, asks, relays })
    }

    /// What will be held.
    #[must_use]
    pub const fn predicted(&self) -> &Coverage {
        &self.status.coverage
    }

    /// The same with its details.
    #[must_use]
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Starts the program, held to the plan.
    ///
    /// # Errors
    /// The step that failed. Nothing runs then.
    pub fn spawn(self) -> Result<Confined, Fault> {
        let Self { image, control, status, limits, sockets, asks, relays } = self;
        confined::start(image, Confining { control, status, sockets, asks, limits, relays })
    }
}

/// What a plan and a command come to, before it is made ready for the child.
struct Built {
    layout: Layout,
    programs: Programs,
    program: PathBuf,
    private: PathBuf,
    rules: Vec<Rule>,
    notes: Vec<String>,
    write_only: bool,
    needs_rules: bool,
    exec: Exec,
    guarded: Guarded,
}

/// What may be started besides single programs.
#[derive(Clone, Copy)]
struct Exec {
    any: bool,
    from_writable: bool,
}

impl Built {
    fn of(mut layout: Layout, plan: &Plan, command: &Command, options: &Options) -> Result<Self, Refusal> {
        let home = options.home.as_deref();
        let granted = grants::put(&mut layout, plan, home)?;
        let own = base::Own {
            terminal: matches!(command.stdio, Stdio::Terminal),
            executable: plan.from_writable(),
            whole_tmp: !granted.narrowed.iter().any(|path| path.starts_with("/tmp")),
        };
        let private = base::own(&mut layout, own);
        let mut notes = granted.notes;
        let mut programs = Programs::default();
        let from = command.cwd.as_deref().unwrap_or(Path::new("/"));
        let program = programs.add(&command.program, from)?;
        for grant in &plan.exec().programs {
            let name = grant.value.program.to_string();
            if let Err(refusal) = programs.add(OsStr::new(&name), Path::new("/")) {
                notes.push(format!("`exec:spawn:{name}` starts nothing: {refusal}"));
            }
        }
        put_programs(&mut layout, &programs);
        protected::hide_own(&mut layout, plan)?;
        protected::lock_governing(&mut layout, plan)?;
        let unasked = Unasked { private: &private, devices: DEVICES };
        let guarded = Guarded::of(&layout, plan, home, &unasked)?;
        if !guarded.is_complete() {
            protected::cover_existing(&mut layout, plan)?;
            notes.push("without Landlock, names that run code later can be created".to_owned());
        }
        Ok(Self {
            layout,
            programs,
            program,
            private,
            rules: granted.rules,
            notes,
            write_only: granted.write_only,
            needs_rules: !granted.narrowed.is_empty(),
            exec: Exec { any: plan.exec().any.is_some(), from_writable: plan.from_writable() },
            guarded,
        })
    }

    /// The rules of inodes that exist on the host; none where the kernel has no Landlock.
    fn rules(&mut self) -> Result<Option<Ruleset>, Refusal> {
        let mut rules = std::mem::take(&mut self.rules);
        if !self.exec.any {
            let files = self.programs.files.iter().cloned().chain(base::loaders());
            for file in files {
                rules.extend(rule(&file, landlock::EXECUTE | landlock::READ_FILE)?);
            }
            for folder in &self.programs.folders {
                rules.extend(rule(folder, landlock::EXECUTE | landlock::READ)?);
            }
        }
        match Ruleset::build(&rules) {
            Ok(ruleset) => Ok(Some(ruleset)),
            Err(lack @ (landlock::Fault::Absent | landlock::Fault::Disabled)) => {
                self.notes.push(lack.to_string());
                Ok(None)
            }
            Err(fault) => Err(Fault::new(Step::Rules, fault.errno()).into()),
        }
    }

    /// The rules of inodes that exist only inside.
    fn inner_rules(&self) -> Result<Vec<(CString, Access)>, Refusal> {
        let run = |granted| if granted { landlock::EXECUTE } else { 0 };
        let everything = landlock::READ | landlock::WRITE | run(self.exec.from_writable);
        let mut rules = vec![(relative(Path::new("/dev"))?, DEVICES), (relative(&self.private)?, everything)];
        let shown = landlock::READ | run(self.exec.any);
        if self.write_only {
            for place in ["/usr", "/etc", "/proc"] {
                rules.push((relative(Path::new(place))?, shown));
            }
        } else {
            rules.push((relative(Path::new("/"))?, shown));
        }
        // The kernel looks for rules from the file upwards, until all is allowed that it asks for: at every open that
        // is truncation too. Allowed here, where the mount is read-only, it ends the search at once.
        for place in OFTEN_READ.map(Path::new).into_iter().filter(|place| self.layout.is_closed_tree(place)) {
            rules.push((relative(place)?, shown | landlock::TRUNCATE));
        }
        Ok(rules)
    }

    /// Where the program starts.
    fn folder(&mut self, command: &Command) -> Result<CString, Refusal> {
        let wanted = command.cwd.as_deref().unwrap_or(Path::new("/"));
        if self.layout.shows(wanted) {
            return text(wanted.as_os_str());
        }
        self.notes.push(format!("`{}` is not visible; the program starts in `/`", wanted.display()));
        text(OsStr::new("/"))
    }
}

fn put_programs(layout: &mut Layout, programs: &Programs) {
    for (path, target) in &programs.links {
        if layout.tree_around(path).is_none() {
            layout.put(path, Node::Link(target.clone()));
        }
    }
    for file in &programs.files {
        layout.mount(file, started_from(file, Kind::File));
    }
    for folder in &programs.folders {
        layout.mount(folder, started_from(folder, Kind::Folder));
    }
}

/// A place whose programs may be started; one that is not the system's is mounted only if it is still the same.
fn started_from(path: &Path, kind: Kind) -> Host {
    let of_system = BASE.iter().any(|entry| lies_in(path, Path::new(entry.path)));
    let found = std::fs::symlink_metadata(path).ok().filter(|_| !of_system);
    Host { executable: true, identity: found.as_ref().map(Identity::of_metadata), ..Host::system(path, kind) }
}

fn rule(path: &Path, access: Access) -> Result<Option<Rule>, Refusal> {
    match grants::open(path) {
        Ok(fd) => Ok(Some(Rule { fd, access })),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(Fault::new(Step::Rules, errno).at(path.display()).into()),
    }
}

fn needs(plan: &Plan) -> Needs {
    let mediated = plan.ipc().any || !plan.ipc().endpoints.is_empty();
    Needs {
        any_exec: plan.exec().any.is_some(),
        nested_sandbox: plan.nested_sandbox(),
        unix_sockets: if mediated { UnixSockets::Mediated } else { UnixSockets::None },
        desk: false,
    }
}

fn network(plan: &Plan) -> Result<Option<netns::Request>, Refusal> {
    let faulty = |fault: netns::Fault| Fault::new(Step::Network, Errno::from_raw_os_error(fault.errno));
    Ok(netns::Request::of(plan.network()).map_err(faulty)?)
}

fn limits(plan: &Plan) -> Applied {
    let none = *plan.limits() == Limits::default();
    let places = if none { Places::nowhere() } else { Places::find() };
    Applied::prepare(plan.limits(), &places, Situation::of_sandbox())
}

fn maps() -> Maps {
    let line = |id: u32| format!("{id} {id} 1").into_bytes();
    Maps { user: line(rustix::process::geteuid().as_raw()), group: line(rustix::process::getegid().as_raw()) }
}

fn number(value: u64) -> CString {
    CString::new(value.to_string()).unwrap_or_default()
}

fn argv(command: &Command) -> Result<Strings, Refusal> {
    let all = std::iter::once(&command.program).chain(&command.args);
    Ok(Strings::new(all.map(|argument| text(argument)).collect::<Result<_, _>>()?))
}

/// A line between the supervisor and the first process: the supervisor's end, and the other.
fn line() -> Result<(OwnedFd, OwnedFd), Refusal> {
    let opened = |errno| Fault::new(Step::Open, errno);
    let (outer, inner) = crate::control::pair().map_err(opened)?;
    Ok((outer, stdio::above_stdio(inner).map_err(opened)?))
}
