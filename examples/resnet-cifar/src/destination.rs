//! The file that a result is written to: a plain file appears whole or not at all, anything else
//! is written through.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::path::{self, Path, PathBuf};
use std::process;

use anyhow::{Context as _, bail, ensure};

/// Where a result goes; nothing is there before it is written.
#[derive(Debug)]
pub(crate) struct Destination<'a>(&'a Path);

/// What stands at a place, as far as writing is concerned.
#[derive(Debug)]
enum Place {
    /// Nothing or a plain file, with its permissions: a new file takes the place at once.
    Replaced(Option<Permissions>),
    /// A link, a pipe, a device: somebody wants what is written to come out there.
    WrittenThrough,
}

impl<'a> Destination<'a> {
    /// Fails at once where the place cannot be written, not after the work.
    pub(crate) fn to(place: &'a Path) -> anyhow::Result<Self> {
        let shown = place.display();
        let folder = place.to_string_lossy().ends_with(path::is_separator) || place.is_dir();
        ensure!(!folder, "cannot write {shown}: it is a folder");
        ensure!(place.file_name().is_some(), "{shown} names no file");
        let parent = place
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|parent| !parent.exists()) {
            let parent = parent.display();
            bail!(
                "cannot write {shown}: there is no folder {parent}; make it, or choose another place"
            );
        }
        let destination = Self(place);
        destination
            .try_out()
            .with_context(|| format!("cannot write {shown}"))?;
        Ok(destination)
    }

    /// Writes the whole of it.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        self.prepare(text)?.appear()
    }

    /// Does all that can fail for want of space, and changes nothing yet.
    pub(crate) fn prepare<'t>(&self, text: &'t str) -> anyhow::Result<Prepared<'a, 't>> {
        let form = Place::of(self.0).and_then(|place| match place {
            Place::Replaced(permissions) => {
                let mut file = Beside::of(self.0)?;
                file.write(text, permissions)?;
                Ok(Form::Beside(file))
            }
            Place::WrittenThrough => Ok(Form::Text(text)),
        });
        let form = form.with_context(|| format!("cannot write {}", self.0.display()))?;
        Ok(Prepared {
            place: self.0,
            form,
        })
    }

    /// What can be tried without changing anything: a pipe or device shows only when it is used.
    fn try_out(&self) -> io::Result<()> {
        if fs::metadata(self.0).is_ok_and(|found| found.is_file()) {
            OpenOptions::new().write(true).open(self.0)?;
        }
        match Place::of(self.0)? {
            Place::Replaced(_) => Beside::of(self.0).map(drop),
            Place::WrittenThrough => Ok(()),
        }
    }
}

/// What a place is to hold, one step before it does; dropped, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Prepared<'a, 't> {
    place: &'a Path,
    form: Form<'a, 't>,
}

#[derive(Debug)]
enum Form<'a, 't> {
    Beside(Beside<'a>),
    /// What is written through has no other place to wait in.
    Text(&'t str),
}

impl Prepared<'_, '_> {
    /// Whether it can still fail for more than a name.
    pub(crate) fn is_unwritten(&self) -> bool {
        matches!(self.form, Form::Text(_))
    }

    pub(crate) fn appear(self) -> anyhow::Result<()> {
        let done = match self.form {
            Form::Beside(file) => file.appear(),
            Form::Text(text) => write_through(self.place, text),
        };
        done.with_context(|| format!("cannot write {}", self.place.display()))
    }
}

fn write_through(place: &Path, text: &str) -> io::Result<()> {
    // A link may lead to a file that is still to be made.
    let missing = !place.exists();
    let mut file = OpenOptions::new()
        .write(true)
        .create(missing)
        .truncate(true)
        .open(place)?;
    writeln!(file, "{text}")?;
    file.flush()
}

impl Place {
    fn of(place: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(place) {
            Ok(found) if found.is_file() => Ok(Self::Replaced(Some(found.permissions()))),
            Ok(_) => Ok(Self::WrittenThrough),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Replaced(None)),
            Err(error) => Err(error),
        }
    }
}

/// An unfinished file beside its place; gone when dropped, unless it was moved there.
#[derive(Debug)]
struct Beside<'a> {
    place: &'a Path,
    path: PathBuf,
    file: File,
}

