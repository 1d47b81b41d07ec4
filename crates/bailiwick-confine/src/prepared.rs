//! A plan checked against this host, with everything opened and allocated that starting it needs.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use bailiwick_layout::base::{self, Private, System};
use bailiwick_layout::entries::Identity;
use bailiwick_layout::fault::{Fault, Step};
use bailiwick_layout::layout::{Host, HostKind, Layout, Node, lies_in, relative, text};
use bailiwick_layout::programs::{Lookup, Programs};
use bailiwick_layout::refusal::Refusal;
use bailiwick_layout::shims::ToolChoice;
use bailiwick_layout::{environment, grants, protected};
use bailiwick_policy::capability::Endpoint;
use bailiwick_policy::enforcement::{Coverage, judge};
use bailiwick_policy::limits::Limits;
use bailiwick_policy::plan::{BASE, Network, PROGRAM_DIRECTORIES, Plan, Sourced};
use rustix::io::Errno;

use crate::accesses::Accesses;
use crate::cgroup::Places;
use crate::command::{Command, Options, Stdio, ToldRefusals, Watch};
use crate::confined::{self, Confined, Confining};
use crate::coverage::{self, Means};
use crate::ipc;
use crate::landlock::{self, Access, Rule, Ruleset};
use crate::layer::Layer;
use crate::limits::{Applied, Situation};
use crate::lost::PrivateDirectories;
use crate::native::desk::room_for_told;
use crate::native::guarded::{Guarded, Unasked};
use crate::native::image::{DeskSetup, Image, Maps};
use crate::seccomp::{self, Asking, Needs, RefusedCalls, UnixSockets};
use crate::status::{Status, counted};
use crate::stdio::{self, Relays};
use crate::sys::clone::{Program as Executable, Stack, Strings};
use crate::sys::{mount, netns};
use crate::watched::{Startable, Watched};

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
    watched: Option<Watched>,
    accesses: Option<Accesses>,
    layer: Layer,
    private: PrivateDirectories,
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
        Self::on_own(system.clone(), plan, command, options)
    }

    /// The same, with what was seen of the system used up: for the only program, or the last.
    ///
    /// # Errors
    /// What is missing, and what to write to change that. Nothing was started.
    pub fn on_own(system: System, plan: &Plan, command: Command, options: Options) -> Result<Self, Refusal> {
        Self::with(system, plan, command, options)
    }

    fn with(system: System, plan: &Plan, command: Command, options: Options) -> Result<Self, Refusal> {
        mount::look();
        let mut built = Built::for_plan(system, plan, &command, &options)?;
        let rules = built.rules_with_notes()?;
        let private_sockets = built.private_sockets(plan, rules.is_some())?;
        let needs = needs(plan, !private_sockets.is_empty());
        let strict = seccomp::program(needs);
        let needs = telling_refusals(needs, &options);
        let filter = seccomp::program(needs);
        let (sockets, absent) = ipc::names(plan.ipc(), &options.services);
        built.notes.extend(absent.iter().map(|endpoint| format!("`ipc:{endpoint}` is not on this host")));
        let means = Means {
            landlock: rules.as_ref().map_or(0, Ruleset::abi),
            filter: !filter.is_empty(),
            sockets: needs.unix_sockets,
            files_need_rules: built.needs_rules,
            protected: built.guarded.is_complete(),
        };
        let limits = limits(plan);
        let coverage = judge::coverage(plan, &coverage::mechanism(means, limits.mechanism()));
        coverage::ensure_floor(&coverage, plan, options.floor.as_ref())?;
        // Without Landlock other files of `/proc` would be writable than those of the program's own processes.
        let proc_writable = maps_users(plan) && rules.is_some();
        let inner_rules = built.inner_rules(!private_sockets.is_empty())?;
        let envp = environment::assignments(
            plan.environment(),
            (&command.env, &options.brokered.placeholders),
            &built.own_variables(matches!(command.stdio, Stdio::Terminal)),
        )?;
        let directory = built.directory(&command)?;
        let private =
            if options.counts_lost { built.private_directories() } else { PrivateDirectories::default() };
        let (control, inner) = line()?;
        let asking = asking(needs, plan, built.guarded.net.is_some(), options.watch);
        let (asks, passed_on) =
            if asking.unix_mediated { line().map(|(a, b)| (Some(a), Some(b)))? } else { (None, None) };
        let layer = Layer::from_layout(&built.layout)?;
        let Watching { watched, accesses, tells } = watching(options.watch, built.programs, built.exec)?;
        let desk = asking.program().map(|filter| DeskSetup {
            filter,
            own_filter: own_filter(needs, plan),
            guarded: built.guarded,
            supervisor: passed_on,
            tells,
            watch: options.watch,
            told: room_for_told(),
            only_tells: !asking.unix_mediated && !asking.guarded && options.watch != Watch::Everything,
            strict,
            nested: plan.nested_sandbox(),
            host_sockets: grants_host_sockets(plan),
            private_sockets,
        });
        let argv = argv(&command, &built.program)?;
        let (stdio, relays) = stdio::open(command.stdio)?;
        let image = Image {
            maps: maps(),
            layered: !layer.trees.is_empty(),
            private: private.places.iter().map(|place| relative(place)).collect::<Result<_, _>>()?,
            entries: built.layout.entries()?,
            scratch: number(plan.limits().memory.unwrap_or(SCRATCH)),
            proc_writable,
            network: network(plan)?,
            limits: limits.resources().to_vec(),
            rules,
            inner_rules,
            filter,
            desk,
            says_ready: limits.has_groups() || *plan.network() != Network::None,
            program: Executable { path: text(built.program.as_os_str())?, argv, envp: Strings::new(envp) },
            directory,
            stdio,
            stack: Stack::new(),
            control: inner,
            supervisors: control.as_raw_fd().cast_unsigned(),
        };
        let (details, unheld_limits) = (counted(built.notes), limits.unheld());
        let status = Status { coverage, backend: "native", details, unheld_limits };
        Ok(Self { image, control, status, limits, sockets, asks, relays, watched, accesses, layer, private })
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
        self.spawn_after(|| Ok(())).map(|(confined, ())| confined)
    }

    /// The same, after `permit` was called while the sandbox is being made. Unless it succeeds the program is not started.
    ///
    /// # Errors
    /// The step that failed, or what `permit` says. Nothing runs then.
    pub fn spawn_after<T, E: From<Fault>>(
        self,
        permit: impl FnOnce() -> Result<T, E>,
    ) -> Result<(Confined, T), E> {
        let Self { image, control, status, limits, sockets, asks, relays, watched, accesses, layer, private } =
            self;
        let with =
            Confining { control, status, sockets, asks, limits, relays, watched, accesses, layer, private };
        confined::start(image, with, permit)
    }
}

