//! Commands that change what later commands mean: directories, variables, arguments.

use super::word::Field;
use super::{Context, Held, Output, Reader, joined, output};

/// A directory that is only known when it runs.
const SOMEWHERE: &str = "$…";

impl Reader {
    /// Does what a built-in command does; what the command prints, if that is known.
    pub(super) fn builtin(&mut self, program: &str, words: &[Field], context: &Context) -> Output {
        let arguments = words.get(1..).unwrap_or_default();
        match program {
            "cd" | "chdir" | "pushd" => self.change_directory(arguments),
            "popd" => self.here = self.left.pop().unwrap_or_default(),
            "set" => self.set_positional(arguments),
            "shift" => {
                if let Some(list) = self.positional.as_mut().filter(|list| list.len() > 1) {
                    list.remove(1);
                }
            }
            "read" => self.read_variable(arguments, context),
            "mapfile" | "readarray" => {
                if let Some(name) = arguments.last() {
                    self.values.insert(name.text.clone(), Held::Unknown);
                }
            }
            "printf" if arguments.first().is_some_and(|flag| flag.text == "-v") => {
                self.print_to_variable(arguments);
            }
            "export" | "declare" | "local" | "typeset" | "readonly" | "unset" | "true" | ":" | "test"
            | "[" | "mkdir" | "touch" | "chmod" => {}
            "pwd" => return (!self.here.is_empty()).then(|| format!("{}\n", self.here)),
            _ => return output::printed(words, context.input.as_deref()),
        }
        Some(String::new())
    }

    fn change_directory(&mut self, arguments: &[Field]) {
        let mut given = arguments.iter().filter(|field| !field.text.starts_with('-') || field.text == "-");
        let searched = self.values.contains_key("CDPATH");
        let next = match given.next() {
            None => "~".to_owned(),
            Some(field) if field.text == "-" => self.left.last().cloned().unwrap_or_default(),
            Some(_) if searched => SOMEWHERE.to_owned(),
            Some(field) if field.dynamic && !field.text.starts_with("$HOME") => SOMEWHERE.to_owned(),
            Some(field) if self.here.len() > 4096 || field.text.len() > 4096 => SOMEWHERE.to_owned(),
            Some(field) => joined(&self.here, &field.text),
        };
        self.left.push(std::mem::replace(&mut self.here, next));
    }

    fn set_positional(&mut self, arguments: &[Field]) {
        let given = match arguments.iter().position(|field| field.text == "--") {
            Some(at) => arguments.get(at + 1..).unwrap_or_default(),
            None if arguments.first().is_some_and(|field| !field.text.starts_with(['-', '+'])) => arguments,
            None => return,
        };
        self.positional = Some(std::iter::once(Field::unknown("$0")).chain(given.iter().cloned()).collect());
    }

    fn read_variable(&mut self, arguments: &[Field], context: &Context) {
        let names: Vec<&Field> = arguments.iter().filter(|field| !field.text.starts_with('-')).collect();
        let line = context.input.as_deref().and_then(|text| text.lines().next());
        let several = context.input.as_deref().is_some_and(|text| text.lines().nth(1).is_some());
        for name in &names {
            let value = match (line, &names[..]) {
                (Some(line), [_]) if !several => Held::Text(line.trim().to_owned()),
                _ => Held::Unknown,
            };
            self.values.insert(name.text.clone(), value);
        }
    }

    fn print_to_variable(&mut self, arguments: &[Field]) {
        let [_, name, rest @ ..] = arguments else { return };
        let words: Vec<Field> = std::iter::once(Field::known("printf")).chain(rest.iter().cloned()).collect();
        let value = output::printed(&words, None).map_or(Held::Unknown, Held::Text);
        self.values.insert(name.text.clone(), value);
    }
}
