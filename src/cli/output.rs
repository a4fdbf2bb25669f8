//! The one writer to standard output and standard error.
//!
//! Results go to standard output, everything said about the work to standard error. A reader that
//! went away is no failure. Text that sites wrote cannot steer the terminal: control characters are
//! replaced in every line.

use std::io::{self, IsTerminal as _, Write};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::arguments::Common;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Where everything is printed.
pub(super) struct Output {
    form: Form,
    quiet: bool,
    terminal: bool,
    results: Mutex<Box<dyn Write + Send>>,
    notes: Mutex<Box<dyn Write + Send>>,
}

impl Output {
    /// The process's own streams.
    pub(super) fn of_process(common: &Common) -> Self {
        Self {
            form: if common.json { Form::Json } else { Form::Text },
            quiet: common.quiet,
            terminal: io::stderr().is_terminal(),
            results: Mutex::new(Box::new(io::stdout())),
            notes: Mutex::new(Box::new(io::stderr())),
        }
    }

    /// Whether results are printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Whether progress is shown at all.
    pub(super) fn shows_progress(&self) -> bool {
        !self.quiet
    }

    /// Whether standard error is a terminal, where a line can be drawn again and again.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A result: one or more lines of text.
    pub(super) fn line(&self, text: &str) {
        write(&self.results, &format!("{}\n", plain(text)));
    }

    /// A result as it is, without a line end of its own: completions, help, a configuration.
    pub(super) fn raw(&self, text: &str) {
        write(&self.results, text);
    }

    /// A part of a long result that is made for programs.
    pub(super) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// A result as JSON, on one line.
    pub(super) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        // JSON escapes control characters itself.
        write(&self.results, &format!("{}\n", serde_json::to_string(value)?));
        Ok(())
    }

    /// Something about the work, left out with `-q`.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            self.alert(text);
        }
    }

    /// Something that must be read.
    pub(super) fn alert(&self, text: &str) {
        write(&self.notes, &format!("{}\n", plain(text)));
    }

    /// Something that must be read, as it is.
    pub(super) fn raw_alert(&self, text: &str) {
        write(&self.notes, text);
    }
}

/// Takes the control characters out of a text, line ends excepted.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().map(shown).collect()
}

fn write(stream: &Mutex<Box<dyn Write + Send>>, text: &str) {
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    // A closed pipe is the reader's wish, and there is nobody left to tell of another failure.
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).ok();
}

#[cfg(test)]
pub(super) mod capture {
    use std::sync::Arc;

    use super::*;

    /// What was printed, readable after the work.
    #[derive(Clone, Default)]
    pub(in crate::cli) struct Printed(Arc<Mutex<Vec<u8>>>);

    impl Printed {
        /// The text so far.
        pub(in crate::cli) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output whose results and notes can be read.
    pub(in crate::cli) fn output(form: Form) -> (Output, Printed, Printed) {
        let (results, notes) = (Printed::default(), Printed::default());
        let output = Output {
            form,
            quiet: false,
            terminal: false,
            results: Mutex::new(Box::new(results.clone())),
            notes: Mutex::new(Box::new(notes.clone())),
        };
        (output, results, notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_sites_cannot_steer_the_terminal() {
        let (output, results, notes) = capture::output(Form::Text);
        output.line("a\u{1b}[2Jb\nc");
        output.note("\u{7}");
        assert_eq!(results.text(), "a\u{fffd}[2Jb\nc\n");
        assert_eq!(notes.text(), "\u{fffd}\n");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let (mut output, ..) = capture::output(Form::Json);
        output.results = Mutex::new(Box::new(Gone));
        output.line("nobody reads this");
        output.json(&[1]).unwrap();
    }
}