/// What a plan and a command come to, before it is made ready for the child.
struct Built {
    layout: Layout,
    programs: Programs,
    program: PathBuf,
    private: Private,
    user: String,
    rules: Vec<Rule>,
    /// Rules for trees that are seen through a layer.
    layered_rules: Vec<(PathBuf, Access)>,
    notes: Vec<String>,
    write_only: bool,
    needs_rules: bool,
    exec: Exec,
    /// Whether it may write the files of its own processes in `/proc`.
    maps_users: bool,
    guarded: Guarded,
}

/// What may be started besides single programs.
#[derive(Clone, Copy)]
struct Exec {
    any: bool,
    from_writable: bool,
}

impl Built {
    fn for_plan(system: System, plan: &Plan, command: &Command, options: &Options) -> Result<Self, Refusal> {
        let (mut layout, account) = system.into_parts(plan);
        let home = options.home.as_deref();
        let granted = grants::put(&mut layout, plan, home, options.layered)?;
        let own = base::Own {
            terminal: matches!(command.stdio, Stdio::Terminal),
            executable: plan.from_writable(),
            narrowed: &granted.narrowed,
            home,
            account: &account,
        };
        let private = base::own(&mut layout, &own);
        for (path, contents) in &options.brokered.files {
            layout.replace(path, Node::Text(contents.clone()));
        }
        let mut notes = granted.notes;
        let mut programs = Programs::default();
        let from = command.cwd.as_deref().unwrap_or(Path::new("/"));
        let choice = tool_choice(command, options);
        let callers = Lookup { first: &options.search.callers, choice: &choice };
        let program = programs.add(&command.program, from, callers)?;
        programs.found_in.extend(program.parent().map(Path::to_owned));
        let named = Lookup { first: &options.search.named, ..callers };
        for grant in &plan.exec().programs {
            let name = grant.value.program.to_string();
            if let Err(refusal) = programs.add(OsStr::new(&name), Path::new("/"), named) {
                notes.push(format!("`exec:spawn:{name}` starts nothing: {refusal}"));
            }
        }
        programs.code.extend(options.code.iter().cloned());
        programs.data.extend(options.data.iter().cloned());
        put_programs(&mut layout, &programs, installs(command));
        protected::hide_own(&mut layout, plan)?;
        protected::lock_governing(&mut layout, plan)?;
        let unasked = Unasked {
            private: &private,
            devices: DEVICES,
            proc: maps_users(plan),
            sockets: plan.ipc().has_private(),
        };
        let guarded = Guarded::from_layout(&layout, plan, home, &unasked)?;
        if !guarded.is_complete() {
            protected::cover_existing(&mut layout, plan)?;
            notes.push("without Landlock, names that run code later can be created".to_owned());
        }
        Ok(Self {
            layout,
            programs,
            program,
            private,
            user: account.user,
            rules: granted.rules,
            layered_rules: granted.layered_rules,
            notes,
            write_only: granted.write_only,
            needs_rules: !granted.narrowed.is_empty(),
            exec: Exec { any: plan.exec().any.is_some(), from_writable: plan.from_writable() },
            maps_users: maps_users(plan),
            guarded,
        })
    }

