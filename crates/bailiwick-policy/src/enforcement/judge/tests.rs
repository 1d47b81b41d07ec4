//! The judge over generated plans: equal mechanisms agree, and a further capability never raises a level.

use proptest::prelude::*;

use super::*;
use crate::capability::CapabilitySet;
use crate::facts::HostFacts;

/// One line of every kind and shape that mechanisms tell apart.
const LINES: [&str; 22] = [
    "fs:read:/a",
    "fs:read:/a/*.txt",
    "fs:write:/b",
    "fs:create:/b",
    "fs:read,write:/c",
    "fs:read:/**",
    "net:connect:a.test:443",
    "net:connect:*",
    "net:connect:10.0.0.1:80?protocol=raw",
    "net:connect:a.test:443?blockPrivate=false",
    "net:https:GET@https://a.test/x",
    "exec:spawn:git",
    "exec:spawn:git?nestedSandbox=true",
    "exec:spawn:git?fromWritable=true",
    "exec:spawn:*",
    "env:read:A",
    "env:read:*",
    "env:inject:B",
    "ipc:connect:unix:/run/x.sock",
    "ipc:connect:x11",
    "clock:system",
    "clock:tzdata",
];

fn plan(lines: &[&str], limits: Limits) -> Plan {
    let granted = CapabilitySet::new(lines.iter().copied()).unwrap();
    Plan::for_authority("test", granted.authority(), &HostFacts::unknown()).unwrap().with_limits(limits)
}

fn lines() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&LINES[..]), 0..6)
}

fn declared() -> impl Strategy<Value = Limits> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(memory, timeout, size)| Limits {
        memory: memory.then_some(1 << 20),
        timeout_ms: timeout.then_some(1000),
        file_size: size.then_some(1 << 10),
        ..Limits::default()
    })
}

fn words() -> impl Strategy<Value = Words> {
    prop::sample::select(vec![Words::exact("one way"), Words::superset("another way", &["a gap"])])
}

fn files_of() -> impl Strategy<Value = FileMechanism> {
    let layers = |(narrows, guards_names)| FileMechanism::Layered { has: Layers { narrows, guards_names } };
    prop_oneof![
        words().prop_map(FileMechanism::Mounts),
        (any::<bool>(), any::<bool>()).prop_map(layers),
        words().prop_map(FileMechanism::TreeRules),
        words().prop_map(FileMechanism::PathRules),
        Just(FileMechanism::FoundRules { how: "rules".into(), wider: vec!["a gap"] }),
        Just(FileMechanism::Nothing("nothing")),
    ]
}

fn network_of() -> impl Strategy<Value = NetworkMechanism> {
    let supervised = |(none, some, reads): (Words, Words, bool)| NetworkMechanism::Supervised {
        none,
        some,
        unread: (!reads).then_some("unread"),
    };
    let policies = |words| NetworkMechanism::Policies { words, unchecked: "x", private_names: "y" };
    prop_oneof![
        Just(NetworkMechanism::Empty { wider: &[], wider_with_services: &["z"] }),
        (words(), words(), any::<bool>()).prop_map(supervised),
        words().prop_map(policies),
        words().prop_map(NetworkMechanism::Closed),
        Just(NetworkMechanism::Nothing("nothing")),
    ]
}

fn services_of() -> impl Strategy<Value = ServiceMechanism> {
    let declared = prop_oneof![
        words().prop_map(DeclaredServices::Supervised),
        words().prop_map(DeclaredServices::Visible),
        Just(DeclaredServices::Nothing("nothing")),
    ];
    prop_oneof![
        words().prop_map(ServiceMechanism::Visible),
        (words(), declared).prop_map(|(none, some)| ServiceMechanism::Filtered {
            none,
            wider_with_files: &["z"],
            some
        }),
        words().prop_map(ServiceMechanism::ByName),
        Just(ServiceMechanism::Nothing("nothing")),
    ]
}

