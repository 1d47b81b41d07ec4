//! Protections that a build can leave out, to show that a test notices: see `scripts/mutate-sandbox`.
//!
//! Each is a feature, `weaken-` and its name, and a release build with any of them is refused. Never a flag or a
//! variable: what is built without them has no way to be weaker.

macro_rules! weakenings {
    ($($(#[$doc:meta])* $name:ident = $feature:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $name: bool = cfg!(feature = $feature);

            #[cfg(all(feature = $feature, not(debug_assertions)))]
            compile_error!(concat!("`", $feature, "` leaves a protection out and is not for releases"));
        )*
    };
}

weakenings! {
    /// The program keeps its capabilities.
    CAPABILITIES = "weaken-capabilities";
    /// Descriptors that the caller left open stay open.
    DESCRIPTORS = "weaken-descriptors";
    /// Pid 1 can be looked into.
    DUMPABLE = "weaken-dumpable";
    /// The caller's variables are inherited.
    ENVIRONMENT = "weaken-environment";
    /// A glob shows whatever lies in its directories.
    GLOBS = "weaken-globs";
    /// Files of `/proc` that say too much are shown.
    HIDDEN = "weaken-hidden";
    /// The host's shared memory is there.
    IPC_NAMESPACE = "weaken-ipc-namespace";
    /// The rules of files are not taken on.
    LANDLOCK = "weaken-landlock";
    /// A grant of everything shows the host's `/sys`.
    MASKED = "weaken-masked";
    /// Any Unix socket is connected to.
    MEDIATOR = "weaken-mediator";
    /// The host's network is there.
    NETWORK_NAMESPACE = "weaken-network-namespace";
    /// Names that run code later are not judged.
    NAMES = "weaken-names";
    /// The program may do by itself what the first process decides.
    NET = "weaken-net";
    /// Code can be mapped from every mount.
    NOEXEC = "weaken-noexec";
    /// Bailiwick's own files are shown.
    OWN_STATE = "weaken-own-state";
    /// The host's processes are there.
    PID_NAMESPACE = "weaken-pid-namespace";
    /// `/proc` can be changed.
    PROC = "weaken-proc";
    /// Every program of the host is there.
    PROGRAMS = "weaken-programs";
    /// What is granted for reading can be written.
    READ_ONLY = "weaken-read-only";
    /// The root itself can be changed.
    ROOT = "weaken-root";
    /// System calls are not filtered.
    SECCOMP = "weaken-seccomp";
    /// Sockets anywhere inside count as the program's own.
    SOCKETS = "weaken-sockets";
    /// Files and sockets are handed in as descriptors.
    STDIO = "weaken-stdio";
    /// The host's own `/etc/passwd` and the like are shown.
    STUBS = "weaken-stubs";
    /// Every mount of the host below a granted tree comes along.
    SUBMOUNTS = "weaken-submounts";
}