impl<'a> Beside<'a> {
    fn of(place: &'a Path) -> io::Result<Self> {
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", process::id()));
        let path = place.with_file_name(name);
        // Left by a process of the same number that was killed; never by one that runs.
        let _ = fs::remove_file(&path);
        let file = File::create_new(&path)?;
        Ok(Self { place, path, file })
    }

    fn write(&mut self, text: &str, permissions: Option<Permissions>) -> io::Result<()> {
        if let Some(permissions) = permissions {
            self.file.set_permissions(permissions)?;
        }
        writeln!(self.file, "{text}")?;
        self.file.sync_all()
    }

    fn appear(self) -> io::Result<()> {
        fs::rename(&self.path, self.place)
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove; before it, an unfinished file is worth
        // no message.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(place: &Path, text: &str) {
        Destination::to(place).unwrap().write(text).unwrap();
    }

    #[test]
    fn a_file_appears_whole_and_only_when_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("rows.json");
        let destination = Destination::to(&place).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        destination.write("[]").unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "[]\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_stays_as_it_is_until_then() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("rows.json");
        fs::write(&place, "a longer text of before").unwrap();
        let destination = Destination::to(&place).unwrap();
        assert_eq!(
            fs::read_to_string(&place).unwrap(),
            "a longer text of before"
        );
        destination.write("[]").unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "[]\n");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_before_the_work() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Destination::to(Path::new("")).is_err());
        for place in ["", "no/such/rows.json", "rows.json/"] {
            let text = Destination::to(&dir.path().join(place))
                .unwrap_err()
                .to_string();
            let shown = place.trim_end_matches('/');
            assert!(
                text.contains("cannot write") && text.contains(shown),
                "{text}"
            );
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
        use std::process::Command;

        use super::*;

        #[test]
        fn a_replaced_file_keeps_its_permissions() {
            let dir = tempfile::tempdir().unwrap();
            let place = dir.path().join("rows.json");
            for mode in [0o600, 0o640, 0o666] {
                fs::write(&place, "before").unwrap();
                fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
                write(&place, "[]");
                let found = fs::metadata(&place).unwrap().permissions().mode();
                assert_eq!(found & 0o777, mode);
            }
        }

        #[test]
        fn a_link_stays_one_and_its_target_is_written() {
            let dir = tempfile::tempdir().unwrap();
            let (link, target) = (dir.path().join("link"), dir.path().join("target"));
            symlink("target", &link).unwrap();
            // To a file that is still to be made, then to one that is there.
            for text in ["a longer text first", "[]"] {
                write(&link, text);
                assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
                assert_eq!(fs::read_to_string(&target).unwrap(), format!("{text}\n"));
            }
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        }

        #[test]
        fn a_pipe_stays_one_and_its_reader_gets_the_text() {
            let dir = tempfile::tempdir().unwrap();
            let pipe = dir.path().join("pipe");
            assert!(
                Command::new("mkfifo")
                    .arg(&pipe)
                    .status()
                    .unwrap()
                    .success()
            );
            let text = std::thread::scope(|scope| {
                let reader = scope.spawn(|| fs::read_to_string(&pipe).unwrap());
                write(&pipe, "[]");
                reader.join().unwrap()
            });
            assert_eq!(text, "[]\n");
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        }

        #[test]
        fn what_cannot_be_written_through_is_one_sentence() {
            let dir = tempfile::tempdir().unwrap();
            let link = dir.path().join("link");
            symlink("no/such/target", &link).unwrap();
            let error = Destination::to(&link).unwrap().write("[]").unwrap_err();
            let text = format!("{error:#}");
            assert!(
                text.starts_with("cannot write ") && text.contains("link"),
                "{text}"
            );
            assert_eq!(text.lines().count(), 1);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
    }
}
