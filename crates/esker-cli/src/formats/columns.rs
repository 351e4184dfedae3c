//! Which columns of a table hold the keys and the values: by name, where the first row is a header,
//! or by number from 1.

/// More columns than any table has. Each takes memory while the first row is looked at, and a file that
/// is no table may have one for every byte.
pub(super) const MOST_COLUMNS: usize = 100_000;

/// What a first row with more is told.
pub(super) const TOO_MANY: &str = "there are more than 100,000 columns, which no table has here; is \
                                   this the right format and delimiter?";

/// What the user said about the columns.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The column of the key; the first one when it is not given.
    pub key: Option<String>,
    /// The column of the value; where there are two, the other one when it is not given.
    pub value: Option<String>,
    /// Whether the first row holds the names of the columns.
    pub header: bool,
}

/// The columns of a table whose first row was seen; numbers from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picked {
    pub key: usize,
    pub value: usize,
    /// How many columns every row has.
    pub all: usize,
}

impl Columns {
    /// Finds the columns in the first row; it is the header if there is one. An error says what is
    /// wrong with the table or with the choice.
    pub(super) fn pick<F: AsRef<[u8]>>(&self, first_row: &[F]) -> Result<Picked, String> {
        let all = first_row.len();
        let find = |asked_for: &Option<String>| {
            asked_for.as_ref().map(|name| self.find(name, first_row)).transpose()
        };
        let key = find(&self.key)?.unwrap_or(0);
        let value = match find(&self.value)? {
            Some(value) => value,
            None if all == 2 => 1 - key,
            None if all == 1 => {
                return Err("there is one column only; a key and a value are two".into());
            }
            None => {
                return Err(format!(
                    "there are {all} columns; --key and --value choose two of them"
                ));
            }
        };
        Ok(Picked { key, value, all })
    }

    fn find<F: AsRef<[u8]>>(&self, asked_for: &str, first_row: &[F]) -> Result<usize, String> {
        let all = first_row.len();
        if self.header {
            let named = |field: &F| field.as_ref() == asked_for.as_bytes();
            let mut places = (0..all).filter(|&at| named(&first_row[at]));
            match (places.next(), places.next()) {
                (Some(at), None) => return Ok(at),
                (Some(a), Some(b)) => {
                    let (a, b) = (a + 1, b + 1);
                    return Err(format!(
                        "columns {a} and {b} are both named `{asked_for}`; choose by number"
                    ));
                }
                (None, _) => {}
            }
        }
        match asked_for.parse::<usize>() {
            Ok(number) if (1..=all).contains(&number) => Ok(number - 1),
            Ok(number) => Err(format!("there is no column {number}: the first row has {all}")),
            Err(_) if self.header => {
                let names: Vec<_> =
                    first_row.iter().map(|f| String::from_utf8_lossy(f.as_ref())).collect();
                Err(format!("no column is named `{asked_for}`: they are {}", names.join(", ")))
            }
            Err(_) => Err(format!(
                "`{asked_for}` is a name, and there is no header with names; choose by number, from 1"
            )),
        }
    }
}

impl Picked {
    /// Says what is wrong with a row of so many columns, if anything.
    pub fn check(&self, columns: usize) -> Result<(), String> {
        if columns == self.all {
            return Ok(());
        }
        Err(format!("columns: {columns} here, {} in the first row", self.all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(key: &str, value: &str, header: bool, row: &str) -> Result<(usize, usize), String> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let columns = Columns { key: some(key), value: some(value), header };
        let row: Vec<&str> = row.split(',').collect();
        columns.pick(&row).map(|p| (p.key, p.value))
    }

    #[test]
    fn by_name_by_number_and_by_default() {
        assert_eq!(pick("", "", true, "a,b"), Ok((0, 1)));
        assert_eq!(pick("2", "", false, "a,b"), Ok((1, 0)));
        assert_eq!(pick("c", "a", true, "a,b,c"), Ok((2, 0)));
        assert_eq!(pick("3", "1", true, "a,b,c"), Ok((2, 0)));
        assert_eq!(pick("", "3", false, "a,b,c"), Ok((0, 2)));
        assert_eq!(pick("1", "2", true, "2,1,c"), Ok((1, 0)), "a name goes before a number");
        assert_eq!(pick("1", "1", false, "a"), Ok((0, 0)));
        for (key, value, header, row, what) in [
            ("", "", true, "a,b,c", "3 columns"),
            ("a", "", true, "a", "one column"),
            ("x", "b", true, "a,b", "they are a, b"),
            ("x", "b", false, "a,b", "no header"),
            ("3", "b", true, "a,b", "no column 3"),
            ("0", "b", true, "a,b", "no column 0"),
            ("a", "b", true, "a,b,a", "columns 1 and 3"),
        ] {
            let said = pick(key, value, header, row).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}
