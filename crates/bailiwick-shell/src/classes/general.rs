//! What is known of no program in particular: verbs that destroy or publish wherever they stand, flags that show
//! secrets, addresses that something is installed from, and commands or code within the words of any program.
//!
//! Tables name programs, and there are always more programs than lines. What is judged here is how nearly all of them
//! are spoken to. Programs whose words are a project's own (package managers, builders, test runners) are left out
//! where the same verbs are everyday work.

mod words;

use self::words::*;
use super::effects::Seen;
use super::{code, table};
use crate::glob;
use crate::reader::{self, Simple};

/// Notes what a command does by the way it is spoken to.
pub(super) fn note(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    set(seen, simple);
    if arguments.iter().any(|word| ONLY_SHOWS.contains(&word.as_str())) {
        return;
    }
    from_address(seen, simple, program, arguments);
    huge(seen, simple, program, arguments);
    if is_text_tool(program) {
        return;
    }
    let own = simple.path.contains('/') && !simple.path.starts_with('/');
    let spoken = subcommands(arguments);
    let only_looks = spoken.iter().any(|word| LOOKS.contains(word));
    if !own && !only_looks {
        published(seen, simple, program, &spoken);
    }
    if own || DEVELOPERS.contains(&program) {
        return;
    }
    if !only_looks {
        destroyed(seen, simple, &spoken, arguments);
        given_rights(seen, simple, program, &spoken, arguments);
    }
    shown(seen, simple, program, &spoken, arguments);
    opened(seen, simple, program, arguments);
    if !MESSENGERS.contains(&program) {
        spoken_of(seen, simple, program, arguments);
    }
}

/// Programs that take any words, and shells and interpreters, whose words are read elsewhere.
fn is_text_tool(program: &str) -> bool {
    let with_text = ["mentions", "pattern", "copies", "moves", "deletes", "writes"];
    with_text.iter().any(|role| table::role(role, program).is_some())
        || code::is_interpreter(program)
        || reader::is_shell(program)
}

/// The words by which a program is told what to do: no flags, no values of flags, no names that the project has given.
fn subcommands(arguments: &[String]) -> Vec<&str> {
    let mut spoken = Vec::new();
    let mut valued = false;
    for word in arguments {
        if word.starts_with('-') {
            valued = !word.contains('=');
        } else if std::mem::take(&mut valued) {
            // It may be the flag's.
        } else if OWN_NAMES.contains(&word.as_str()) || spoken.len() == 4 {
            break;
        } else {
            spoken.push(word.as_str());
        }
    }
    spoken
}

/// Whether a word is one of these verbs, or joins one to a noun: `delete-stack`, `sites:delete`, `vm.destroy`.
fn says(verbs: &[&str], word: &str) -> bool {
    let last = word.rsplit('.').next().unwrap_or_default();
    verbs.contains(&word)
        || word.len() < 40
            && !word.contains(['/', ' '])
            && last.split(['-', '_', ':']).any(|part| verbs.contains(&part))
}

fn destroyed(seen: &mut Seen<'_>, simple: &Simple, spoken: &[&str], arguments: &[String]) {
    let unasked = || {
        let sure = |word: &String| UNASKED.contains(&word.as_str()) || word.starts_with("--yes");
        arguments.iter().any(sure)
    };
    let removes = |word: &&str| REMOVES.contains(word);
    // As `hdfs dfs -rm` and `hdfs namenode -format` have it.
    let dashed = |word: &String| word.strip_prefix('-').is_some_and(|verb| REMOVES.contains(&verb));
    let destroys = spoken.iter().any(|word| says(DESTROYS, word))
        || arguments.iter().any(|word| DESTROYING.contains(&word.as_str()) || word.starts_with("--delete-"))
        || spoken.contains(&"rm")
        || (spoken.iter().any(removes) || arguments.iter().any(dashed)) && unasked();
    if destroys {
        seen.note("changes(shared)", &simple.plain);
    }
    if spoken.iter().any(|word| says(STOPS, word)) {
        seen.note("stops(services)", &simple.plain);
    }
    let disabled =
        |word: &&str| *word == "disable" || word.starts_with("disable-") || word.ends_with(":disable");
    let guards = ["validation", "verif", "secur", "protect", "auth", "2fa", "mfa", "firewall", "audit"];
    let switched = |word: &String| {
        word.strip_prefix("--disable-").is_some_and(|what| guards.iter().any(|guard| what.contains(guard)))
    };
    if spoken.iter().any(disabled) || arguments.iter().any(switched) {
        seen.note("weakens(protection)", &simple.plain);
    }
}