    /// The rules, with a note for what this kernel's do not know.
    fn rules_with_notes(&mut self) -> Result<Option<Ruleset>, Refusal> {
        let rules = self.rules()?;
        let gaps = rules.iter().flat_map(|rules| rules.level().missing());
        self.notes.extend(gaps.map(|gap| format!("this kernel's Landlock is old: {gap}")));
        Ok(rules)
    }

    /// The rules of inodes that exist on the host; none where the kernel has no Landlock.
    fn rules(&mut self) -> Result<Option<Ruleset>, Refusal> {
        let mut rules = std::mem::take(&mut self.rules);
        if !self.exec.any {
            let files = self.programs.files.iter().cloned().chain(base::loaders());
            for file in files {
                rules.extend(rule(&file, landlock::EXECUTE | landlock::READ_FILE)?);
            }
            for directory in &self.programs.directories {
                rules.extend(rule(directory, landlock::EXECUTE | landlock::READ)?);
            }
        }
        for directory in self.programs.code.iter().chain(&self.programs.data) {
            let is_directory = directory.is_dir();
            rules.extend(rule(directory, if is_directory { landlock::READ } else { landlock::READ_FILE })?);
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

    /// What the sandbox says of itself in the environment.
    fn own_variables(&self, terminal: bool) -> environment::Own<'_> {
        environment::Own {
            home: &self.private.home,
            temporary: &self.private.temporary,
            user: Some(&self.user),
            program_directories: &self.programs.found_in,
            terminal,
        }
    }

    /// The private directories in which the program may have sockets. Without Landlock it could make them elsewhere too.
    fn private_sockets(&mut self, plan: &Plan, has_rules: bool) -> Result<Vec<CString>, Refusal> {
        if !plan.ipc().has_private() {
            return Ok(Vec::new());
        }
        if !has_rules {
            self.notes.push("without Landlock, `ipc:connect:private` gives no socket".to_owned());
            return Ok(Vec::new());
        }
        self.private.places().map(relative).collect()
    }

    /// The rules of inodes that exist only inside.
    fn inner_rules(&self, private_sockets: bool) -> Result<Vec<(CString, Access)>, Refusal> {
        let run = |granted| if granted { landlock::EXECUTE } else { 0 };
        let sockets = if private_sockets { landlock::MAKE_SOCKET } else { 0 };
        let everything = landlock::READ | landlock::WRITE | sockets | run(self.exec.from_writable);
        let mut rules = vec![(relative(Path::new("/dev"))?, DEVICES)];
        for place in self.private.places() {
            rules.push((relative(place)?, everything));
        }
        let shown = landlock::READ | run(self.exec.any);
        if self.maps_users {
            rules.push((relative(Path::new("/proc"))?, landlock::READ | landlock::MODIFY));
        }
        if self.write_only {
            for place in ["/usr", "/etc", "/proc"] {
                rules.push((relative(Path::new(place))?, shown));
            }
        } else {
            rules.push((relative(Path::new("/"))?, shown));
        }
        for (path, access) in &self.layered_rules {
            rules.push((relative(&self.layout.follow(path))?, *access));
        }
        // The kernel looks for rules from the file upwards, until all is allowed that it asks for: at every open that
        // is truncation too. Allowed here, where the mount is read-only, it ends the search at once.
        for place in OFTEN_READ.map(Path::new).into_iter().filter(|place| self.layout.is_closed_tree(place)) {
            rules.push((relative(place)?, shown | landlock::TRUNCATE));
        }
        Ok(rules)
    }

    /// The directories whose files are lost at the end, without what the sandbox itself puts there and caches.
    fn private_directories(&self) -> PrivateDirectories {
        let places: Vec<PathBuf> = self.private.places().map(Path::to_owned).collect();
        let placed = places.iter().flat_map(|place| self.layout.placed_below(place)).map(Path::to_owned);
        let home = self.layout.follow(&self.private.home);
        let uncounted = [self.private.temporary.join(".shm"), home.join(".cache"), home.join(".npm")];
        PrivateDirectories {
            own: placed.chain(uncounted).collect(),
            home: (home, self.private.home.clone()),
            places,
            descriptors: Vec::new(),
        }
    }

    /// Where the program starts.
    fn directory(&mut self, command: &Command) -> Result<CString, Refusal> {
        let wanted = command.cwd.as_deref().unwrap_or(Path::new("/"));
        if self.layout.shows(wanted) {
            return text(wanted.as_os_str());
        }
        self.notes.push(format!("`{}` is not visible; the program starts in `/`", wanted.display()));
        text(OsStr::new("/"))
    }
}

/// Whether a command changes the code that it brings: what it may write of it stays writable then, and without code.
fn installs(command: &Command) -> bool {
    const INSTALLERS: [&str; 3] = ["pip", "venv", "ensurepip"];
    let name = Path::new(&command.program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let mut words = command.args.iter().map(OsString::as_os_str);
    let module = words.find(|word| *word == "-m").and_then(|_| words.next());
    name.starts_with("pip") || module.is_some_and(|module| INSTALLERS.iter().any(|own| module == *own))
}

fn put_programs(layout: &mut Layout, programs: &Programs, installs: bool) {
    for (path, target) in &programs.links {
        if layout.tree_around(path).is_none() {
            layout.put(path, Node::Link(target.clone()));
        }
    }
    for file in &programs.files {
        layout.mount(file, started_from(file, HostKind::File));
    }
    // What may itself be written has no code; what lies in a writable tree is read-only.
    for directory in &programs.directories {
        if !is_writable(layout.at(directory)) {
            layout.mount(directory, started_from(directory, HostKind::Directory));
        }
    }
    for directory in &programs.code {
        let is_around = layout.tree_around(directory).is_some_and(|(_, tree)| tree.writable);
        let stays_writable = is_writable(layout.at(directory)) || (installs && is_around);
        if !stays_writable {
            let kind = if directory.is_dir() { HostKind::Directory } else { HostKind::File };
            layout.mount(directory, started_from(directory, kind));
        }
    }
    for path in &programs.data {
        let Ok(file) = std::fs::canonicalize(path) else { continue };
        let kind = if file.is_dir() { HostKind::Directory } else { HostKind::File };
        if layout.tree_around(path).is_none() {
            layout.mount(path, Host { executable: false, ..started_from(&file, kind) });
        }
    }
}

fn is_writable(node: Option<&Node>) -> bool {
    matches!(node, Some(Node::Host(host)) if host.writable)
}

/// A place whose programs may be started; one that is not the system's is mounted only if it is still the same.
fn started_from(path: &Path, kind: HostKind) -> Host {
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

/// Whether the program may say who is who in user namespaces of its own, as browsers do: `/proc/self/uid_map` and others.
///
/// Never as root: a kernel before 5.12 would let a file get capabilities from there that count on the host, and a later one
/// refuses such a map anyway.
fn maps_users(plan: &Plan) -> bool {
    plan.nested_sandbox() && !rustix::process::geteuid().is_root()
}

/// What the first process decides.
fn asking(needs: Needs, plan: &Plan, guarded: bool, watch: Watch) -> Asking {
    let refused = RefusedCalls {
        sockets: needs.unix_sockets == UnixSockets::Told,
        namespaces: needs.nested_sandbox && !plan.nested_sandbox(),
    };
    Asking { unix_mediated: needs.unix_sockets == UnixSockets::Mediated, guarded, watch, refused }
}

/// The filter of the first process itself, which makes no namespaces for the program to be refused.
fn own_filter(needs: Needs, plan: &Plan) -> &'static [libc::sock_filter] {
    seccomp::program(Needs { desk: true, nested_sandbox: plan.nested_sandbox(), ..needs })
}

/// The same, where the first process refuses what is to be told, if anything is told at all.
fn telling_refusals(needs: Needs, options: &Options) -> Needs {
    let told = if options.watch == Watch::Nothing { ToldRefusals::None } else { options.told_refusals };
    let unix_sockets = match needs.unix_sockets {
        UnixSockets::None if told >= ToldRefusals::Sockets => UnixSockets::Told,
        as_before @ (UnixSockets::None | UnixSockets::Told | UnixSockets::Mediated) => as_before,
    };
    let nested_sandbox = needs.nested_sandbox || told >= ToldRefusals::SocketsAndNamespaces;
    Needs { unix_sockets, nested_sandbox, ..needs }
}

fn grants_host_sockets(plan: &Plan) -> bool {
    let is_of_host = |endpoint: &Sourced<Endpoint>| endpoint.value != Endpoint::Private;
    plan.ipc().any || plan.ipc().endpoints.iter().any(is_of_host)
}

fn needs(plan: &Plan, private_sockets: bool) -> Needs {
    let mediated = private_sockets || grants_host_sockets(plan);
    Needs {
        any_exec: plan.exec().any.is_some(),
        nested_sandbox: plan.nested_sandbox(),
        unix_sockets: if mediated { UnixSockets::Mediated } else { UnixSockets::None },
        desk: false,
    }
}

/// The supervisor's and the first process' part of what is looked at; none if nothing is.
fn watching(watch: Watch, mut programs: Programs, exec: Exec) -> Result<Watching, Refusal> {
    if watch == Watch::Nothing {
        return Ok(Watching::default());
    }
    let (line, inner) = line()?;
    if watch == Watch::Everything {
        let accesses = Accesses::new(line, programs);
        return Ok(Watching { accesses: Some(accesses), tells: Some(inner), ..Watching::default() });
    }
    programs.files.extend(base::loaders());
    let Exec { any, from_writable } = exec;
    let startable = Startable { programs, any, from_writable };
    let watched = Watched::new(line, watch, startable);
    Ok(Watching { watched: Some(watched), tells: Some(inner), ..Watching::default() })
}

/// Both ends of the line on which things are told.
#[derive(Default)]
struct Watching {
    watched: Option<Watched>,
    accesses: Option<Accesses>,
    /// The first process' end.
    tells: Option<OwnedFd>,
}

fn network(plan: &Plan) -> Result<netns::Request, Refusal> {
    let faulty = |fault: netns::Fault| Fault::new(Step::Network, Errno::from_raw_os_error(fault.errno));
    Ok(netns::Request::for_plan(plan).map_err(faulty)?)
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

/// The arguments. A program that was found outside of the system's directories is called by its path: many find their own
/// files by that, and a name would lead them to the system's program of that name.
fn argv(command: &Command, program: &Path) -> Result<Strings, Refusal> {
    let of_system = program
        .parent()
        .is_some_and(|own| PROGRAM_DIRECTORIES.iter().any(|directory| own == Path::new(directory)));
    let is_name = !command.program.as_bytes().contains(&b'/');
    let name = if is_name && !of_system { program.as_os_str() } else { command.program.as_os_str() };
    let all = std::iter::once(name).chain(command.args.iter().map(OsString::as_os_str));
    Ok(Strings::new(all.map(text).collect::<Result<_, _>>()?))
}

/// What version managers go by.
pub(crate) fn tool_choice(command: &Command, options: &Options) -> ToolChoice {
    ToolChoice {
        home: options.home.clone(),
        cwd: command.cwd.clone(),
        variables: options.search.variables.clone(),
    }
}

/// A line between the supervisor and the first process: the supervisor's end, and the other.
fn line() -> Result<(OwnedFd, OwnedFd), Refusal> {
    let opened = |errno| Fault::new(Step::Open, errno);
    let (outer, inner) = crate::control::pair().map_err(opened)?;
    Ok((outer, stdio::above_stdio(inner).map_err(opened)?))
}