fn mechanism() -> impl Strategy<Value = Mechanism> {
    let programs = prop_oneof![
        words().prop_map(ProgramMechanism::Listed),
        Just(ProgramMechanism::Visible),
        Just(ProgramMechanism::Nothing("nothing")),
    ];
    let environment = prop_oneof![
        (words(), any::<bool>())
            .prop_map(|(words, passes_all)| EnvironmentMechanism::Fresh { words, passes_all }),
        Just(EnvironmentMechanism::Advisory("honest")),
        Just(EnvironmentMechanism::Nothing("nothing")),
    ];
    let processes = prop_oneof![
        (words(), words()).prop_map(|(words, nested)| ProcessMechanism::Kernel { words, nested }),
        Just(ProcessMechanism::Nothing("nothing")),
    ];
    let limits = prop::sample::select(vec![
        LimitMechanism::Kernel(&[Limit::Memory], "groups"),
        LimitMechanism::KernelAsRoot(&[Limit::Memory, Limit::FileSize], "groups", "as root"),
        LimitMechanism::Supervised(&[Limit::Memory, Limit::FileSize, Limit::Timeout], "groups"),
        LimitMechanism::Advisory(&[Limit::Memory], "heap"),
    ]);
    (files_of(), network_of(), programs, environment, services_of(), processes, limits).prop_map(
        |(files, network, programs, environment, services, processes, limits)| Mechanism {
            files,
            network,
            programs,
            environment,
            services,
            processes,
            limits,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn adding_a_capability_never_raises_a_level(
        lines in lines(), more in prop::sample::select(&LINES[..]), limits in declared(), mechanism in mechanism(),
    ) {
        let before = coverage(&plan(&lines, limits), &mechanism);
        let after = coverage(&plan(&[&lines[..], &[more]].concat(), limits), &mechanism);
        for (aspect, held) in after.iter() {
            let old = before.held(aspect);
            prop_assert!(held.level <= old.level, "{aspect}: {lines:?} is {old:?} and with {more} {held:?}");
        }
    }

    /// What is granted whole is never refused.
    #[test]
    fn what_is_granted_whole_is_never_held(lines in lines(), mechanism in mechanism()) {
        let all = plan(&[&lines[..], &["exec:spawn:*"]].concat(), Limits::default());
        let held = coverage(&all, &mechanism);
        for aspect in [Aspect::Exec, Aspect::Clock, Aspect::Limits] {
            prop_assert_eq!(held.held(aspect).level, Level::Unsupported, "{} with {:?}", aspect, mechanism);
        }
    }

    /// Words are for people: they change no level.
    #[test]
    fn the_same_mechanism_in_other_words_has_the_same_level(
        lines in lines(), limits in declared(), (one, other) in (words(), words()),
    ) {
        let plan = plan(&lines, limits);
        let in_words = |words| [
            files(&plan, &FileMechanism::Mounts(words)).level,
            network(&plan, &NetworkMechanism::Supervised { none: words, some: words, unread: None }).level,
            programs(&plan, &ProgramMechanism::Listed(words)).level,
            environment(&plan, &EnvironmentMechanism::Fresh { words, passes_all: true }).level,
            services(&plan, &ServiceMechanism::Visible(words)).level,
            processes(&plan, &ProcessMechanism::Kernel { words, nested: words }).level,
        ];
        prop_assert_eq!(in_words(one), in_words(other));
    }
}

#[test]
fn no_local_service_is_held_where_all_are_granted() {
    let mut parts = crate::authority::Parts::default();
    parts.add_every_endpoint();
    let plan = Plan::for_authority("test", &parts.authority(), &HostFacts::unknown()).unwrap();
    let none = Words::exact("the filter refuses local sockets");
    let some = DeclaredServices::Supervised(Words::exact("the filter asks the supervisor"));
    let filtered = ServiceMechanism::Filtered { none, wider_with_files: &[], some };
    assert_eq!(services(&plan, &filtered).level, Level::Unsupported);
    assert_eq!(services(&self::plan(&[], Limits::default()), &filtered).level, Level::Kernel, "(control)");
}
