//! Who is to be served, and in which turn.

/// The readers of a pool under numbers of their own. No thread, no lock.
#[derive(Debug)]
pub(crate) struct Line<T> {
    readers: Vec<(usize, T)>,
    next: usize,
    /// Where the round robin goes on.
    turn: usize,
}

impl<T: Clone> Line<T> {
    pub(crate) fn new() -> Self {
        Self {
            readers: Vec::new(),
            next: 0,
            turn: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.readers.len()
    }

    /// Takes a reader in and numbers it.
    pub(crate) fn join(&mut self, reader: T) -> usize {
        let number = self.next;
        self.next += 1;
        self.readers.push((number, reader));
        number
    }

    /// Takes a reader out.
    pub(crate) fn leave(&mut self, number: usize) -> Option<T> {
        let at = self.readers.iter().position(|(own, _)| *own == number)?;
        Some(self.readers.remove(at).1)
    }

    /// All of them, each time another first.
    pub(crate) fn in_turn(&mut self, out: &mut Vec<T>) {
        let readers = self.readers.len();
        if readers == 0 {
            return;
        }
        let from = self.turn % readers;
        let (late, early) = self.readers.split_at(from);
        out.extend(early.iter().chain(late).map(|(_, reader)| reader.clone()));
        self.turn = from + 1;
    }

    /// All of them, in the order in which they came.
    pub(crate) fn all(&self) -> Vec<T> {
        let readers = self.readers.iter();
        readers.map(|(_, reader)| reader.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_first_in_its_turn() {
        let mut line = Line::new();
        let numbers: Vec<_> = "abc".chars().map(|reader| line.join(reader)).collect();
        let mut turn = || {
            let mut out = Vec::new();
            line.in_turn(&mut out);
            out.into_iter().collect::<String>()
        };
        assert_eq!(
            [turn(), turn(), turn(), turn()],
            ["abc", "bca", "cab", "abc"]
        );
        assert_eq!(line.leave(numbers[1]), Some('b'));
        assert_eq!(line.leave(numbers[1]), None);
        assert_eq!(line.all(), ['a', 'c']);
        assert_eq!(line.len(), 2);
    }

    #[test]
    fn nobody_in_line_is_nobody() {
        let mut out = Vec::new();
        Line::<char>::new().in_turn(&mut out);
        assert!(out.is_empty());
    }
}
