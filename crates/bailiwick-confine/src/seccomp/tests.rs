//! The programs, run by an interpreter of their own and by the kernel.

use super::compiled::{AARCH64, X86_64};
use super::*;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const KILL: u32 = 0x8000_0000;
const EPERM: u32 = 0x0005_0000 | 1;
const ENOSYS: u32 = 0x0005_0000 | 38;

const ARCH_X86_64: u32 = 0xc000_003e;
const ARCH_AARCH64: u32 = 0xc000_00b7;

/// What a classic BPF program answers: written from the kernel's description, not from `build.rs`.
fn run(program: &[libc::sock_filter], arch: u32, number: u32, arguments: &[u64]) -> u32 {
    let mut data = [0_u32; 16];
    data[0] = number;
    data[1] = arch;
    for (at, argument) in arguments.iter().enumerate() {
        data[4 + 2 * at] = (*argument & 0xffff_ffff) as u32;
        data[5 + 2 * at] = (*argument >> 32) as u32;
    }
    let (mut at, mut register) = (0_usize, 0_u32);
    loop {
        let step = program[at];
        let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
        at += 1;
        match step.code {
            0x20 => register = data[usize::try_from(step.k).unwrap() / 4],
            0x54 => register &= step.k,
            0x05 => at += usize::try_from(step.k).unwrap(),
            0x15 => at += jump(register == step.k),
            0x25 => at += jump(register > step.k),
            0x35 => at += jump(register >= step.k),
            0x45 => at += jump(register & step.k != 0),
            0x06 => return step.k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

fn here(needs: Needs, number: libc::c_long, arguments: &[u64]) -> u32 {
    let arch = if cfg!(target_arch = "x86_64") { ARCH_X86_64 } else { ARCH_AARCH64 };
    run(program(needs), arch, u32::try_from(number).unwrap(), arguments)
}

/// What the second filter answers.
fn asked(unix_mediated: bool, guarded: bool, number: libc::c_long, arguments: &[u64]) -> u32 {
    let arch = if cfg!(target_arch = "x86_64") { ARCH_X86_64 } else { ARCH_AARCH64 };
    let program = Asking { unix_mediated, guarded, ..Asking::default() }.program().unwrap();
    run(program, arch, u32::try_from(number).unwrap(), arguments)
}

#[test]
fn every_call_that_changes_a_name_is_asked_about_and_reading_is_not() {
    let write_flags = [0o1, 0o2, 0o100, 0o1000, 0o20_200_000, 0o102 | UPPER];
    for flags in write_flags {
        assert_eq!(asked(false, true, libc::SYS_openat, &[3, 0, flags]), NOTIFY, "{flags:o}");
        assert_eq!(asked(true, false, libc::SYS_openat, &[3, 0, flags]), ALLOW, "{flags:o}");
    }
    for flags in [0, 0o2_000_000, 0o200_000 | 0o4_000, 0o10_000_000] {
        assert_eq!(asked(false, true, libc::SYS_openat, &[3, 0, flags]), ALLOW, "{flags:o}");
    }
    for number in [
        libc::SYS_mkdirat,
        libc::SYS_mknodat,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_renameat2,
        libc::SYS_unlinkat,
        libc::SYS_truncate,
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchmodat2,
        libc::SYS_umask,
    ] {
        assert_eq!(asked(true, true, number, &[0; 6]), NOTIFY, "{number}");
    }
    assert!(Asking::default().program().is_none());
}

#[test]
fn what_is_watched_is_asked_about_besides() {
    let arch = if cfg!(target_arch = "x86_64") { ARCH_X86_64 } else { ARCH_AARCH64 };
    let looked_at = |watch, guarded, number: libc::c_long, arguments: &[u64]| {
        let program = Asking { guarded, watch, ..Asking::default() }.program().unwrap();
        run(program, arch, u32::try_from(number).unwrap(), arguments) == NOTIFY
    };
    for guarded in [false, true] {
        for watch in [Watch::Programs, Watch::Files] {
            assert!(looked_at(watch, guarded, libc::SYS_execve, &[0; 6]));
            assert!(looked_at(watch, guarded, libc::SYS_execveat, &[3, 0]));
            assert!(!looked_at(watch, guarded, libc::SYS_execveat, &[0x6261_6c69, 0]), "the own program");
            assert!(looked_at(watch, guarded, libc::SYS_listen, &[0; 6]));
        }
        assert!(!looked_at(Watch::Programs, guarded, libc::SYS_openat, &[3, 0, 0]));
        assert!(looked_at(Watch::Files, guarded, libc::SYS_openat, &[3, 0, 0]));
        assert_eq!(looked_at(Watch::Programs, guarded, libc::SYS_openat, &[3, 0, 1]), guarded);
        assert!(looked_at(Watch::Files, guarded, libc::SYS_newfstatat, &[3, 0, 0, 0]));
        assert!(!looked_at(Watch::Files, guarded, libc::SYS_newfstatat, &[3, 0, 0, 0x1000]));
    }
}

#[test]
fn a_unix_socket_that_is_told_passes_the_first_filter_and_is_asked_about() {
    let arch = if cfg!(target_arch = "x86_64") { ARCH_X86_64 } else { ARCH_AARCH64 };
    let told = Needs { unix_sockets: UnixSockets::Told, ..PLAIN };
    for sockets_told in [false, true] {
        let refused = RefusedCalls { sockets: sockets_told, ..RefusedCalls::default() };
        let program = Asking { refused, watch: Watch::Programs, ..Asking::default() }.program().unwrap();
        let asks =
            |arguments: &[u64]| run(program, arch, u32::try_from(libc::SYS_socket).unwrap(), arguments);
        for kind in [1, 5, 1 | 0o2_000_000] {
            assert_eq!(asks(&[1, kind, 0]), if sockets_told { NOTIFY } else { ALLOW });
            assert_eq!(asks(&[UPPER | 1, kind, 0]), if sockets_told { NOTIFY } else { ALLOW });
            assert_eq!(here(told, libc::SYS_socket, &[1, kind, 0]), ALLOW);
            assert_ne!(here(PLAIN, libc::SYS_socket, &[1, kind, 0]), ALLOW);
        }
        assert_eq!(asks(&[2, 1, 0]), ALLOW);
        assert_ne!(here(told, libc::SYS_socket, &[1, 2, 0]), ALLOW, "a datagram reaches any name");
    }
}

#[test]
fn namespaces_that_are_told_pass_the_first_filter_and_are_all_asked_about() {
    let arch = if cfg!(target_arch = "x86_64") { ARCH_X86_64 } else { ARCH_AARCH64 };
    let passing = Needs { nested_sandbox: true, ..PLAIN };
    let calls = [libc::SYS_unshare, libc::SYS_clone, libc::SYS_chroot];
    for namespaces in [false, true] {
        let refused = RefusedCalls { namespaces, ..RefusedCalls::default() };
        let program = Asking { refused, watch: Watch::Files, ..Asking::default() }.program().unwrap();
        let asks = |call: libc::c_long, flags: u64| {
            run(program, arch, u32::try_from(call).unwrap(), &[flags, 0, 0]) == NOTIFY
        };
        for call in calls {
            // Whatever the strict filter refuses, and the passing one lets through, is asked about.
            for bit in 0..32 {
                let flags = 1_u64 << bit;
                let opened = here(PLAIN, call, &[flags, 0, 0]) != ALLOW
                    && here(passing, call, &[flags, 0, 0]) == ALLOW;
                assert_eq!(asks(call, flags), opened && namespaces, "{call} {flags:x}");
                assert_eq!(asks(call, UPPER | flags), opened && namespaces, "{call} {flags:x}");
            }
        }
    }
}

const PLAIN: Needs =
    Needs { any_exec: false, nested_sandbox: false, desk: false, unix_sockets: UnixSockets::None };
const MEDIATED: Needs = Needs { unix_sockets: UnixSockets::Mediated, ..PLAIN };
const UPPER: u64 = 0xdead_beef_0000_0000;

#[test]
fn conditions_are_judged_on_the_low_half() {
    let (inet, inet6, unix, netlink) = (2, 10, 1, 16);
    let flags = 0o2_004_000; // close-on-exec, non-blocking
    for (number, arguments, answer) in [
        (libc::SYS_socket, vec![inet, 1, 0], ALLOW),
        (libc::SYS_socket, vec![inet, 1 | flags, 6], ALLOW),
        (libc::SYS_socket, vec![inet6, 2 | flags, 17], ALLOW),
        (libc::SYS_socket, vec![inet6, 2, 0], ALLOW),
        (libc::SYS_socket, vec![inet, 3, 1], EPERM),      // raw
        (libc::SYS_socket, vec![inet, 10, 0x300], EPERM), // the old packet socket
        (libc::SYS_socket, vec![inet, 1, 262], EPERM),    // MPTCP
        (libc::SYS_socket, vec![inet, 1, 256], EPERM),    // SMC
        (libc::SYS_socket, vec![inet, 1, 132], EPERM),    // SCTP
        (libc::SYS_socket, vec![inet, 5, 0], EPERM),
        (libc::SYS_socket, vec![inet, 2, 115], EPERM), // L2TP
        (libc::SYS_socket, vec![inet, 1, 17], EPERM),
        (libc::SYS_socket, vec![17, 3, 0], EPERM), // packet
        (libc::SYS_socket, vec![40, 1, 0], EPERM), // vsock
        (libc::SYS_socket, vec![unix, 1, 0], EPERM),
        (libc::SYS_socket, vec![netlink, 3, 0], ALLOW),
        (libc::SYS_socket, vec![netlink, 3, 9], EPERM),  // audit
        (libc::SYS_socket, vec![netlink, 3, 15], EPERM), // uevents
        (libc::SYS_socketpair, vec![unix, 1 | flags, 0], ALLOW),
        (libc::SYS_socketpair, vec![unix, 5, 0], ALLOW),
        (libc::SYS_socketpair, vec![unix, 2, 0], EPERM),
        (libc::SYS_socketpair, vec![unix, 2 | flags, 0], EPERM),
        (libc::SYS_socketpair, vec![unix, 3, 0], EPERM), // raw is a datagram to the kernel
        (libc::SYS_socketpair, vec![30, 1, 0], EPERM),   // TIPC
        (libc::SYS_connect, vec![3, 0, 16], ALLOW),
        (libc::SYS_personality, vec![0xffff_ffff], ALLOW),
        (libc::SYS_personality, vec![0], ALLOW),
        (libc::SYS_personality, vec![0x0040_0000], EPERM),
        (libc::SYS_personality, vec![8], EPERM),
        (libc::SYS_ioctl, vec![0, 0x5401], ALLOW),
        (libc::SYS_ioctl, vec![0, 0x5412], EPERM),
        (libc::SYS_ioctl, vec![0, 0x541c], EPERM),
        (libc::SYS_ioctl, vec![0, 0x5413], ALLOW),
        (libc::SYS_clone, vec![0x0120_0011], ALLOW), // fork
        (libc::SYS_clone, vec![0x003d_0f00], ALLOW), // a thread
        (libc::SYS_clone, vec![0x1000_0011], EPERM),
        (libc::SYS_clone, vec![0x0002_0011], EPERM),
        (libc::SYS_clone, vec![0x4000_0011], EPERM),
        (libc::SYS_unshare, vec![0x400], ALLOW),
        (libc::SYS_unshare, vec![0x80], EPERM),
        (libc::SYS_unshare, vec![0x1000_0000], EPERM),
        (libc::SYS_fchmod, vec![3, 0o755], ALLOW),
        (libc::SYS_ioctl, vec![3, 0x5401], ALLOW),
        (libc::SYS_ioctl, vec![3, 0x5412], EPERM),
        (libc::SYS_ioctl, vec![3, 0x5000_940e], EPERM), // a subvolume by name
        (libc::SYS_ioctl, vec![3, 0x5000_9417], EPERM), // a snapshot by name
        (libc::SYS_ioctl, vec![3, 0x4020_bc10], EPERM),
        (libc::SYS_ioctl, vec![3, 0x5000_9402], ALLOW),
        (libc::SYS_fchmod, vec![3, 0o1777], ALLOW),
        (libc::SYS_fchmod, vec![3, 0o4755], EPERM),
        (libc::SYS_fchmod, vec![3, 0o2755], EPERM),
        (libc::SYS_fchmodat, vec![3, 0, 0o644], ALLOW),
        (libc::SYS_fchmodat, vec![3, 0, 0o4644], EPERM),
        (libc::SYS_fchmodat2, vec![3, 0, 0o4644], EPERM),
        (libc::SYS_mknodat, vec![3, 0, 0o100_644], ALLOW),
        (libc::SYS_mknodat, vec![3, 0, 0o104_644], EPERM),
        (libc::SYS_openat, vec![3, 0, 0o101, 0o666], ALLOW),
        (libc::SYS_openat, vec![3, 0, 0o101, 0o4777], EPERM),
        (libc::SYS_openat, vec![3, 0, 0o20_200_002, 0o2777], EPERM), // an unnamed file
        (libc::SYS_openat, vec![3, 0, 0, 0o7777], ALLOW),            // garbage that the kernel ignores
    ] {
        assert_eq!(here(PLAIN, number, &arguments), answer, "call {number} {arguments:x?}");
        let disguised: Vec<u64> = arguments.iter().map(|low| low | UPPER).collect();
        assert_eq!(here(PLAIN, number, &disguised), answer, "call {number} {disguised:x?}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_old_calls_of_x86_64_are_judged_as_the_new_ones() {
    for (number, arguments, answer) in [
        (libc::SYS_open, vec![0, 0o101, 0o666], ALLOW),
        (libc::SYS_open, vec![0, 0o101, 0o4777], EPERM),
        (libc::SYS_open, vec![0, 0, 0o4777], ALLOW),
        (libc::SYS_creat, vec![0, 0o666], ALLOW),
        (libc::SYS_creat, vec![0, 0o2666], EPERM),
        (libc::SYS_chmod, vec![0, 0o755], ALLOW),
        (libc::SYS_chmod, vec![0, 0o6755], EPERM),
        (libc::SYS_mknod, vec![0, 0o104_755], EPERM),
        (libc::SYS_mknod, vec![0, 0o100_755], ALLOW),
    ] {
        assert_eq!(here(PLAIN, number, &arguments), answer, "call {number} {arguments:x?}");
    }
}

#[test]
fn a_need_opens_its_own_calls_and_no_others() {
    let changes = |needs: Needs| -> Vec<libc::c_long> {
        let probe = |needs, number| here(needs, number, &[0x1000_0001, 1, 0]);
        (0..=469).filter(|number| probe(needs, *number) != probe(PLAIN, *number)).collect()
    };
    let sorted = |mut numbers: Vec<libc::c_long>| {
        numbers.sort_unstable();
        numbers
    };
    let any_exec = Needs { any_exec: true, ..PLAIN };
    assert_eq!(changes(any_exec), sorted(vec![libc::SYS_memfd_create, libc::SYS_memfd_secret]));
    let nested = Needs { nested_sandbox: true, ..PLAIN };
    assert_eq!(changes(nested), sorted(vec![libc::SYS_unshare, libc::SYS_clone, libc::SYS_chroot]));
    let desk = Needs { desk: true, ..PLAIN };
    let read = [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_openat2,
    ];
    assert_eq!(changes(desk), sorted(read.to_vec()));
    assert_eq!(changes(MEDIATED), [0; 0]);
}

#[test]
fn mediated_unix_sockets_are_streams_that_the_supervisor_connects() {
    assert_eq!(asked(true, false, libc::SYS_connect, &[3, 0, 110]), NOTIFY);
    assert_eq!(asked(false, true, libc::SYS_connect, &[3, 0, 110]), ALLOW);
    assert_eq!(asked(true, true, libc::SYS_bind, &[3, 0, 110]), NOTIFY);
    assert_eq!(asked(true, false, libc::SYS_bind, &[3, 0, 110]), ALLOW);
    for (kind, answer) in [(1, ALLOW), (5, ALLOW), (0o2_004_001, ALLOW), (2, EPERM), (3, EPERM), (4, EPERM)] {
        assert_eq!(here(MEDIATED, libc::SYS_socket, &[1, kind, 0]), answer, "type {kind:#o}");
    }
    assert_eq!(here(MEDIATED, libc::SYS_socketpair, &[1, 2, 0]), EPERM);
    assert_eq!(here(MEDIATED, libc::SYS_socket, &[2, 1, 262]), EPERM);
    assert_eq!(here(MEDIATED, libc::SYS_socket, &[2, 1, 0]), ALLOW);
}

#[test]
fn offline_there_is_no_socket_but_pairs() {
    let arch = if cfg!(target_arch = "x86_64") { ARCH_X86_64 } else { ARCH_AARCH64 };
    let ask = |needs, call: libc::c_long, arguments: &[u64]| {
        run(program_offline(needs), arch, u32::try_from(call).unwrap(), arguments)
    };
    for family in 0..64 {
        for kind in 0..16 {
            assert_eq!(ask(PLAIN, libc::SYS_socket, &[family, kind, 0]), EPERM, "{family} {kind}");
            let granted = family == 1 && (kind == 1 || kind == 5);
            let answer = if granted { ALLOW } else { EPERM };
            assert_eq!(ask(MEDIATED, libc::SYS_socket, &[family, kind, 0]), answer, "{family} {kind}");
        }
    }
    assert_eq!(ask(PLAIN, libc::SYS_socketpair, &[1, 1, 0]), ALLOW);
    assert_eq!(ask(PLAIN, libc::SYS_clone, &[0x1000_0000]), EPERM);
}

#[test]
fn foreign_entries_and_unknown_numbers_are_refused() {
    for program in X86_64 {
        assert_eq!(run(program, 0x4000_0003, 4, &[]), KILL, "i386");
        assert_eq!(run(program, ARCH_AARCH64, 4, &[]), KILL);
        assert_eq!(run(program, ARCH_X86_64, 0x4000_0000, &[]), EPERM, "x32 read");
        assert_eq!(run(program, ARCH_X86_64, 0x4000_0000 | 521, &[]), EPERM, "x32 ptrace");
        assert_eq!(run(program, ARCH_X86_64, 470, &[]), ENOSYS, "newer than the list");
        assert_eq!(run(program, ARCH_X86_64, 0x3fff_ffff, &[]), ENOSYS);
        assert_eq!(run(program, ARCH_X86_64, 400, &[]), ENOSYS, "an unassigned number");
        for passes in [0, 1, 59, 231, 335, 336] {
            assert_eq!(run(program, ARCH_X86_64, passes, &[]), ALLOW, "{passes}");
        }
    }
    for program in AARCH64 {
        assert_eq!(run(program, 0x4000_0028, 4, &[]), KILL, "arm");
        assert_eq!(run(program, ARCH_AARCH64, 470, &[]), ENOSYS);
        assert_eq!(run(program, ARCH_AARCH64, 300, &[]), ENOSYS);
        assert_eq!(run(program, ARCH_AARCH64, 63, &[]), ALLOW, "read");
        let (unshare, clone) =
            (run(program, ARCH_AARCH64, 97, &[1 << 28]), run(program, ARCH_AARCH64, 220, &[1 << 28]));
        assert_eq!(unshare, clone, "a namespace is refused or allowed by both");
    }
}

/// One call of one rule of the data file.
struct Listed {
    call: String,
    answer: u32,
    variants: Vec<String>,
    judged: bool,
}

fn listed() -> Vec<Listed> {
    let table: toml::Table = include_str!("../../seccomp.toml").parse().unwrap();
    let texts = |rule: &toml::Value, key: &str| -> Vec<String> {
        let values = rule.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    let of_rule = |rule: &toml::Value| -> Vec<Listed> {
        let judged = rule.get("refuse-when").or(rule.get("pass-when")).is_some();
        let answer = match rule["answer"].as_str().unwrap() {
            "EPERM" => EPERM,
            "ENOSYS" => ENOSYS,
            other => panic!("answer `{other}`"),
        };
        let variants = texts(rule, "if");
        let listed = |call| Listed { call, answer, variants: variants.clone(), judged };
        texts(rule, "calls").into_iter().map(listed).collect()
    };
    table["rule"].as_array().unwrap().iter().flat_map(of_rule).collect()
}

/// Whether a rule is in force in the variant of that index.
fn in_force(listed: &Listed, variant: usize) -> bool {
    let flags = ["any-exec", "nested-sandbox", "desk", "unix-mediated", "offline"];
    listed.variants.iter().all(|name| {
        let wanted = name.strip_prefix('!').unwrap_or(name);
        let flag = flags.iter().position(|flag| *flag == wanted).unwrap();
        (variant >> flag & 1 == 1) != name.starts_with('!')
    })
}

/// Every unconditional line of the data file answers in its variants and passes in the others, and the numbers
/// beside it that are listed nowhere pass.
fn check_data_file(programs: &[&[libc::sock_filter]], arch: u32, number: fn(&str) -> Option<u32>) {
    let lines = listed();
    assert!(lines.len() > 70, "only {} lines were read", lines.len());
    let numbers: Vec<u32> = lines.iter().filter_map(|line| number(&line.call)).collect();
    let is_known = |candidate: u32| candidate <= 285 || (424..=469).contains(&candidate);
    for (variant, program) in programs.iter().enumerate() {
        let plain = lines.iter().filter(|line| !line.judged && line.call != "socket");
        for line in plain {
            let Some(own) = number(&line.call) else { continue };
            let answer = if in_force(line, variant) { line.answer } else { ALLOW };
            assert_eq!(run(program, arch, own, &[0; 6]), answer, "{} in {variant:05b}", line.call);
            for beside in [own.saturating_sub(1), own + 1] {
                if is_known(beside) && !numbers.contains(&beside) {
                    let answer = run(program, arch, beside, &[0; 6]);
                    assert!(answer == ALLOW, "{beside} beside {} answers {answer:#x}", line.call);
                }
            }
        }
    }
}

#[test]
fn every_line_of_the_data_file_holds_on_x86_64() {
    use syscalls::x86_64::Sysno;
    check_data_file(&X86_64, ARCH_X86_64, |call| Some(call.parse::<Sysno>().ok()?.id().cast_unsigned()));
}

#[test]
fn every_line_of_the_data_file_holds_on_aarch64() {
    use syscalls::aarch64::Sysno;
    check_data_file(&AARCH64, ARCH_AARCH64, |call| Some(call.parse::<Sysno>().ok()?.id().cast_unsigned()));
}

#[test]
fn the_table_of_numbers_is_the_one_of_the_c_library() {
    for (name, number) in [
        ("ptrace", libc::SYS_ptrace),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("clone3", libc::SYS_clone3),
        ("openat2", libc::SYS_openat2),
        ("memfd_create", libc::SYS_memfd_create),
        ("bpf", libc::SYS_bpf),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("mount", libc::SYS_mount),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("setns", libc::SYS_setns),
        ("keyctl", libc::SYS_keyctl),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("kexec_file_load", libc::SYS_kexec_file_load),
        ("finit_module", libc::SYS_finit_module),
        ("clock_settime", libc::SYS_clock_settime),
    ] {
        let line = listed().into_iter().find(|line| line.call == name);
        assert_eq!(here(PLAIN, number, &[0; 6]), line.unwrap().answer, "{name}");
    }
}

/// Runs a probe written in Python under a filter and gives its lines.
fn probe(filter: &'static [libc::sock_filter], script: &str) -> Option<Vec<String>> {
    use crate::sys::before_exec::before_exec;
    let python = "/usr/bin/python3";
    if !std::path::Path::new(python).exists() {
        bailiwick_testkit::skip("no python3 to try system calls with");
        return None;
    }
    let mut command = std::process::Command::new(python);
    let helper = "import ctypes, os, errno\nc = ctypes.CDLL(None, use_errno=True)\n\
                  def call(*a):\n r = c.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])\n \
                  print(errno.errorcode[ctypes.get_errno()] if r < 0 else 'ok')\n";
    command.args(["-I", "-c"]).arg(format!("{helper}{script}")).env_clear();
    before_exec(&mut command, move || {
        rustix::thread::set_no_new_privs(true)?;
        crate::sys::seccomp::install(filter, false).map(|_| ())
    });
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(ToOwned::to_owned).collect())
}

#[test]
fn the_kernel_answers_as_the_interpreter_does() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("f");
    std::fs::write(&file, "").unwrap();
    let name = file.to_str().unwrap();
    let script = format!(
        "call({socket}, 1, 1, 0)\ncall({socket}, 2, 1, 0)\ncall({socket}, 2 | 1 << 32, 1, 262)\n\
         call({socketpair}, 1, 2, 0, ctypes.create_string_buffer(8))\n\
         call({socketpair}, 1, 1, 0, ctypes.create_string_buffer(8))\n\
         call({unshare}, 0x10000000)\ncall({unshare}, 0x10000000 | 1 << 40)\ncall({clone3}, 0, 0)\n\
         call({memfd}, b'x', 0)\ncall({fchmodat}, -100, b'{name}', 0o4755, 0)\ncall({fchmodat}, -100, b'{name}', 0o755, 0)\n\
         call({ioctl}, 0, 0x5412 | 1 << 33, 0)\ncall({personality}, 0xffffffff)\ncall({personality}, 0x40000)\n\
         call({keyctl}, 0, 0)\ncall({ptrace}, 0, 0)\ncall(470, 0)\ncall({openat2}, -100, b'/', 0, 0)\n\
         call({uring}, 1, 0)\ncall({getpid})\n",
        socket = libc::SYS_socket,
        socketpair = libc::SYS_socketpair,
        unshare = libc::SYS_unshare,
        clone3 = libc::SYS_clone3,
        memfd = libc::SYS_memfd_create,
        fchmodat = libc::SYS_fchmodat,
        ioctl = libc::SYS_ioctl,
        personality = libc::SYS_personality,
        keyctl = libc::SYS_keyctl,
        ptrace = libc::SYS_ptrace,
        openat2 = libc::SYS_openat2,
        uring = libc::SYS_io_uring_setup,
        getpid = libc::SYS_getpid,
    );
    let Some(answers) = probe(program(PLAIN), &script) else { return };
    let expected = [
        "EPERM", "ok", "EPERM", "EPERM", "ok", "EPERM", "EPERM", "ENOSYS", "ENOSYS", "EPERM", "ok", "EPERM",
        "ok", "EPERM", "EPERM", "EPERM", "ENOSYS", "ENOSYS", "ENOSYS", "ok",
    ];
    assert_eq!(answers, expected);
    let Some(answers) = probe(program_offline(PLAIN), &format!("call({}, 2, 1, 0)\n", libc::SYS_socket))
    else {
        return;
    };
    assert_eq!(answers, ["EPERM"]);
}

#[test]
fn ordinary_programs_run_under_the_strictest_filter() {
    let script = "import subprocess, threading, socket, asyncio, multiprocessing\n\
        print(subprocess.run(['/bin/sh', '-c', 'echo a | cat; ls / >/dev/null && cp /etc/passwd /dev/null'], \
        capture_output=True, text=True).stdout.strip())\n\
        t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n\
        async def f(): return 'asyncio'\n\
        print(asyncio.run(f()))\n\
        a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(9).decode())\n\
        p = multiprocessing.get_context('fork').Process(target=print, args=('process',)); p.start(); p.join()\n";
    let Some(answers) = probe(program_offline(PLAIN), script) else { return };
    assert_eq!(answers, ["a", "thread", "asyncio", "pair", "process"]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_i386_entry_kills() {
    use crate::sys::before_exec::before_exec;
    use std::os::unix::process::ExitStatusExt as _;
    // getpid through int 0x80, in a page of its own.
    let script = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\n\
        m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n\
        a = ctypes.addressof(ctypes.c_char.from_buffer(m))\nprint(ctypes.CFUNCTYPE(ctypes.c_int)(a)() > 0)\n";
    let run = |filtered: bool| {
        let mut command = std::process::Command::new("/usr/bin/python3");
        command.args(["-I", "-c", script]).env_clear();
        before_exec(&mut command, move || {
            rustix::thread::set_no_new_privs(true)?;
            let filter = program(PLAIN);
            if filtered { crate::sys::seccomp::install(filter, false).map(|_| ()) } else { Ok(()) }
        });
        command.output()
    };
    let Ok(bare) = run(false) else { return bailiwick_testkit::skip("no python3") };
    if !bare.status.success() {
        return bailiwick_testkit::skip("the kernel has no i386 entry");
    }
    assert_eq!(run(true).unwrap().status.signal(), Some(libc::SIGSYS));
}
