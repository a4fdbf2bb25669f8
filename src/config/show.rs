//! A configuration as TOML: the effective one, and the defaults with their documentation.

use super::checked::Config;
use super::keys::{Entry, Setting, Shown};
use super::value::MASK;

/// Whether secrets are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// A mask stands for them.
    Masked,
    /// As they are.
    Shown,
}

impl Config {
    /// Every key as TOML; with its secrets shown, it loads as an equal configuration.
    pub fn to_toml(&self, secrets: Secrets) -> String {
        Writer { text: String::new(), secrets, documented: false }.whole(self)
    }

    /// Every key as TOML, each below what it means: the text of `config/default.toml` when the
    /// configuration is the default one.
    pub fn to_documented_toml(&self) -> String {
        Writer { text: String::new(), secrets: Secrets::Masked, documented: true }.whole(self)
    }
}

/// The value of a key as TOML, its secrets masked.
pub(super) fn value_text(entry: &Entry, secrets: Secrets) -> String {
    match &entry.shown {
        Some(Shown::Value(_)) if entry.secret && secrets == Secrets::Masked => quoted(MASK),
        Some(Shown::Value(value)) => value.to_string(),
        Some(Shown::Absent) | None => quoted(entry.absent),
        Some(Shown::Table(entries)) => braced(entries, secrets),
        Some(Shown::Tables(tables)) => {
            let tables: Vec<_> = tables.iter().map(|table| braced(table, secrets)).collect();
            format!("[{}]", tables.join(", "))
        }
    }
}

fn braced(entries: &[Entry], secrets: Secrets) -> String {
    let said = entries.iter().filter(|entry| entry.shown != Some(Shown::Absent));
    let keys: Vec<_> =
        said.map(|entry| format!("{} = {}", entry.name, value_text(entry, secrets))).collect();
    format!("{{ {} }}", keys.join(", "))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

struct Writer {
    text: String,
    secrets: Secrets,
    documented: bool,
}

impl Writer {
    fn whole(mut self, config: &Config) -> String {
        if let Shown::Table(entries) = config.show() {
            if self.documented {
                self.line("# Every key of mehman with its default. Any of them may be left out.");
            }
            self.table("", &entries);
        }
        self.text
    }

    /// Plain keys first: in TOML everything behind a header belongs to it.
    fn table(&mut self, path: &str, entries: &[Entry]) {
        for entry in entries {
            match &entry.shown {
                Some(Shown::Table(_)) => {}
                Some(Shown::Tables(tables)) if !tables.is_empty() => {}
                Some(Shown::Tables(_) | Shown::Value(_) | Shown::Absent) | None => {
                    self.plain(path, entry);
                }
            }
        }
        for entry in entries {
            let path = if path.is_empty() {
                entry.name.to_owned()
            } else {
                format!("{path}.{}", entry.name)
            };
            match &entry.shown {
                Some(Shown::Table(inner)) => {
                    self.header(entry, &format!("[{path}]"));
                    self.table(&path, inner);
                }
                Some(Shown::Tables(tables)) => {
                    for table in tables {
                        self.header(entry, &format!("[[{path}]]"));
                        self.table(&path, table);
                    }
                }
                Some(Shown::Value(_) | Shown::Absent) | None => {}
            }
        }
    }

    fn plain(&mut self, path: &str, entry: &Entry) {
        if self.documented {
            self.line("");
            self.comment(&entry.doc);
        }
        let value = value_text(entry, self.secrets);
        self.line(&format!("{} = {value}", entry.name));
        if self.documented && !entry.inner.is_empty() {
            let dot = if path.is_empty() { "" } else { "." };
            self.line(&format!("# [[{path}{dot}{}]] takes its place, each with:", entry.name));
            for inner in &entry.inner {
                let doc = inner.doc.replace('\n', " ");
                self.line(&format!("#   {:26} {doc}", inner.name));
            }
        }
    }

    fn header(&mut self, entry: &Entry, header: &str) {
        self.line("");
        if self.documented {
            self.comment(&entry.doc);
        }
        self.line(header);
    }

    fn comment(&mut self, doc: &str) {
        for line in doc.lines() {
            self.line(&format!("# {line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}
