//! Places read from texts of known hosts, and groups on this one.

use super::*;

fn owner() -> Owner {
    Owner::this_process()
}

fn directories(places: &Places) -> Vec<&str> {
    places.unified.iter().map(|directory| directory.to_str().unwrap()).collect()
}

#[test]
fn a_host_with_version_2_offers_the_own_group_and_its_parent() {
    let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    let places = Places::from_texts("0::/user.slice/app.slice/term.scope\n", mounts, owner());
    let below = "/sys/fs/cgroup/user.slice/app.slice";
    assert_eq!(directories(&places), [&format!("{below}/term.scope"), below]);
    let container = Places::from_texts("0::/\n", mounts, owner());
    assert_eq!(directories(&container), ["/sys/fs/cgroup"]);
}

#[test]
fn a_hybrid_host_offers_a_tree_per_controller() {
    let mounts = "40 24 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        41 24 0:31 /docker/ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        42 24 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
        43 24 0:33 / /tmp rw - tmpfs tmpfs rw\n";
    let groups = "5:memory:/jobs/a\n4:cpu,cpuacct:/docker/ab\n0::/\n";
    let places = Places::from_texts(groups, mounts, owner());
    let memory: Vec<_> = places.offering(Controller::Memory);
    assert_eq!(memory, [(Version::V1, Path::new("/sys/fs/cgroup/memory/jobs/a"))]);
    assert_eq!(places.offering(Controller::Cpu), [(Version::V1, Path::new("/sys/fs/cgroup/cpu"))]);
    assert_eq!(places.offering(Controller::Pids), []);
}

#[test]
fn a_group_name_says_whose_it_is() {
    let owner = owner();
    assert!(owner.started > 0 && owner.namespace > 0 && owner.is_alive());
    assert_eq!(Owner::from_group_name(&owner.group_name(7)), Some(owner.clone()));
    for other in ["bailiwick", "bailiwick-1-2-3", "bailiwick-1-2-3-4-5", "bailiwick-a-2-3-4", "user.slice"] {
        assert_eq!(Owner::from_group_name(other), None, "{other}");
    }
    assert!(!Owner { started: owner.started + 1, ..owner }.is_alive(), "the pid was reused");
}

#[test]
fn only_groups_of_dead_owners_of_this_pid_namespace_are_swept() {
    // Plain directories: the kernel's are removed by the same call.
    let place = tempfile::tempdir().unwrap();
    let this = owner();
    let dead = Owner { started: this.started + 1, ..this.clone() };
    let elsewhere = Owner { namespace: 1, ..dead.clone() };
    for (owner, count) in [(&this, 90), (&dead, 91), (&elsewhere, 92)] {
        fs::create_dir(place.path().join(owner.group_name(count))).unwrap();
    }
    fs::create_dir(place.path().join("somebody-else")).unwrap();
    let places = Places { unified: Vec::new(), legacy: Vec::new(), owner: this.clone() };
    let group = places.make(Version::V1, place.path()).unwrap();
    let there = |owner: &Owner, count| place.path().join(owner.group_name(count)).exists();
    assert!(there(&this, 90) && !there(&dead, 91) && there(&elsewhere, 92));
    assert!(place.path().join("somebody-else").exists());
    let directory = group.directory.clone();
    assert!(directory.exists());
    drop(group);
    assert!(!directory.exists());
}