/// Rights that are given: a verb that gives, and a word for what gives power.
fn given_rights(seen: &mut Seen<'_>, simple: &Simple, program: &str, spoken: &[&str], arguments: &[String]) {
    let parts = |word: &str| -> Vec<String> {
        word.split(['-', '_', ':', '=', ' ']).map(str::to_lowercase).collect()
    };
    let has = |words: &[&str], known: &[&str]| {
        words.iter().any(|word| parts(word).iter().any(|part| known.contains(&part.as_str())))
    };
    let gives = has(spoken, GIVES)
        || arguments.iter().any(|word| matches!(word.as_str(), "--add" | "--grant" | "--set"));
    let powers = has(spoken, POWERS) || has(&[program], POWERS);
    let host = |word: &String| {
        matches!(word.as_str(), "--filesystem=host" | "--filesystem=home" | "--share=network")
    };
    if gives && powers || arguments.iter().any(host) {
        seen.note("gains(privilege)", &simple.plain);
    }
}

/// What is opened to every address, taken unchecked, or loaded from a library that is named by its path.
fn opened(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    let everywhere = |word: &String| {
        ["0.0.0.0/0", "::/0", "tcp:0.0.0.0", "no_root_squash"].iter().any(|part| word.contains(part))
    };
    if arguments.iter().any(everywhere) || arguments.iter().any(|word| UNCHECKED.contains(&word.as_str())) {
        seen.note("weakens(protection)", &simple.plain);
    }
    let library = |word: &String| {
        let path = word.rsplit('=').next().unwrap_or_default();
        path.contains('/') && [".so", ".dylib", ".dll"].iter().any(|end| path.ends_with(end))
    };
    if !BINARIES.contains(&program) && arguments.iter().any(library) {
        seen.note("runs(injected)", &simple.plain);
    }
}

fn published(seen: &mut Seen<'_>, simple: &Simple, program: &str, spoken: &[&str]) {
    let local = |word: &str| word.to_lowercase().contains("local");
    let verb = |word: &&str| {
        says(PUBLISHES, word)
            || word.strip_prefix("publish").is_some_and(|rest| rest.starts_with(char::is_uppercase))
    };
    let told = program != "dotnet" && spoken.iter().take(2).any(|word| verb(word) && !local(word));
    let named = program.rsplit_once('-').is_some_and(|(_, verb)| PUBLISHES.contains(&verb));
    if told || named {
        seen.note("changes(shared)", &simple.plain);
    }
}

/// Secrets that a program is told to show.
fn shown(seen: &mut Seen<'_>, simple: &Simple, program: &str, spoken: &[&str], arguments: &[String]) {
    let plain = arguments.iter().any(|word| SHOWS_SECRETS.contains(&word.as_str()));
    let named = |word: &&str| {
        word.len() < 40 && !word.contains([' ', '/', '.']) && {
            let word = word.to_lowercase();
            SECRETS.iter().any(|part| word.contains(part))
        }
    };
    let unseen = spoken.iter().any(|word| SECRETS_UNSEEN.contains(word));
    let exports =
        spoken.iter().any(|word| matches!(*word, "export" | "dump" | "reveal" | "backup" | "unseal"));
    let keys = spoken.iter().any(|word| matches!(*word, "key" | "keys"));
    if plain
        || exports && keys
        || !unseen && !table::judges("reads(secret)", program) && spoken.iter().any(named)
    {
        seen.note("reads(secret)", &simple.plain);
    }
}

/// Something is installed, added or applied that an address names.
fn from_address(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    if ADDRESSES.contains(&program)
        || arguments.iter().any(|word| word == "repo" || word == "source" || word == "remote")
    {
        return;
    }
    let installs = |word: &String| {
        says(INSTALLS, word) || word.contains(".install") || word.contains("distribution-url")
    };
    let local = ["://localhost", "://127.", "://[::1]", "file://"];
    let address = |word: &String| {
        let forge = FORGES.iter().any(|start| word.starts_with(start));
        forge || word.contains("://") && !local.iter().any(|host| word.contains(host))
    };
    let copies = ["mentions", "pattern", "copies"].iter().any(|role| table::role(role, program).is_some());
    if arguments.iter().any(installs) && arguments.iter().any(address) && !copies {
        seen.note("runs(downloaded)", &simple.plain);
    }
}

/// Files that would fill a disk.
fn huge(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    let is_huge = |word: &String| {
        let number = word.rsplit(['=', '-', 'c']).next().unwrap_or_default();
        let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = number.get(digits.len()..).unwrap_or_default();
        let least = if unit.starts_with('G') { 3 } else { 1 };
        unit.starts_with(['G', 'T', 'P'])
            && digits.len() >= least
            && digits.chars().all(|c| c.is_ascii_digit())
    };
    if matches!(program, "head" | "fio" | "mkfile" | "openssl" | "shred") && arguments.iter().any(is_huge) {
        seen.note("exhausts(machine)", &simple.plain);
    }
}

/// Variables that are set for a command: commands in their values, and what lies in a scratch directory and is loaded.
fn set(seen: &mut Seen<'_>, simple: &Simple) {
    for (name, value) in &simple.set {
        let loaded = |word: &str| {
            let (option, path) = word.split_once('=').unwrap_or(("", word));
            let scratch = ["/tmp/", "/var/tmp/", "/dev/shm/"].iter().any(|place| path.starts_with(place));
            scratch
                && !["dir", "tmp", "log", "cache", "out", "report"].iter().any(|part| option.contains(part))
        };
        if LOADING.iter().any(|end| name.ends_with(end)) && value.split([':', ' ']).any(loaded) {
            seen.note("runs(injected)", &format!("{name}={value}"));
        }
        if STARTS.iter().any(|start| value.contains(start)) {
            seen.note("runs(injected)", &format!("{name}={value}"));
        }
        for text in commands_in(value) {
            seen.may_run(&text, simple);
        }
    }
}

