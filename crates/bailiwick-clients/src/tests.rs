//! Real settings in every format: wrapped, wrapped again, edited, and undone byte for byte.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const JSON: ServersForm = ServersForm {
    syntax: Syntax::Json,
    tables: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
    variables: "env",
};
const TOML: ServersForm = ServersForm { syntax: Syntax::Toml, tables: &[&["mcp_servers"]], variables: "env" };
const OPENCODE: ServersForm =
    ServersForm { syntax: Syntax::Json, tables: &[&["mcp"]], variables: "environment" };

fn prefix(server: &Server, variables: &[(&str, &str)]) -> CommandPrefix {
    CommandPrefix {
        program: "/opt/a \"b\"/bailiwick".to_owned(),
        arguments: ["wrap", "--name", server.name(), "--manifest", "/m.toml", "--"]
            .map(str::to_owned)
            .to_vec(),
        variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn wrapped(form: &ServersForm, text: &str, variables: &[(&str, &str)]) -> Wrapped {
    wrap(form, text, |server| Some(prefix(server, variables))).unwrap()
}

/// The value of a JSON or TOML text.
fn value(form: &ServersForm, text: &str) -> String {
    format!(
        "{:?}",
        plain(&Node::read(form.syntax, text.trim_start_matches(BOM)).unwrap(), text.trim_start_matches(BOM))
    )
}

fn plain(node: &Node, text: &str) -> String {
    match &node.kind {
        tree::NodeKind::Text(text) => format!("{text:?}"),
        tree::NodeKind::List(items) => {
            format!("[{}]", items.iter().map(|item| plain(item, text) + ",").collect::<String>())
        }
        tree::NodeKind::Table(fields) => {
            let mut fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{:?}:{},", field.name, plain(&field.value, text)))
                .collect();
            fields.sort();
            format!("{{{}}}", fields.concat())
        }
        tree::NodeKind::Other => text.get(node.span.clone()).unwrap().to_owned(),
    }
}

const XDG: &[(&str, &str)] = &[("XDG_STATE_HOME", "/x/\u{7f}\"state"), ("XDG_CONFIG_HOME", "/x/config")];

const JSON_TEXTS: &[&str] = &[
    r#"{"mcpServers":{"a":{"command":"npx","args":["-y","pkg"]}}}"#,
    r#"{"mcpServers":{"a":{"command":"npx"}}}"#,
    r#"{"mcpServers":{"a":{"args":["x"],"type":"stdio","command":"npx","env":{"K":"v"}}}}"#,
    "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"npx\", // why\n      \"args\": [\n        \"-y\",\n        \"pkg\",\n      ],\n      \"env\": {\n        \"K\": \"v\"\n      },\n    },\n    \"remote\": { \"url\": \"https://x\" },\n  },\n}\n",
    "{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"command\": \"/bin/a\"\r\n\t\t}\r\n\t}\r\n}\r\n",
    "\u{feff}{ \"mcpServers\": { \"a\": { \"command\": 'its x' , \"args\": [ ] , \"env\": { } } } }",
    "{\"mcpServers\":{\"a\":{\"\\u0063ommand\": /* c */ \"npx\", \"args\": [ // first\n \"x\"]}, b: {command: 'x', env: {XDG_STATE_HOME: '/mine'}}}}",
    r#"{"projects":{"/home/me":{"mcpServers":{"a":{"command":"npx","args":[]}}},"/b":{"mcpServers":{}}},"mcpServers":{"a":{"command":{"path":"zed","args":["x"],"env":null}}},"n":1e400}"#,
];

const TOML_TEXTS: &[&str] = &[
    "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"pkg\"]\n",
    "model = \"m\"\n\n[mcp_servers.a] # one\n  command = 'npx' # why\n  startup_timeout_sec = 5\n\n[mcp_servers.a.env]\nK = \"v\"\n",
    "[mcp_servers.a]\nargs = [\n  \"-y\",\n]\ncommand = \"npx\"\nenv = { K = \"v\" }\n",
    "mcp_servers.a.command = \"npx\"\n",
    "[mcp_servers]\na = { command = \"npx\", args = [] }\nb.command = \"x\"\nb.env.K = \"v\"\nc = { url = \"https://x\" }\n",
    "[mcp_servers.\"a b\"]\n\"command\" = \"\"\"npx\"\"\"\n[mcp_servers.\"a b\".env]\n",
    "[mcp_servers.a]\r\ncommand = \"npx\"",
];

const OPENCODE_TEXTS: &[&str] = &[
    r#"{"mcp":{"a":{"type":"local","command":["npx","-y"],"enabled":true}}}"#,
    "{\n  \"mcp\": {\n    \"a\": {\n      \"command\": [\n        \"npx\"\n      ],\n      \"environment\": {}\n    }\n  }\n}\n",
];

fn all() -> impl Iterator<Item = (&'static ServersForm, &'static str)> {
    let json = JSON_TEXTS.iter().map(|text| (&JSON, *text));
    let toml = TOML_TEXTS.iter().map(|text| (&TOML, *text));
    json.chain(toml).chain(OPENCODE_TEXTS.iter().map(|text| (&OPENCODE, *text)))
}

#[test]
fn a_wrapped_text_says_the_prefix_and_everything_else_as_before_and_is_undone_byte_for_byte() {
    for (form, text) in all() {
        for variables in [&[][..], XDG] {
            let before = servers(form, text).unwrap();
            assert!(!before.is_empty(), "{text}");
            let made = wrapped(form, text, variables);
            assert_eq!(made.changes.len(), before.len());
            for (old, new) in before.iter().zip(servers(form, &made.text).unwrap()) {
                let expected = prefix(old, &[]);
                assert_eq!(new.wrapped_command(), Some(old.command.as_slice()), "{}", made.text);
                assert_eq!(new.command[0], expected.program);
                assert_eq!(new.command[1..=6], expected.arguments);
            }
            assert_eq!(unwrap(form, &made.text, &made.changes).unwrap(), text);
            assert!(wrapped(form, &made.text, variables).changes.is_empty(), "a second time changes nothing");
        }
    }
}

#[test]
fn without_the_record_everything_but_added_fields_is_undone() {
    for (form, text) in all() {
        let made = wrapped(form, text, &[]);
        let undone = unwrap(form, &made.text, &[]).unwrap();
        let command = |text: &str| servers(form, text).unwrap();
        assert_eq!(command(&undone), command(text), "{}", made.text);
        let has_arguments = !text.contains("mcp_servers.a.command")
            && command(text).iter().all(|server| server.command.len() > 1);
        if has_arguments {
            assert_eq!(undone, text);
        }
    }
}

#[test]
fn variables_are_added_once_and_a_persons_value_stays() {
    for (form, text) in all() {
        let made = wrapped(form, text, XDG);
        let tree = value(form, &made.text);
        let count = servers(form, text).unwrap().len();
        assert_eq!(tree.matches("XDG_STATE_HOME").count(), count, "{}", made.text);
        assert_eq!(tree.matches("XDG_CONFIG_HOME").count(), count, "{}", made.text);
        assert_eq!(tree.contains("/mine"), text.contains("/mine"));
    }
}

#[test]
fn what_a_client_wrote_anew_loses_the_prefix_and_our_variables() {
    let anew = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    };
    for text in [
        r#"{"mcpServers":{"a":{"command":"x","args":["y"]}}}"#,
        r#"{"mcpServers":{"a":{"command":"x","args":["y"],"env":{}}}}"#,
        r#"{"mcpServers":{"a":{"args":["y"],"command":"x","env":{"A":"1","Z":"2"},"type":"stdio"}}}"#,
        r#"{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"XDG_STATE_HOME":"/mine"}}}}"#,
    ] {
        let made = wrapped(&JSON, text, XDG);
        let left = unwrap(&JSON, &anew(&made.text), &made.changes).unwrap();
        assert_eq!(anew(&left), anew(text), "{left}");
        // What a person changed of them is the person's.
        let edited = anew(&made.text).replace("/x/config", "/other");
        assert!(unwrap(&JSON, &edited, &made.changes).unwrap().contains("/other"), "{text}");
    }
    let text = "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"y\"]\nrequired = true\n";
    let made = wrapped(&TOML, text, XDG);
    let edited = made.text.replace("args = [", "args = [ ");
    assert_eq!(unwrap(&TOML, &edited, &made.changes).unwrap(), text.replace("args = [", "args = [ "));
}

#[test]
fn a_prefix_that_a_person_wrote_is_neither_doubled_nor_taken_away() {
    let text = r#"{"mcpServers":{"a":{"command":"bailiwick","args":["wrap","--manifest","m","--","npx"]}}}"#;
    assert!(servers(&JSON, text).unwrap()[0].is_wrapped());
    assert_eq!(wrapped(&JSON, text, XDG).text, text);
    assert_eq!(unwrap(&JSON, text, &[]).unwrap(), text);
}

#[test]
fn what_starts_no_program_or_is_no_list_of_words_is_left_alone() {
    for text in [
        r#"{"mcpServers":{"a":{"url":"https://x"}}}"#,
        r#"{"mcpServers":{"a":{"command":7},"b":{"command":"x","args":"y"},"c":{"command":"x","args":[1]},"d":[]}}"#,
        r#"{"mcpServers":[]}"#,
        "[]",
        "",
    ] {
        assert_eq!(wrapped(&JSON, text, XDG).text, text);
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for text in [
        r#"{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}"#,
        r#"{"mcpServers":{"a":{"command":"x","command":"y"}}}"#,
        r#"{"mcpServers":{},"mcpServers":{}}"#,
        r#"{"mcpServers":{"a":{"command":"x","args":[],"args":["y"]}}}"#,
    ] {
        assert!(matches!(servers(&JSON, text), Err(SettingsError::Repeated(_))), "{text}");
    }
    assert!(matches!(servers(&JSON, "{"), Err(SettingsError::Syntax { .. })));
    assert!(matches!(servers(&TOML, "a = "), Err(SettingsError::Syntax { .. })));
    let dotted = "mcp_servers = { a = { command = \"x\", env.K = \"v\" } }\n";
    let refused = wrap(&TOML, dotted, |server| Some(prefix(server, XDG)));
    assert!(matches!(refused, Err(SettingsError::Unwritable(_))));
    assert!(wrap(&TOML, dotted, |server| Some(prefix(server, &[]))).is_ok());
}

#[test]
fn every_client_has_files_and_every_name_is_given_once() {
    let names: std::collections::BTreeSet<_> = CLIENTS.iter().map(|client| client.name).collect();
    assert_eq!(names.len(), CLIENTS.len());
    assert!(CLIENTS.iter().all(|client| !client.user.is_empty()));
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ -~é\u{7f}\u{200b}\t\n]{1,6}", 1..4)
        .prop_filter("not a wrapped command", |words| words[0] != "--")
}

/// A JSON text with two servers, in several styles.
fn text() -> impl Strategy<Value = String> {
    let blank = select(vec!["", " ", "\n", "\n  ", "\r\n\t"]);
    (words(), words(), blank.clone(), blank, any::<bool>(), any::<bool>()).prop_map(
        |(one, two, outer, inner, with_args, with_env)| {
            let entry = |words: &[String]| {
                let quoted: Vec<String> = words.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
                let args = quoted[1..].join(&format!(",{inner}"));
                let args = if with_args || words.len() > 1 { format!(",{outer}\"args\":[{inner}{args}{outer}]") } else { String::new() };
                let env = if with_env { format!(",{inner}\"env\":{{{inner}\"K\":\"v\"}}") } else { String::new() };
                format!("{{{outer}\"command\":{inner}{}{args}{env}{outer}}}", quoted[0])
            };
            format!("{{{outer}\"first\":[1,2],\"mcpServers\":{{{inner}\"a\":{},{outer}\"b\":{}}},{inner}\"last\":null}}", entry(&one), entry(&two))
        },
    )
}

proptest! {
    #[test]
    fn any_text_is_undone_byte_for_byte_whatever_was_edited_elsewhere(text in text(), xdg: bool, comment in "[a-z ]{0,9}") {
        let made = wrapped(&JSON, &text, if xdg { XDG } else { &[] });
        let before = servers(&JSON, &text).unwrap();
        let after = servers(&JSON, &made.text).unwrap();
        for (old, new) in before.iter().zip(&after) {
            prop_assert_eq!(new.wrapped_command(), Some(old.command.as_slice()));
        }
        prop_assert_eq!(&unwrap(&JSON, &made.text, &made.changes).unwrap(), &text);
        // A person adds a field before, one behind, and a comment.
        let edit = |text: &str| {
            let text = text.replacen("\"first\"", &format!("/*{comment}*/\"new\":\"{comment}\",\"first\""), 1);
            format!("{}{}", text.replacen("\"last\":null", "\"last\":[true]", 1), "\n// end\n")
        };
        prop_assert_eq!(unwrap(&JSON, &edit(&made.text), &made.changes).unwrap(), edit(&text));
    }
}