/// Commands and code among the words and in the input of a program.
fn spoken_of(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    let input = simple.input.as_deref().filter(|_| !PASS_ON.contains(&program));
    let lines = input.unwrap_or_default().lines().take(64);
    for text in arguments.iter().map(String::as_str).chain(lines) {
        if STARTS.iter().any(|start| text.contains(start)) {
            seen.note("runs(hidden)", &simple.plain);
        }
        for command in commands_in(text) {
            seen.may_run(&command, simple);
        }
    }
}

/// Texts within a text that may be commands: itself behind the sign for one, what it quotes, what it substitutes.
fn commands_in(text: &str) -> Vec<String> {
    if !text.contains(' ') || text.len() > 4096 {
        return Vec::new();
    }
    let sign = |text: &str| {
        let text = text.trim_start_matches(['!', '|', ':', '.', '$', '(', ' ']);
        let text = ["sy ", "shell ", "sh ", "system ", "source "]
            .iter()
            .find_map(|word| text.strip_prefix(word))
            .unwrap_or(text);
        text.trim_end_matches(['|', ')', ' ']).to_owned()
    };
    let substituted = text.split("$(").skip(1).filter_map(|rest| rest.split(')').next());
    let mut found = vec![sign(text)];
    found.extend(substituted.map(sign));
    let quoted = code::literals(text);
    found.extend(quoted.iter().map(|text| sign(text)));
    found.extend(quoted.iter().flat_map(|text| code::literals(text)).map(|text| sign(&text)));
    found.retain(|text| {
        let program = text.split(' ').next().unwrap_or_default();
        text.contains(' ') && !glob::is_pattern(program) && table::is_known_program(program)
    });
    found
}

#[cfg(test)]
mod tests {
    use crate::classes::{Setting, effects};

    fn does(line: &str) -> Vec<String> {
        let setting = Setting::new("/home/dev/app", "/home/dev/app", "/home/dev");
        effects(&crate::read(line), &setting).iter().map(|one| one.class.to_string()).collect()
    }

    /// None of these programs is in a table.
    #[test]
    fn what_unheard_of_programs_are_told_is_understood() {
        for (line, class) in [
            ("frobctl stacks delete prod", "changes(shared)"),
            ("frobctl vm.destroy prod", "changes(shared)"),
            ("frobctl sites:delete 12", "changes(shared)"),
            ("frobctl node rm -f web", "changes(shared)"),
            ("frobctl sync --delete-extra a b", "changes(shared)"),
            ("frob publish", "changes(shared)"),
            ("frob-upload x.tgz", "changes(shared)"),
            ("frobctl token create", "reads(secret)"),
            ("frobctl outputs --show-secrets", "reads(secret)"),
            ("frobctl key export k", "reads(secret)"),
            ("frob plugin install https://x.test/p", "runs(downloaded)"),
            ("frob add gh:x/y", "runs(downloaded)"),
            ("frob -e 'system(\"ls\")'", "runs(hidden)"),
            ("frob --hook 'rm -rf /srv'", "deletes(vital)"),
            ("frob -c '!cat .env'", "reads(secret)"),
            ("FROB_HOOK='rm -rf /data/x' frob", "deletes(outside)"),
            ("FROBFLAGS=--load=/tmp/x frob", "runs(injected)"),
            ("frob --module ./x.so", "runs(injected)"),
            ("frobctl role add eve admin", "gains(privilege)"),
            ("frobctl allow 0.0.0.0/0", "weakens(protection)"),
            ("frob fetch --allow-untrusted", "weakens(protection)"),
            ("frobctl disable-mfa eve", "weakens(protection)"),
            ("frobctl node drain 3", "stops(services)"),
            ("head -c 500G /dev/urandom > x", "exhausts(machine)"),
        ] {
            assert!(does(line).iter().any(|one| one == class), "{line}: {:?}", does(line));
        }
    }

    #[test]
    fn everyday_words_are_left_alone() {
        for line in [
            "frobctl stacks list",
            "frobctl get deploy",
            "JAVA_OPTS=-Djava.io.tmpdir=/tmp/x frob",
            "frobctl stacks delete prod --dry-run",
            "frob run delete",
            "frob -k delete tests",
            "frobctl secrets ls",
            "frob build --output a.txt",
            "frob add left-pad",
            "frob serve http://localhost:3000",
            "frob --title 'make it work'",
            "FROB_DIR=/tmp/x frob",
            "./frob delete",
            "git commit -m 'system(\"x\") and rm -rf /'",
            "pytest -k publish",
            "head -c 1M /dev/urandom > x",
            "echo rm -rf /",
        ] {
            assert_eq!(does(line), Vec::<String>::new(), "{line}");
        }
    }
}
